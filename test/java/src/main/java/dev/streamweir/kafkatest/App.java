// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * One instance of a Kafka Streams application with a key-value, a windowed and a join store.
 *
 * <p>Each argument is {@code key=value}: a config of Kafka Streams or of its clients, taken as it is, or one of
 * {@code input.orders}, {@code input.payments} and {@code input.clicks}, the input topics. Orders and payments are
 * joined, so they must have the same number of partitions.
 *
 * <p>Standard output holds one line of JSON for each change of what this instance runs, and nothing else.
 */
public final class App {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(10);

    private App() {}

    /** Runs until the process is told to end (SIGTERM closes the instance) or all stream threads are dead. */
    public static void main(String[] args) throws InterruptedException {
        Properties configs = parse(args);
        KafkaStreams streams = new KafkaStreams(topology(configs), configs);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ended.countDown();
            streams.close(CLOSE);
        }));
        streams.start();
        String last = "";
        while (!ended.await(POLL.toMillis(), TimeUnit.MILLISECONDS)) {
            KafkaStreams.State state = streams.state();
            String now = describe(state, streams);
            if (!now.equals(last)) {
                System.out.println(now);
                last = now;
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

    /**
     * Two subtopologies: orders and payments share one (stores orders-by-customer, and the two of the join, under the
     * names that Kafka Streams gives them), clicks have the other (store clicks-per-minute).
     */
    private static Topology topology(Properties configs) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream(configs.getProperty("input.orders"));
        KStream<String, String> payments = builder.stream(configs.getProperty("input.payments"));
        KStream<String, String> clicks = builder.stream(configs.getProperty("input.clicks"));

        orders.groupByKey().count(Materialized.as("orders-by-customer"));
        orders.join(
                payments,
                (order, payment) -> order + "/" + payment,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(5)));
        clicks.groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
                .count(Materialized.as("clicks-per-minute"));
        return builder.build(configs);
    }

    /** The state, and the tasks that the stream threads have in it. */
    private static String describe(KafkaStreams.State state, KafkaStreams streams) {
        TreeSet<String> active = new TreeSet<>();
        TreeSet<String> standby = new TreeSet<>();
        int threads = 0;
        if (state == KafkaStreams.State.RUNNING) {
            for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                threads++;
                thread.activeTasks().forEach(task -> active.add(task.taskId().toString()));
                thread.standbyTasks().forEach(task -> standby.add(task.taskId().toString()));
            }
        }
        List<String> fields = new ArrayList<>();
        fields.add("\"state\":\"" + state + "\"");
        fields.add("\"threads\":" + threads);
        fields.add("\"active\":" + array(active));
        fields.add("\"standby\":" + array(standby));
        return "{" + String.join(",", fields) + "}";
    }

    private static String array(TreeSet<String> tasks) {
        return tasks.stream().map(task -> "\"" + task + "\"").collect(Collectors.joining(",", "[", "]"));
    }
}
