// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

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

/** The classes of this package, as the agent sees them: one for each loader that has Kafka Streams. */
public final class Inside implements BiFunction<String, Object[], Object> {
    /** Set before Kafka Streams can make a setter. */
    static volatile Inside instance;

    private final BiFunction<String, Object[], Object> door;
    private final Clients clients = new Clients();
    private final OwnCaches ownCaches = new OwnCaches();
    private final AtomicLong opened = new AtomicLong();
    private final AtomicLong closed = new AtomicLong();
    private SharedBounds shared;
    private boolean decided;

    /** Called by the agent. */
    public Inside(BiFunction<String, Object[], Object> door) {
        this.door = door;
        instance = this;
    }

    /** What the agent asks. */
    @Override
    public Object apply(String word, Object[] arguments) {
        switch (word) {
            case "setter":
                return BoundedSetter.class;
            case "created":
                clients.created(arguments[0]);
                return null;
            case "assigned":
                clients.assigned((Map<?, ?>) arguments[0], (Map<?, ?>) arguments[1]);
                return null;
            case "clients":
                return clients.report();
            case "changes":
                return clients.changes();
            case "rocksdb":
                return figures();
            default:
                throw new IllegalArgumentException(word);
        }
    }

    void finding(String reason, String message) {
        door.apply("finding", new Object[] {reason, message});
    }

    /**
     * Puts the bounds into the options of a store that is about to open. Gives the application's own cache where it keeps one, else null.
     *
     * @param before the options as Kafka Streams made them, null if they could not be read
     */
    Cache bound(Options options, Sizes before) {
        SharedBounds bounds = sharedBounds();
        long open = opened.incrementAndGet() - closed.get();
        if (bounds == null || before == null) {
            return null;
        }
        boolean replaces = Boolean.TRUE.equals(door.apply("replaces", new Object[0]));
        Cache kept = cache(options, before, bounds, replaces);
        if (options.writeBufferManager() == null || replaces) {
            options.setWriteBufferManager(bounds.writeBuffers);
        }
        long[] sizes = (long[]) door.apply("sizes", new Object[] {open});
        if (sizes[0] > 0 && options.arenaBlockSize() == before.arenaBlock) {
            options.setArenaBlockSize(sizes[0]);
        }
        if (sizes[1] > 0 && options.writeBufferSize() == before.writeBuffer) {
            options.setWriteBufferSize(sizes[1]);
        }
        return kept;
    }

    /** Puts the shared cache where Kafka Streams' own still is. That one stays Kafka Streams' to close. */
    private Cache cache(Options options, Sizes before, SharedBounds bounds, boolean replaces) {
        TableFormatConfig format = options.tableFormatConfig();
        Cache now = Sizes.cacheOf(format);
        if (now == null || now != before.cache && !replaces) {
            if (now != null) {
                ownCaches.opened(now);
            }
            return now;
        }
        BlockBasedTableConfig table = (BlockBasedTableConfig) format;
        table.setBlockCache(bounds.cache);
        table.setCacheIndexAndFilterBlocks(true);
        table.setCacheIndexAndFilterBlocksWithHighPriority(true);
        table.setPinTopLevelIndexAndFilter(true);
        options.setTableFormatConfig(table);
        return null;
    }

    /** Counts a store that was closed. */
    void closed(Cache ownCache) {
        closed.incrementAndGet();
        if (ownCache != null) {
            ownCaches.closed(ownCache);
        }
    }

    /** The bounds, made before the first store opens. What is decided then never changes: segments of one store must not differ. */
    private synchronized SharedBounds sharedBounds() {
        if (!decided) {
            decided = true;
            String failure = null;
            try {
                long[] bounds = (long[]) door.apply("bounds", new Object[0]);
                shared = bounds == null ? null : new SharedBounds(bounds[0], bounds[1]);
            } catch (Throwable thrown) {
                failure = thrown.toString();
            }
            if (shared != null || failure != null) {
                door.apply("bounded", new Object[] {failure});
            }
        }
        return shared;
    }

    /** The part of ReportedRocksDB (assignment/report.go) that is this loader's. */
    private Map<String, Object> figures() {
        SharedBounds bounds;
        synchronized (this) {
            bounds = shared;
        }
        Map<String, Object> figures = new HashMap<>();
        figures.put("opened", opened.get());
        figures.put("closed", closed.get());
        if (bounds != null) {
            figures.put("cacheCapacity", bounds.capacity);
            figures.put("cacheUsage", usage(bounds.cache, "getUsage"));
            figures.put("cachePinned", usage(bounds.cache, "getPinnedUsage"));
        }
        List<Object> own = new ArrayList<>();
        for (Object[] entry : ownCaches.list()) {
            Map<String, Object> one = new HashMap<>();
            one.put("capacity", door.apply("capacity", new Object[] {entry[0]}));
            one.put("stores", entry[1]);
            own.add(one);
        }
        figures.put("ownCaches", own);
        return figures;
    }

    /** Usage of our own cache, which is never closed, so that it is safe to ask. RocksJava has the method from 6.x on. */
    private static long usage(Cache cache, String method) {
        try {
            Method usage = Cache.class.getMethod(method);
            return (Long) usage.invoke(cache);
        } catch (ReflectiveOperationException old) {
            return 0;
        }
    }
}
