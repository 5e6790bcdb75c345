// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.Options;
import org.rocksdb.TableFormatConfig;

/** The RocksDB stores of one loader: applies the shared bounds to each, and counts them. */
final class BoundedStores {
    private final BiFunction<String, Object[], Object> agent;
    private final OwnCaches ownCaches = new OwnCaches();
    private final AtomicLong opened = new AtomicLong();
    private final AtomicLong closed = new AtomicLong();
    private SharedBounds shared;
    private boolean decided;

    BoundedStores(BiFunction<String, Object[], Object> agent) {
        this.agent = agent;
    }

    void addFinding(String reason, String message) {
        send(Messages.FINDING, reason, message);
    }

    /**
     * Applies the bounds to the options of a store that is about to open. Returns the application's own cache if the store keeps it, else null.
     *
     * @param initial the options of Kafka Streams, null if they could not be read
     */
    Cache bound(Options options, InitialOptions initial) {
        SharedBounds bounds = sharedBounds();
        long open = opened.incrementAndGet() - closed.get();
        if (bounds == null || initial == null) {
            return null;
        }
        boolean replacesCaches = Boolean.TRUE.equals(send(Messages.REPLACES_CACHES));
        Cache ownCache = applyCache(options, initial, bounds, replacesCaches);
        if (replacesCaches || options.writeBufferManager() == null) {
            options.setWriteBufferManager(bounds.writeBuffers);
        }
        long[] sizes = (long[]) send(Messages.STORE_SIZES, open);
        if (sizes[0] > 0 && options.arenaBlockSize() == initial.arenaBlock) {
            options.setArenaBlockSize(sizes[0]);
        }
        if (sizes[1] > 0 && options.writeBufferSize() == initial.writeBuffer) {
            options.setWriteBufferSize(sizes[1]);
        }
        return ownCache;
    }

    /**
     * Replaces the cache of Kafka Streams by the shared one. Kafka Streams still closes its own. Returns the application's own cache if the store
     * keeps it, else null.
     */
    private Cache applyCache(Options options, InitialOptions initial, SharedBounds bounds, boolean replacesCaches) {
        TableFormatConfig format = options.tableFormatConfig();
        Cache present = InitialOptions.cacheOf(format);
        if (present == null) {
            return null;
        }
        if (present != initial.cache && !replacesCaches) {
            ownCaches.opened(present);
            return present;
        }
        BlockBasedTableConfig table = (BlockBasedTableConfig) format;
        table.setBlockCache(bounds.cache);
        table.setCacheIndexAndFilterBlocks(true);
        table.setCacheIndexAndFilterBlocksWithHighPriority(true);
        table.setPinTopLevelIndexAndFilter(true);
        options.setTableFormatConfig(table);
        return null;
    }

    /** Counts a closed store. */
    void closed(Cache ownCache) {
        closed.incrementAndGet();
        if (ownCache != null) {
            ownCaches.closed(ownCache);
        }
    }

    /**
     * Returns the shared bounds, created before the first store opens; null if RocksDB stays unbounded. The result never changes, because the
     * segments of one store must not differ.
     */
    private synchronized SharedBounds sharedBounds() {
        if (!decided) {
            decided = true;
            shared = createShared();
            if (shared != null) {
                send(Messages.BOUNDS_ACTIVE);
            }
        }
        return shared;
    }

    private SharedBounds createShared() {
        try {
            long[] bounds = (long[]) send(Messages.BOUNDS);
            return bounds == null ? null : new SharedBounds(bounds[0], bounds[1]);
        } catch (Throwable failure) {
            send(Messages.BOUNDS_FAILED, failure.toString());
            return null;
        }
    }

    /** Returns the figures of this loader for the map {@code rocksdb} of the report. */
    Map<String, Object> figures() {
        Map<String, Object> figures = new HashMap<>();
        figures.put(Messages.OPENED, opened.get());
        figures.put(Messages.CLOSED, closed.get());
        SharedBounds bounds = currentBounds();
        if (bounds != null) {
            figures.put(Messages.CACHE_CAPACITY, bounds.capacity);
            figures.put(Messages.CACHE_USAGE, usage(bounds.cache, "getUsage"));
            figures.put(Messages.CACHE_PINNED, usage(bounds.cache, "getPinnedUsage"));
        }
        List<Object> own = new ArrayList<>();
        ownCaches.copy().forEach((cache, stores) -> {
            Map<String, Object> entry = new HashMap<>();
            entry.put(Messages.CAPACITY, send(Messages.CAPACITY_OF, cache));
            entry.put(Messages.STORES, stores);
            own.add(entry);
        });
        figures.put(Messages.OWN_CACHES, own);
        return figures;
    }

    private synchronized SharedBounds currentBounds() {
        return shared;
    }

    /** Returns the usage of the shared cache. It is never closed, so reading it is safe. RocksJava has the method since 6.x. */
    private static long usage(Cache cache, String method) {
        try {
            Method usage = Cache.class.getMethod(method);
            return (Long) usage.invoke(cache);
        } catch (ReflectiveOperationException old) {
            return 0;
        }
    }

    private Object send(String message, Object... arguments) {
        return agent.apply(message, arguments);
    }
}
