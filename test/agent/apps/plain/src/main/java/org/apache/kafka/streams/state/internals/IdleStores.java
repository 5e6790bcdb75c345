// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package org.apache.kafka.streams.state.internals;

import dev.streamweir.agenttest.Commands;
import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.internals.metrics.RocksDBMetricsRecorder;
import org.rocksdb.Cache;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.Statistics;

/**
 * Stores of Kafka Streams after a restore: their memtables are full, and only the first store has writes from then on. It needs no broker, and
 * is in this package because {@code RocksDBStore.openDB} is not public. Arguments: the number of stores. Commands: {@link #apply}.
 */
public final class IdleStores {
    private static final int VALUE_BYTES = 1000;
    /** A restore writes the records of a poll, 1,000 by default, as one batch. */
    private static final int BATCH = 1000;
    private static final int BATCHES = 3;
    private static final int NANOS_PER_MILLI = 1_000_000;

    private final Random random = new Random(1);
    private final List<RocksDBStore> stores = new ArrayList<>();
    private final Map<String, Object> configs;
    private final File folder = Files.createTempDirectory("idle-stores").toFile();

    /** Metrics require a task. */
    private static final class NoMetrics extends RocksDBMetricsRecorder {
        NoMetrics() {
            super("none", "none");
        }

        @Override
        public void addValueProviders(String segment, RocksDB db, Cache cache, Statistics statistics) {}

        @Override
        public void removeValueProviders(String segment) {}
    }

    private IdleStores(int count) throws Exception {
        Map<String, Object> own = new HashMap<>();
        own.put(StreamsConfig.APPLICATION_ID_CONFIG, "idle-stores");
        own.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        own.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "INFO");
        configs = new StreamsConfig(own).originals();
        for (int i = 0; i < count; i++) {
            RocksDBStore store = new RocksDBStore("store-" + i, "rocksdb", new NoMetrics());
            store.openDB(configs, folder);
            stores.add(store);
        }
        for (int i = 0; i < BATCHES; i++) {
            for (RocksDBStore store : stores) {
                store.putAll(batch(i));
            }
        }
    }

    /** Restores the stores and executes the commands on standard input. */
    public static void main(String[] args) throws Exception {
        IdleStores all = new IdleStores(Integer.parseInt(args[0]));
        Commands.run(all::apply);
    }

    private List<KeyValue<Bytes, byte[]>> batch(int number) {
        List<KeyValue<Bytes, byte[]>> batch = new ArrayList<>();
        for (int i = 0; i < BATCH; i++) {
            batch.add(KeyValue.pair(key(number * BATCH + i), value()));
        }
        return batch;
    }

    private static Bytes key(int number) {
        return Bytes.wrap(Integer.toString(number).getBytes());
    }

    private byte[] value() {
        byte[] value = new byte[VALUE_BYTES];
        random.nextBytes(value);
        return value;
    }

    /**
     * Executes "writes N", which reads and writes the first store N times and returns its new versions; "rate N", which does so for N ms and
     * returns the writes in a second; "reopen", which closes and opens all other stores; or "stop".
     */
    private String apply(String command) {
        String[] words = command.split(" ");
        try {
            switch (words[0]) {
                case "writes":
                    return newVersions(Integer.parseInt(words[1]));
                case "rate":
                    return rate(Integer.parseInt(words[1]) * (long) NANOS_PER_MILLI);
                case "reopen":
                    for (RocksDBStore store : stores.subList(1, stores.size())) {
                        store.close();
                        store.openDB(configs, folder);
                        store.putAll(batch(0));
                    }
                    return "reopened";
                case "stop":
                    stores.forEach(RocksDBStore::close);
                    return "stopped";
                default:
                    return "error: " + command;
            }
        } catch (Exception failure) {
            return "error: " + failure + Arrays.toString(failure.getStackTrace());
        }
    }

    /** Writes to the first store. Each flush and each compaction adds a version to a database. */
    private String newVersions(int writes) throws RocksDBException {
        long before = version();
        for (int i = 0; i < writes; i++) {
            write();
        }
        return Long.toString(version() - before);
    }

    private long version() throws RocksDBException {
        return stores.get(0).db.getLongProperty("rocksdb.current-super-version-number");
    }

    private String rate(long duration) {
        long begin = System.nanoTime();
        long writes = 0;
        while (System.nanoTime() - begin < duration) {
            write();
            writes++;
        }
        return Long.toString(writes * 1000 * NANOS_PER_MILLI / (System.nanoTime() - begin));
    }

    private void write() {
        Bytes key = key(random.nextInt(BATCH));
        stores.get(0).get(key);
        stores.get(0).put(key, value());
    }
}
