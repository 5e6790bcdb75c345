// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.TableFormatConfig;

/**
 * The RocksDB stores of one loader: applies the shared bounds to each, checks them when it is open, and counts it. One store without the shared
 * cache or a known one of the application turns the bounds off in the report.
 */
final class BoundedStores {
    /** The capacity of the block cache of an open store. A store without a block cache does not have the property. */
    private static final String CAPACITY_PROPERTY = "rocksdb.block-cache-capacity";

    private final BiFunction<String, Object[], Object> agent;
    private final OwnCaches ownCaches = new OwnCaches();
    private final AtomicLong opened = new AtomicLong();
    private final AtomicLong closed = new AtomicLong();
    private final AtomicBoolean active = new AtomicBoolean();
    private final AtomicBoolean failed = new AtomicBoolean();
    private final AtomicBoolean memtableReported = new AtomicBoolean();
    /** The store that the calling thread is about to open. */
    private final ThreadLocal<OpenStore> opening = new ThreadLocal<>();
    private SharedBounds shared;
    private boolean decided;

    BoundedStores(BiFunction<String, Object[], Object> agent) {
        this.agent = agent;
    }

    /**
     * Applies the bounds to the options of a store that the calling thread is about to open. Returns the store. Never throws.
     *
     * @param initial the options of Kafka Streams, null if they could not be read
     */
    OpenStore bound(String name, Options options, InitialOptions initial) {
        OpenStore store = new OpenStore(name, false, null);
        try {
            SharedBounds bounds = sharedBounds();
            if (bounds != null && initial == null) {
                fail("the options of store " + name + " could not be read");
            } else if (bounds != null) {
                store = apply(name, options, initial, bounds);
            }
        } catch (Throwable failure) {
            fail("store " + name + " keeps the options of Kafka Streams or the application: " + failure);
        }
        opening.set(store);
        return store;
    }

    private OpenStore apply(String name, Options options, InitialOptions initial, SharedBounds bounds) {
        boolean replacesCaches = Boolean.TRUE.equals(send(Messages.REPLACES_CACHES));
        OpenStore store = applyCache(name, options, initial, bounds, replacesCaches);
        if (replacesCaches || options.writeBufferManager() == null) {
            options.setWriteBufferManager(bounds.writeBuffers);
            store.sharesWriteBuffers = true;
        }
        long[] sizes = (long[]) send(Messages.STORE_SIZES, opened.get() - closed.get() + 1);
        if (sizes[0] > 0 && options.arenaBlockSize() == initial.arenaBlock) {
            options.setArenaBlockSize(sizes[0]);
        }
        if (sizes[1] > 0 && options.writeBufferSize() == initial.writeBuffer) {
            options.setWriteBufferSize(sizes[1]);
        }
        return store;
    }

    /**
     * Replaces the cache of Kafka Streams by the shared one, and that of the application only if the plan requires it. Kafka Streams still closes
     * its own. A table format of the application does not give access to its cache.
     */
    private static OpenStore applyCache(
            String name, Options options, InitialOptions initial, SharedBounds bounds, boolean replacesCaches) {
        TableFormatConfig format = options.tableFormatConfig();
        Cache present = InitialOptions.cacheOf(format);
        boolean ofKafka = present != null && present == initial.cache;
        if (!(format instanceof BlockBasedTableConfig) || !(ofKafka || replacesCaches)) {
            return new OpenStore(name, false, present);
        }
        BlockBasedTableConfig table = (BlockBasedTableConfig) format;
        table.setBlockCache(bounds.cache);
        table.setCacheIndexAndFilterBlocks(true);
        table.setCacheIndexAndFilterBlocksWithHighPriority(true);
        table.setPinTopLevelIndexAndFilter(true);
        options.setTableFormatConfig(table);
        return new OpenStore(name, true, null);
    }

    /**
     * Checks the block cache of the store that the calling thread has just opened, and counts it. The thread has not yet given the store to another
     * one, so RocksDB cannot be closed meanwhile.
     *
     * @param ofKafka the RocksDBStore
     */
    void opened(Object ofKafka, RocksDB db) {
        OpenStore store = opening.get();
        opening.remove();
        if (store == null) {
            fail("a store was opened without the agent's RocksDBConfigSetter");
            return;
        }
        store.open = true;
        opened.incrementAndGet();
        SharedBounds bounds = currentBounds();
        if (bounds == null) {
            return;
        }
        long capacity = capacityOf(db);
        if (store.shared && capacity != bounds.capacity) {
            fail("the block cache of store " + store.name + " has a capacity of " + capacity + " instead of " + bounds.capacity);
        } else if (!store.shared && capacity > 0) {
            // Another capacity than that of the known cache belongs to a cache that RocksDB has created, as by optimizeForPointLookup.
            boolean known = store.ownCache != null && capacity == (Long) send(Messages.CAPACITY_OF, store.ownCache);
            ownCaches.opened(known ? store.ownCache : store, capacity);
        }
        if (store.sharesWriteBuffers) {
            addMemtable(bounds.memtables, store, ofKafka, db);
        }
        if (!failed.get() && active.compareAndSet(false, true)) {
            send(Messages.BOUNDS_ACTIVE);
        }
    }

    private void addMemtable(Memtables memtables, OpenStore store, Object ofKafka, RocksDB db) {
        try {
            store.memtable = new StoreMemtable(ofKafka, db);
            memtables.add(store.memtable);
            memtables.start();
        } catch (Throwable failure) {
            reportMemtable(failure.toString());
        }
    }

    /** Reports the first memtable that cannot be flushed. */
    private void reportMemtable(String cause) {
        if (memtableReported.compareAndSet(false, true)) {
            send(Messages.FINDING, "MemtableNotFlushed", "the memtable of an idle store cannot be flushed (" + cause
                    + "), so busy stores may become slow; check the disk of the state directory, and use Kafka Streams 2.8 to 4.4");
        }
    }

    /** Returns the capacity of a store's block cache; 0 without a block cache. */
    private static long capacityOf(RocksDB db) {
        try {
            return db.getLongProperty(CAPACITY_PROPERTY);
        } catch (RocksDBException none) {
            return 0;
        }
    }

    /** Reports the first store without bounds. */
    private void fail(String cause) {
        if (failed.compareAndSet(false, true)) {
            send(Messages.STORE_NOT_BOUNDED, cause);
        }
    }

    /** Counts a closed store; null and a store that has failed to open do not count. */
    void closed(OpenStore store) {
        if (store != null && store.open) {
            store.open = false;
            closed.incrementAndGet();
            ownCaches.closed(store);
            if (store.memtable != null) {
                currentBounds().memtables.remove(store.memtable);
            }
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
        }
        return shared;
    }

    private SharedBounds createShared() {
        try {
            long[] bounds = (long[]) send(Messages.BOUNDS);
            return bounds == null ? null : new SharedBounds(bounds[0], bounds[1], this::reportMemtable);
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
        figures.put(Messages.OWN_CACHES, ownCaches.report());
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
