// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/**
 * A plan as plan.v1.properties says it. The keys are those of memplan/bounded.go, memplan/derive.go and
 * controllers/convert.go; all amounts are bytes.
 */
final class Plan {
    /** What a plan may set of Kafka Streams and its clients, without prefix. A plan can never set anything else. */
    static final Set<String> KEYS = Set.of(
            "statestore.cache.max.bytes", "cache.max.bytes.buffering", "buffered.records.per.partition",
            "buffer.memory", "fetch.max.bytes", "max.partition.fetch.bytes", "max.poll.records");

    /** The most that an amount may be, 1 PiB: more is a mistake, and would overflow where it is multiplied. */
    private static final long MOST = 1L << 50;

    /** The limit and the heap that the plan was made for; 0: not said. */
    final long limit;
    final long heap;
    final long cache;
    final long writeBufferManager;
    /** 0: not said. */
    final long arenaBlock;
    final long writeBuffer;
    /** The application's own caches are replaced. */
    final boolean replaceCaches;
    /** Settings of Kafka Streams and its clients, prefixes included. */
    final Map<String, String> settings;
    /** The name of the plan's content. */
    final String generation;

    private Plan(Properties from, String generation) {
        this.generation = generation;
        limit = amount(from, "limit.bytes");
        heap = amount(from, "heap.bytes");
        cache = amount(from, "rocksdb.cache.bytes");
        writeBufferManager = Math.min(amount(from, "rocksdb.write.buffer.manager.bytes"), cache);
        arenaBlock = amount(from, "rocksdb.arena.block.bytes");
        writeBuffer = amount(from, "rocksdb.write.buffer.bytes");
        replaceCaches = "true".equals(from.getProperty("rocksdb.replace.caches"));
        settings = settingsOf(from);
        if (cache <= 0 || writeBufferManager <= 0) {
            throw new IllegalArgumentException("rocksdb.cache.bytes and rocksdb.write.buffer.manager.bytes must be there");
        }
    }

    /** Reads a plan. It is taken as a whole or not at all: an IllegalArgumentException says what is wrong. */
    static Plan of(Properties properties, String generation) {
        return new Plan(properties, generation);
    }

    private static long amount(Properties from, String key) {
        String value = from.getProperty(key);
        if (value == null) {
            return 0;
        }
        try {
            long amount = Long.parseLong(value.trim());
            if (amount > 0 && amount <= MOST) {
                return amount;
            }
        } catch (NumberFormatException notOne) {
            // said below
        }
        throw new IllegalArgumentException(key + "=" + value + " must be a number from 1 to " + MOST);
    }

    private static Map<String, String> settingsOf(Properties from) {
        Map<String, String> settings = new HashMap<>();
        for (String key : from.stringPropertyNames()) {
            if (key.startsWith("streams.")) {
                String name = key.substring("streams.".length());
                if (KEYS.contains(Setting.bare(name))) { // another is of a newer plan
                    amountOrZero(from, key);
                    settings.put(name, from.getProperty(key).trim());
                }
            }
        }
        return Collections.unmodifiableMap(settings);
    }

    /** Checks a setting: a record cache may be 0 bytes. */
    private static void amountOrZero(Properties from, String key) {
        if (!"0".equals(from.getProperty(key).trim())) {
            amount(from, key);
        }
    }
}
