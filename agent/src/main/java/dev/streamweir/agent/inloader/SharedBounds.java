// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import java.util.function.Consumer;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/** The cache of all stores of a loader, and the manager of their memtables, charged to the cache. Neither is ever closed or replaced. */
final class SharedBounds {
    /** The smallest shard. It holds the index block of a file of 390 MiB: an entry of 84 B for each block of 4 KiB, as in memplan. */
    private static final long SMALLEST_SHARD = 8L << 20;
    /** The default limit of RocksDB (LRUCacheOptions). */
    private static final int MOST_SHARD_BITS = 6;
    /** The part of the cache reserved for index and filter blocks: the default of LRUCacheOptions since 6.x. */
    private static final double HIGH_PRIORITY = 0.5;

    final Cache cache;
    final WriteBufferManager writeBuffers;
    final long capacity;
    /** The memtables of the stores that share the manager. */
    final Memtables memtables;

    /**
     * @param memtableFailed receives the reason if a memtable cannot be flushed
     */
    SharedBounds(long capacity, long writeBufferLimit, Consumer<String> memtableFailed) {
        RocksDB.loadLibrary();
        this.capacity = capacity;
        memtables = new Memtables(writeBufferLimit, memtableFailed);
        // Not strict: a strict cache fails reads when it is pinned entirely, and a failed read ends its stream thread.
        cache = new LRUCache(capacity, shardBits(capacity), false, HIGH_PRIORITY);
        writeBuffers = new WriteBufferManager(writeBufferLimit, cache);
    }

    private static int shardBits(long capacity) {
        int bits = 0;
        while (bits < MOST_SHARD_BITS && capacity >> (bits + 1) >= SMALLEST_SHARD) {
            bits++;
        }
        return bits;
    }
}
