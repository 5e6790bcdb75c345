// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.calibrate;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.streams.KafkaStreams;

/**
 * One instance of an application whose memory is measured.
 *
 * <p>Each argument is {@code key=value}: a config of Kafka Streams or of its clients, taken as it is, or one of those that
 * {@link Topologies} reads, which begin with {@code calibrate.}.
 *
 * <p>Standard output holds a line of JSON ten times a second: see {@link Figures}.
 */
public final class App {
    private static final Duration INTERVAL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(10);

    private App() {}

    /** Runs until the process is told to end (SIGTERM closes the instance) or all stream threads are dead. */
    public static void main(String[] args) throws InterruptedException {
        Properties configs = parse(args);
        LongAdder processed = new LongAdder();
        KafkaStreams streams = new KafkaStreams(Topologies.of(configs, processed), configs);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ended.countDown();
            streams.close(CLOSE);
        }));
        streams.start();
        Figures figures = new Figures(streams, processed);
        while (!ended.await(INTERVAL.toMillis(), TimeUnit.MILLISECONDS)) {
            System.out.println(figures.line());
            KafkaStreams.State state = streams.state();
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
}
