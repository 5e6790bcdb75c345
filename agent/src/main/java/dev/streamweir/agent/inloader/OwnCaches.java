// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** The caches of the application in use instead of the shared one, with the number of open stores of each. */
final class OwnCaches {
    /** By the cache, or by the store if only that uses the cache. */
    private final Map<Object, OwnCache> caches = new IdentityHashMap<>();

    synchronized void opened(Object key, long capacity) {
        caches.computeIfAbsent(key, none -> new OwnCache(capacity)).stores++;
    }

    /** Counts a closed store. It is the only one of its key, or one of those of its cache. */
    synchronized void closed(OpenStore store) {
        Object key = caches.containsKey(store) ? store : store.ownCache;
        OwnCache cache = caches.get(key);
        if (cache != null && --cache.stores == 0) {
            caches.remove(key);
        }
    }

    /** Returns the list {@link Messages#OWN_CACHES}. */
    synchronized List<Object> report() {
        List<Object> list = new ArrayList<>();
        for (OwnCache cache : caches.values()) {
            Map<String, Object> map = new HashMap<>();
            map.put(Messages.CAPACITY, cache.capacity);
            map.put(Messages.STORES, cache.stores);
            list.add(map);
        }
        return list;
    }
}
