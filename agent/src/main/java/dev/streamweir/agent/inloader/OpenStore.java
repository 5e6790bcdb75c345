// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import org.rocksdb.Cache;

/** One RocksDB instance, from the call of its setter to its close. */
final class OpenStore {
    final String name;
    /** The cache of the application that the store keeps; null with the shared cache, and if the agent cannot know the cache. */
    final Cache ownCache;
    /** Whether the store has the shared cache. */
    final boolean shared;
    /** Whether the store is open: a failed open is not counted. */
    boolean open;
    /** Whether its memtables are charged to the shared write buffer manager. */
    boolean sharesWriteBuffers;
    /** Its memtables; null before it is open, and if they are not charged to the shared write buffer manager. */
    Memtable memtable;

    OpenStore(String name, boolean shared, Cache ownCache) {
        this.name = name;
        this.shared = shared;
        this.ownCache = ownCache;
    }
}
