// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import java.util.IdentityHashMap;
import java.util.Map;
import org.rocksdb.Cache;

/** The caches of the application's own setter in use instead of the shared one, with the number of open stores of each. */
final class OwnCaches {
    private final Map<Cache, Integer> stores = new IdentityHashMap<>();

    synchronized void opened(Cache cache) {
        stores.merge(cache, 1, Integer::sum);
    }

    synchronized void closed(Cache cache) {
        stores.computeIfPresent(cache, (key, count) -> count > 1 ? count - 1 : null);
    }

    /** Returns a copy of the numbers of open stores by cache. */
    synchronized Map<Cache, Integer> copy() {
        return new IdentityHashMap<>(stores);
    }
}
