// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/** The one cache of all stores of a loader, and the manager of their memtables, charged to it. Neither is ever closed or replaced. */
final class SharedBounds {
    /** A shard holds the index block of a file of 390 MiB: an entry of 84 B (memplan: indexEntry, longestKey) for each block of 4 KiB. */
    private static final long SHARD = 8L << 20;
    /** RocksDB makes no more shards by itself (LRUCacheOptions). */
    private static final int MOST_SHARD_BITS = 6;
    /** The part of the cache where index and filter blocks are safe from data blocks: the default of LRUCacheOptions from 6.x on. */
    private static final double HIGH_PRIORITY = 0.5;

    final Cache cache;
    final WriteBufferManager writeBuffers;
    final long capacity;

    SharedBounds(long capacity, long writeBufferManager) {
        RocksDB.loadLibrary();
        this.capacity = capacity;
        // Not strict: a strict cache fails reads when all of it is pinned, and with them stream threads.
        cache = new LRUCache(capacity, shardBits(capacity), false, HIGH_PRIORITY);
        writeBuffers = new WriteBufferManager(writeBufferManager, cache);
    }

    private static int shardBits(long capacity) {
        int bits = 0;
        while (bits < MOST_SHARD_BITS && capacity >> (bits + 1) >= SHARD) {
            bits++;
        }
        return bits;
    }
}
