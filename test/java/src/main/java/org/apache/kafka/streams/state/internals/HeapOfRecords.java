// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package org.apache.kafka.streams.state.internals;

import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/**
 * Compares the heap memory of a record with its serialized size: in a record queue, in the record cache, and in a store on the heap. It
 * fills the real structures of Kafka Streams and compares the used heap after full collections. It is in this package because the cache's
 * entries are package-private.
 */
public final class HeapOfRecords {
    private static final int COUNT = 200_000;
    private static final int PER_BATCH = 50;
    private static final int MOST_BYTES = 200_000_000;
    private static final String TOPIC = "orders-by-customer";

    /** Keeps the records reachable, so that they are not collected. */
    private static Object held;

    private HeapOfRecords() { }

    /** Fills a structure with records and returns it. */
    private interface Structure {
        Object fill(int keySize, int valueSize);
    }

    public static void main(final String[] args) {
        final int[][] sizes = {{8, 16}, {16, 100}, {32, 1000}, {32, 10_000}};
        System.out.println("java " + System.getProperty("java.version") + ", bytes an entry");
        System.out.println("| key + value | record queue | clean cached, counted | clean cached | dirty cached, counted | dirty cached | in-memory store |");
        System.out.println("|---|---|---|---|---|---|---|");
        for (final int[] size : sizes) {
            final int count = Math.min(COUNT, MOST_BYTES / (size[0] + size[1]) / PER_BATCH * PER_BATCH);
            final long queue = measure(size, (k, v) -> queue(k, v, count), count);
            final long clean = measure(size, (k, v) -> cache(k, v, count, false), count);
            final long cleanCounted = ((ThreadCache) held).sizeBytes() / count;
            final long dirty = measure(size, (k, v) -> cache(k, v, count, true), count);
            final long dirtyCounted = ((ThreadCache) held).sizeBytes() / count;
            final long store = measure(size, (k, v) -> store(k, v, count), count);
            System.out.printf("| %d + %d | %d | %d | %d | %d | %d | %d |%n", size[0], size[1], queue, cleanCounted, clean, dirtyCounted, dirty, store);
        }
    }

    /** The records as the consumer returns them: parsed from batches, with copies of keys and values (CompletedFetch.parseRecord). */
    private static Object queue(final int keySize, final int valueSize, final int count) {
        final ArrayDeque<ConsumerRecord<byte[], byte[]>> queue = new ArrayDeque<>();
        for (int from = 0; from < count; from += PER_BATCH) {
            final SimpleRecord[] batch = new SimpleRecord[PER_BATCH];
            for (int i = 0; i < PER_BATCH; i++) {
                batch[i] = new SimpleRecord(1_700_000_000_000L + i, key(from + i, keySize), new byte[valueSize]);
            }
            for (final Record r : MemoryRecords.withRecords(Compression.NONE, batch).records()) {
                queue.add(new ConsumerRecord<>(TOPIC, 0, from + r.offset(), r.timestamp(), TimestampType.CREATE_TIME, r.keySize(), r.valueSize(),
                    Utils.toArray(r.key()), Utils.toArray(r.value()), new RecordHeaders(r.headers()), Optional.of(7)));
            }
        }
        return queue;
    }

    /** Entries of the record cache; a dirty one also keeps key and value of the source record (sourceRawKey, sourceRawValue). */
    private static Object cache(final int keySize, final int valueSize, final int count, final boolean dirty) {
        final ThreadCache cache = new ThreadCache(new LogContext(), Long.MAX_VALUE, new StreamsMetricsImpl(new Metrics(), "client", Time.SYSTEM));
        for (int i = 0; i < count; i++) {
            final LRUCacheEntry entry = dirty
                ? new LRUCacheEntry(new byte[valueSize], new RecordHeaders(), true, i, 1_700_000_000_000L + i, 0, TOPIC, key(i, keySize), new byte[valueSize])
                : new LRUCacheEntry(new byte[valueSize]);
            cache.put("0_0-counts", Bytes.wrap(key(i, keySize)), entry);
        }
        return cache;
    }

    /** Entries of an in-memory key-value store, which is a TreeMap. */
    private static Object store(final int keySize, final int valueSize, final int count) {
        final TreeMap<Bytes, byte[]> store = new TreeMap<>();
        for (int i = 0; i < count; i++) {
            store.put(Bytes.wrap(key(i, keySize)), new byte[valueSize]);
        }
        return store;
    }

    private static byte[] key(final int n, final int size) {
        final byte[] key = new byte[size];
        for (int i = 0; i < 4; i++) {
            key[i] = (byte) (n >>> (8 * i));
        }
        return key;
    }

    private static long measure(final int[] size, final Structure structure, final int count) {
        held = null;
        final long before = used();
        held = structure.fill(size[0], size[1]);
        return (used() - before + count / 2) / count;
    }

    private static long used() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
