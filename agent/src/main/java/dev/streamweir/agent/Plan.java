// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/** The content of plan.v1.properties. The operator writes the file with package agent/planfile. All amounts are bytes. */
final class Plan {
    /** The configs of Kafka Streams and its clients that a plan may set, without prefix. A plan can never set another config. */
    static final Set<String> CONFIGS = Set.of(
            "statestore.cache.max.bytes", "cache.max.bytes.buffering", "buffered.records.per.partition",
            "buffer.memory", "fetch.max.bytes", "max.partition.fetch.bytes", "max.poll.records");

    private static final String STREAMS_PREFIX = "streams.";

    /** The largest valid amount, 1 PiB: a larger one is a mistake and would overflow in a multiplication. */
    private static final long LARGEST = 1L << 50;

    /** The limit and the heap that the plan assumes; 0: not in the plan. */
    final long limit;
    final long heap;
    final long cache;
    final long writeBufferManager;
    /** 0: not in the plan. */
    final long arenaBlock;
    final long writeBuffer;
    /** Whether the shared cache replaces the application's own caches. */
    final boolean replaceCaches;
    /** Configs of Kafka Streams and its clients, with prefixes. */
    final Map<String, String> settings;
    /** Identifies the content of the plan. */
    final String revision;

    private Plan(Properties from, String revision) {
        this.revision = revision;
        limit = amount(from, "limit.bytes");
        heap = amount(from, "heap.bytes");
        cache = amount(from, "rocksdb.cache.bytes");
        writeBufferManager = Math.min(amount(from, "rocksdb.write.buffer.manager.bytes"), cache);
        arenaBlock = amount(from, "rocksdb.arena.block.bytes");
        writeBuffer = amount(from, "rocksdb.write.buffer.bytes");
        replaceCaches = "true".equals(from.getProperty("rocksdb.replace.caches"));
        settings = settingsOf(from);
        if (cache <= 0 || writeBufferManager <= 0) {
            throw new IllegalArgumentException("rocksdb.cache.bytes and rocksdb.write.buffer.manager.bytes are required");
        }
    }

    /** Parses a plan. One invalid value makes the whole plan invalid: the IllegalArgumentException names it. */
    static Plan of(Properties properties, String revision) {
        return new Plan(properties, revision);
    }

    private static long amount(Properties from, String key) {
        String value = from.getProperty(key);
        if (value == null) {
            return 0;
        }
        try {
            long amount = Long.parseLong(value.trim());
            if (amount > 0 && amount <= LARGEST) {
                return amount;
            }
        } catch (NumberFormatException malformed) {
            // The exception below covers this case.
        }
        throw new IllegalArgumentException(key + "=" + value + " must be a number from 1 to " + LARGEST);
    }

    private static Map<String, String> settingsOf(Properties from) {
        Map<String, String> settings = new HashMap<>();
        for (String key : from.stringPropertyNames()) {
            if (key.startsWith(STREAMS_PREFIX)) {
                String name = key.substring(STREAMS_PREFIX.length());
                if (CONFIGS.contains(Setting.bare(name))) { // a newer operator may write others
                    checkAmountOrZero(from, key);
                    settings.put(name, from.getProperty(key).trim());
                }
            }
        }
        return Collections.unmodifiableMap(settings);
    }

    /** Checks the value of a setting. Zero is valid: a record cache may have 0 bytes. */
    private static void checkAmountOrZero(Properties from, String key) {
        if (!"0".equals(from.getProperty(key).trim())) {
            amount(from, key);
        }
    }
}
