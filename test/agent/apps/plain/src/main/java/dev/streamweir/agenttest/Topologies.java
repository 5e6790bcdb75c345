// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The topology of all applications: a key-value store "counts" and a window store "windows" of one minute. */
public final class Topologies {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private Topologies() {}

    /** Builds the topology. It counts the processed records. */
    public static Topology build(Properties configs, AtomicLong records) {
        StreamsBuilder builder = new StreamsBuilder();
        add(builder, configs, records);
        return builder.build(configs);
    }

    /** Adds the topology to a builder. */
    public static void add(StreamsBuilder builder, Properties configs, AtomicLong records) {
        KStream<String, String> input =
                builder.stream(configs.getProperty("app.topic"), Consumed.with(Serdes.String(), Serdes.String()));
        Grouped<String, String> strings = Grouped.with(Serdes.String(), Serdes.String());
        input.groupByKey(strings).count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()));
        long retention = Long.parseLong((String) configs.getOrDefault("app.retention.seconds", "120"));
        input.groupByKey(strings)
                .windowedBy(minutes())
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows")
                        .withKeySerde(Serdes.String())
                        .withRetention(Duration.ofSeconds(retention)));
        input.foreach((key, value) -> records.incrementAndGet());
    }

    /** Returns windows of a minute without grace. Kafka 4.0 removed TimeWindows.of; its replacement exists since 3.0. */
    private static TimeWindows minutes() {
        try {
            try {
                return (TimeWindows) TimeWindows.class.getMethod("ofSizeWithNoGrace", Duration.class).invoke(null, MINUTE);
            } catch (NoSuchMethodException e) {
                TimeWindows windows = (TimeWindows) TimeWindows.class.getMethod("of", Duration.class).invoke(null, MINUTE);
                return (TimeWindows) TimeWindows.class.getMethod("grace", Duration.class).invoke(windows, Duration.ZERO);
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
