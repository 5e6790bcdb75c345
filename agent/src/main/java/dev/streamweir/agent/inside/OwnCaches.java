// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.rocksdb.Cache;

/** The caches that the application's own setter has put in place of the shared one, with the number of open stores that use each. */
final class OwnCaches {
    private final Map<Cache, Integer> stores = new IdentityHashMap<>();

    synchronized void opened(Cache cache) {
        stores.merge(cache, 1, Integer::sum);
    }

    synchronized void closed(Cache cache) {
        stores.computeIfPresent(cache, (key, count) -> count > 1 ? count - 1 : null);
    }

    /** Cache and number in turn. */
    synchronized List<Object[]> list() {
        List<Object[]> all = new ArrayList<>();
        stores.forEach((cache, count) -> all.add(new Object[] {cache, count}));
        return all;
    }
}
