// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

/**
 * How much native memory RocksDB may take in this process. All amounts are bytes. The rule is that of memplan/bounded.go: a cache with
 * memtables in it takes 1.5 times its capacity (1.30 x cache + 0.5 x write buffer manager, which has two fifths of the cache), and 32 MiB.
 */
final class Bounds {
    private static final long MIB = 1L << 20;

    /** The process beside heap and stores: memplan.Bootstrap's lines for metaspace, code, JIT, stacks, sockets and kernel, and 32 MiB of RocksDB. */
    private static final long PROCESS = 300 * MIB;
    /** The page cache without which a JVM stalls: memplan's default policy. */
    private static final long PAGE_CACHE = 48 * MIB;
    /** From here on the JVM chooses G1 (os::is_server_class_machine). */
    private static final long SERVER_CLASS = 1792 * MIB;
    /** Below this an LRUCache has fewer shards (memplan's minCache); a smaller container gets a sixteenth of its limit. */
    private static final long LEAST_CACHE = 32 * MIB;
    /** What nothing is taken away from: a cache of this size still holds the index blocks of small stores. */
    private static final long FLOOR = 8 * MIB;
    /** Limits of the arena block, and how many of them fit into a column family's share: memplan/bounded.go. */
    private static final long LEAST_ARENA = 16 << 10;
    private static final long LARGEST_ARENA = MIB;
    private static final long ARENAS_PER_FAMILY = 4;
    /** What the offsets column family of Kafka Streams 4.3 charges for each instance: memplan/bounded.go. */
    private static final long OFFSETS = 256 << 10;
    /** Column families with data in a timestamped store (RocksDBTimestampedStore). */
    private static final long FAMILIES = 2;
    /** Stores that a process is prepared for before it is known how many there will be. */
    private static final long FIRST_STORES = 64;

    final long cache;
    final long writeBufferManager;
    /** Plan, Clamped or Bootstrap: PlanSource in assignment/report.go. */
    final String source;

    private Bounds(long cache, long writeBufferManager, String source) {
        this.cache = cache;
        this.writeBufferManager = Math.min(writeBufferManager, cache);
        this.source = source;
    }

    /**
     * The bounds of a process.
     *
     * @param plan the mounted plan, null if there is none
     * @param limit the cgroup's limit, else the machine's memory
     * @param heap the largest heap that the JVM can have
     */
    static Bounds of(Plan plan, long limit, long heap) {
        if (plan == null) {
            long cache = bootstrap(limit, heap);
            return new Bounds(cache, cache / 5 * 2, "Bootstrap");
        }
        if (plan.cache > limit - heap) { // whatever limit it says that it was made for, if any: it was not made for this process
            long cache = Math.min(plan.cache, bootstrap(limit, heap));
            return new Bounds(cache, Math.min(plan.writeBufferManager, Math.max(cache / 5 * 2, 1)), "Clamped");
        }
        long missing = Math.max(0, plan.limit - limit) + (plan.heap == 0 ? 0 : Math.max(0, heap - plan.heap));
        if (plan.limit == 0 || missing == 0) {
            return new Bounds(plan.cache, plan.writeBufferManager, "Plan");
        }
        long cache = Math.max(Math.min(FLOOR, plan.cache), plan.cache - missing / 3 * 2);
        long manager = (long) (plan.writeBufferManager * ((double) cache / plan.cache));
        return new Bounds(cache, Math.max(manager, Math.min(MIB, plan.writeBufferManager)), "Clamped"); // a manager of 0 bounds nothing
    }

    /** What is left for the cache if nothing but the limit and the heap is known. */
    private static long bootstrap(long limit, long heap) {
        long headroom = limit / 10;
        long collector = limit < SERVER_CLASS ? heap / 200 : 39 * MIB + heap / 23; // Serial, G1: memplan/process.go
        long left = limit - headroom - heap - collector - PROCESS - Math.max(PAGE_CACHE, limit / 20) - limit / 512;
        return Math.max(left / 3 * 2, Math.min(LEAST_CACHE, Math.max(FLOOR, limit / 16)));
    }

    /**
     * What a further class loader gets with bounds of its own: what the limit leaves beside the first.
     */
    static Bounds further(long taken, long limit, long heap) {
        long cache = Math.max(FLOOR, bootstrap(limit, heap) - taken);
        return new Bounds(cache, cache / 5 * 2, "Bootstrap");
    }

    /** The arena block for the next store, of which so many are open: the plan's, in proportion to what is in force, else from the stores. */
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
