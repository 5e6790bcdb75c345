// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;

/**
 * One instance of a Kafka Streams application.
 *
 * <p>Each argument is {@code key=value}: a config of Kafka Streams or of its clients, or an argument of this program, which
 * begins with {@code app.}:
 *
 * <ul>
 *   <li>{@code app.topology}: {@code shop} ({@link ShopTopology}), or one of {@link MeasuredTopologies};
 *   <li>{@code app.report}: {@code tasks} ({@link Tasks}) or {@code figures} ({@link Figures});
 *   <li>the arguments of the topology.
 * </ul>
 *
 * <p>Standard output contains one line of JSON for each report that differs from the one before, and nothing else.
 */
public final class App {
    private static final Duration INTERVAL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(10);

    private App() {}

    /** Produces a line of JSON about this instance. */
    interface Report {
        String line(KafkaStreams.State state);
    }

    /** Runs until the process is terminated (SIGTERM closes the instance) or all stream threads are dead. */
    public static void main(String[] args) throws InterruptedException {
        Properties configs = parse(args);
        LongAdder processed = new LongAdder();
        KafkaStreams streams = new KafkaStreams(topology(configs, processed), configs);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ended.countDown();
            streams.close(CLOSE);
        }));
        streams.start();
        Report report = report(configs, streams, processed);
        String last = "";
        while (!ended.await(INTERVAL.toMillis(), TimeUnit.MILLISECONDS)) {
            KafkaStreams.State state = streams.state();
            String line = report.line(state);
            if (!line.equals(last)) {
                System.out.println(line);
                last = line;
            }
            if (state == KafkaStreams.State.ERROR || state == KafkaStreams.State.NOT_RUNNING) {
                System.exit(1);
            }
        }
    }

    private static Properties parse(String[] args) {
        Properties configs = new Properties();
        for (String arg : args) {
            int at = arg.indexOf('=');
            if (at < 1) {
                throw new IllegalArgumentException("argument \"" + arg + "\" is not key=value");
            }
            configs.setProperty(arg.substring(0, at), arg.substring(at + 1));
        }
        return configs;
    }

    private static Topology topology(Properties configs, LongAdder processed) {
        String name = configs.getProperty("app.topology", "");
        return name.equals("shop") ? ShopTopology.of(configs) : MeasuredTopologies.of(name, configs, processed);
    }

    private static Report report(Properties configs, KafkaStreams streams, LongAdder processed) {
        String name = configs.getProperty("app.report", "");
        return switch (name) {
            case "tasks" -> new Tasks(streams);
            case "figures" -> new Figures(streams, processed);
            default -> throw new IllegalArgumentException("unknown app.report \"" + name + "\"");
        };
    }
}
