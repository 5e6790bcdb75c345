// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.PlanSource;

/**
 * The bounds of RocksDB's native memory in this process. All amounts are bytes. Package memplan has the same rule: a cache that includes the
 * memtables takes 1.5 times its capacity (1.30 x cache + 0.5 x write buffer manager, which is two fifths of the cache) plus 32 MiB.
 */
final class Bounds {
    private static final long MIB = 1L << 20;

    /**
     * The process without heap and stores: the lines of memplan.Bootstrap for metaspace, code, JIT, stacks, sockets and kernel, plus 32 MiB for
     * RocksDB.
     */
    private static final long PROCESS = 300 * MIB;
    /** The page cache that a JVM requires to run without stalls: the default policy of memplan. */
    private static final long PAGE_CACHE = 48 * MIB;
    /** The smallest limit with G1 as the JVM's default collector (os::is_server_class_machine). */
    private static final long SERVER_CLASS = 1792 * MIB;
    /** The smallest cache, as in memplan: a smaller LRUCache has fewer shards. In a container with less memory it is a sixteenth of the limit. */
    private static final long LEAST_CACHE = 32 * MIB;
    /** The smallest cache after clamping: it still holds the index blocks of small stores. */
    private static final long FLOOR = 8 * MIB;
    /** The limits of the arena block, and the number of blocks in the share of a column family, as in memplan. */
    private static final long LEAST_ARENA = 16 << 10;
    private static final long LARGEST_ARENA = MIB;
    private static final long ARENAS_PER_FAMILY = 4;
    /** The charge of the offsets column family of Kafka Streams 4.3 for each RocksDB instance, as in memplan. */
    private static final long OFFSETS = 256 << 10;
    /** The column families with data in a timestamped store (RocksDBTimestampedStore). */
    private static final long FAMILIES = 2;
    /** The number of stores to prepare for while the real number is unknown. */
    private static final long FIRST_STORES = 64;

    final long cache;
    final long writeBufferManager;
    final PlanSource source;

    private Bounds(long cache, long writeBufferManager, PlanSource source) {
        this.cache = cache;
        this.writeBufferManager = Math.min(writeBufferManager, cache);
        this.source = source;
    }

    /**
     * Returns the bounds of a process.
     *
     * @param plan the mounted plan, null without one
     * @param limit the memory of the process: see {@link Memory#limit}
     * @param heap the largest heap of the JVM
     */
    static Bounds of(Plan plan, long limit, long heap) {
        if (plan == null) {
            long cache = bootstrap(limit, heap);
            return new Bounds(cache, cache / 5 * 2, PlanSource.BOOTSTRAP);
        }
        if (plan.cache > limit - heap) { // regardless of the limit in the plan, if any: it does not fit this process
            long cache = Math.min(plan.cache, bootstrap(limit, heap));
            return new Bounds(cache, Math.min(plan.writeBufferManager, Math.max(cache / 5 * 2, 1)), PlanSource.CLAMPED);
        }
        long missing = Math.max(0, plan.limit - limit) + (plan.heap == 0 ? 0 : Math.max(0, heap - plan.heap));
        if (plan.limit == 0 || missing == 0) {
            return new Bounds(plan.cache, plan.writeBufferManager, PlanSource.PLAN);
        }
        long cache = Math.max(Math.min(FLOOR, plan.cache), plan.cache - missing / 3 * 2);
        long manager = (long) (plan.writeBufferManager * ((double) cache / plan.cache));
        return new Bounds(cache, Math.max(manager, Math.min(MIB, plan.writeBufferManager)), PlanSource.CLAMPED); // a manager of 0 has no limit
    }

    /** Returns the largest cache if only the limit and the heap are known. */
    private static long bootstrap(long limit, long heap) {
        long headroom = limit / 10;
        long collector = limit < SERVER_CLASS ? heap / 200 : 39 * MIB + heap / 23; // Serial, G1: as in memplan
        long left = limit - headroom - heap - collector - PROCESS - Math.max(PAGE_CACHE, limit / 20) - limit / 512;
        return Math.max(left / 3 * 2, Math.min(LEAST_CACHE, Math.max(FLOOR, limit / 16)));
    }

    /** Returns the bounds of a further class loader: the memory that the cache of the first one leaves. */
    static Bounds further(long taken, long limit, long heap) {
        long cache = Math.max(FLOOR, bootstrap(limit, heap) - taken);
        return new Bounds(cache, cache / 5 * 2, PlanSource.BOOTSTRAP);
    }

    /**
     * Returns the arena block of the next store: the plan's, in proportion to the active write buffer manager, or derived from the number of open
     * stores.
     */
    long arenaBlock(Plan plan, long open) {
        if (plan != null && plan.arenaBlock > 0) {
            return aligned((long) (plan.arenaBlock * Math.min(1, (double) writeBufferManager / plan.writeBufferManager)));
        }
        long stores = Math.max(open, FIRST_STORES);
        return aligned((writeBufferManager - OFFSETS * open) / (ARENAS_PER_FAMILY * FAMILIES * stores));
    }

    private static long aligned(long block) {
        return Math.min(Math.max(block, LEAST_ARENA), LARGEST_ARENA) / 4096 * 4096;
    }
}
