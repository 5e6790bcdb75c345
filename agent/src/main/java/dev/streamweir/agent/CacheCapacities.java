// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.Map;
import java.util.WeakHashMap;

/** The capacities of RocksDB caches, in bytes. RocksJava returns no capacity, so each is recorded when its cache is created. */
final class CacheCapacities {
    private final Map<Object, Long> capacities = new WeakHashMap<>();

    synchronized void record(Object cache, long capacity) {
        capacities.put(cache, capacity);
    }

    /** Returns the capacity of a cache; 0 if it is unknown. */
    synchronized long of(Object cache) {
        return capacities.getOrDefault(cache, 0L);
    }
}
