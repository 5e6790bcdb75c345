// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The topologies of the memory calibration. Keys and values are bytes; a value begins with the key of another record, which
 * foreign-key and global joins use.
 *
 * <p>Arguments: {@code app.left} and {@code app.right}, the input topics, the second for joins; {@code app.output}, a topic to
 * which all input is copied, or none; {@code app.stores}, the number of stores of a task of {@code key-value}; {@code
 * app.suppress.bytes}, the size of a suppress buffer.
 */
final class MeasuredTopologies {
    private static final int KEY = 16;
    private static final Duration WINDOW = Duration.ofMinutes(2);
    private static final Duration GRACE = Duration.ofMinutes(2);
    private static final Duration GAP = Duration.ofMinutes(1);
    private static final Duration HISTORY = Duration.ofMinutes(10);

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Properties configs;
    private final LongAdder processed;

    private MeasuredTopologies(Properties configs, LongAdder processed) {
        this.configs = configs;
        this.processed = processed;
    }

    /** The topology of that name. It counts the input records in {@code processed}. */
    static Topology of(String name, Properties configs, LongAdder processed) {
        MeasuredTopologies topologies = new MeasuredTopologies(configs, processed);
        topologies.build(name);
        return topologies.builder.build(configs);
    }

    private void build(String name) {
        switch (name) {
            case "key-value" -> keyValue(left(), Integer.parseInt(configs.getProperty("app.stores", "1")));
            case "window" -> window(left());
            case "mixed" -> mixed();
            case "session" -> session();
            case "join" -> join();
            case "foreign-key" -> foreignKey();
            case "versioned" -> versioned();
            case "global" -> global();
            case "suppress" -> suppress();
            default -> throw new IllegalArgumentException("unknown app.topology \"" + name + "\"");
        }
    }

    /** Stores latest-0, latest-1, ...: each the latest value of every key. */
    private void keyValue(KStream<byte[], byte[]> in, int stores) {
        for (int i = 0; i < stores; i++) {
            in.groupByKey().reduce((before, now) -> now, Materialized.as("latest-" + i));
        }
        String output = configs.getProperty("app.output");
        if (output != null) {
            in.to(output, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        }
    }

    private void window(KStream<byte[], byte[]> in) {
        in.groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
                .reduce((before, now) -> now, Materialized.as("windows"));
    }

    private void mixed() {
        KStream<byte[], byte[]> in = left();
        keyValue(in, 1);
        window(in);
    }

    private void session() {
        left().groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, GRACE))
                .reduce((before, now) -> now, Materialized.as("sessions"));
    }

    /** A left join of two streams: two window stores, and the list of records without a counterpart. */
    private void join() {
        left().leftJoin(
                right(),
                (left, right) -> left,
                JoinWindows.ofTimeDifferenceAndGrace(GAP, GAP),
                StreamJoined.with(Serdes.ByteArray(), Serdes.ByteArray(), Serdes.ByteArray()).withStoreName("join"));
    }

    private void foreignKey() {
        KTable<byte[], byte[]> left = left().toTable(Materialized.as("left"));
        KTable<byte[], byte[]> right = right().toTable(Materialized.as("right"));
        left.leftJoin(right, MeasuredTopologies::other, (mine, theirs) -> mine, Materialized.as("joined"));
    }

    private void versioned() {
        left().toTable(Materialized.as(Stores.persistentVersionedKeyValueStore("versions", HISTORY)));
    }

    private void global() {
        GlobalKTable<byte[], byte[]> table = builder.globalTable(
                configs.getProperty("app.right"),
                Materialized.<byte[], byte[], KeyValueStore<Bytes, byte[]>>as("reference"));
        KStream<byte[], byte[]> joined = left().join(table, (key, value) -> other(value), (mine, theirs) -> mine);
        keyValue(joined, 1);
    }

    private void suppress() {
        long bytes = Long.parseLong(configs.getProperty("app.suppress.bytes"));
        left().groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
                .reduce((before, now) -> now, Materialized.as("windows"))
                .suppress(Suppressed.untilTimeLimit(WINDOW, BufferConfig.maxBytes(bytes).emitEarlyWhenFull()));
    }

    private KStream<byte[], byte[]> left() {
        return input("app.left");
    }

    private KStream<byte[], byte[]> right() {
        return input("app.right");
    }

    private KStream<byte[], byte[]> input(String name) {
        return builder.stream(configs.getProperty(name), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .peek((key, value) -> processed.increment());
    }

    private static byte[] other(byte[] value) {
        return value.length < KEY ? ByteBuffer.allocate(KEY).array() : Arrays.copyOf(value, KEY);
    }
}
