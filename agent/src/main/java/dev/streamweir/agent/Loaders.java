// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.Supplier;

/** The class loaders with Kafka Streams or RocksDB, and the sums of their reports. */
final class Loaders {
    private static final String[] SUMS = {
        Messages.CACHE_CAPACITY, Messages.CACHE_USAGE, Messages.CACHE_PINNED, Messages.OPENED, Messages.CLOSED,
    };

    /** Weak, so that the agent does not keep an application that is unloaded. The bridge of a loader keeps its adapter. */
    private final Map<ClassLoader, WeakReference<LoaderAdapter>> adapters = new WeakHashMap<>();
    private String lastChanges = "";

    synchronized boolean contains(ClassLoader loader) {
        return adapters.containsKey(loader);
    }

    /** Returns the adapter of a loader, created at the first call. */
    synchronized LoaderAdapter adapterOf(ClassLoader loader, Supplier<LoaderAdapter> create) {
        WeakReference<LoaderAdapter> reference = adapters.get(loader);
        LoaderAdapter adapter = reference == null ? null : reference.get();
        if (adapter == null) {
            adapter = create.get();
            adapters.put(loader, new WeakReference<>(adapter));
        }
        return adapter;
    }

    private synchronized List<LoaderAdapter> all() {
        List<LoaderAdapter> all = new ArrayList<>();
        for (WeakReference<LoaderAdapter> reference : adapters.values()) {
            LoaderAdapter adapter = reference.get();
            if (adapter != null) {
                all.add(adapter);
            }
        }
        return all;
    }

    /** Returns the KafkaStreams objects of all loaders: see {@code inloader.Clients.report}. */
    List<Map<String, Object>> clients() {
        List<Map<String, Object>> clients = new ArrayList<>();
        for (LoaderAdapter adapter : all()) {
            clients.addAll(adapter.clients());
        }
        return clients;
    }

    /** Returns the map {@code rocksdb} of the report: the sums over all loaders, and the sizes of the next store under a plan (null: none). */
    Map<String, Object> rocksdb(Plan plan) {
        Map<String, Object> report = new HashMap<>();
        List<Object> ownCaches = new ArrayList<>();
        long writeBuffers = 0;
        Bounds bounds = null;
        for (LoaderAdapter adapter : all()) {
            addFigures(report, ownCaches, adapter.rocksdb());
            Bounds ofLoader = adapter.bounds();
            if (ofLoader != null) {
                writeBuffers += ofLoader.writeBufferManager;
                bounds = bounds == null ? ofLoader : bounds;
            }
        }
        report.put("ownCaches", ownCaches);
        report.put("writeBufferManager", writeBuffers);
        if (bounds != null) {
            long open = (Long) report.get(Messages.OPENED) - (Long) report.get(Messages.CLOSED);
            report.put("arenaBlock", bounds.arenaBlock(plan, open));
            report.put("writeBuffer", plan == null ? 0 : plan.writeBuffer);
        }
        return report;
    }

    private static void addFigures(Map<String, Object> sums, List<Object> ownCaches, Map<String, Object> figures) {
        for (String name : SUMS) {
            long figure = figures.containsKey(name) ? (Long) figures.get(name) : 0;
            sums.merge(name, figure, (a, b) -> (Long) a + (Long) b);
        }
        if (figures.get(Messages.OWN_CACHES) != null) {
            ownCaches.addAll((List<?>) figures.get(Messages.OWN_CACHES));
        }
    }

    /** Reports whether clients, their states or their stores have changed since the last call. */
    boolean checkForChange() {
        StringBuilder changes = new StringBuilder();
        for (LoaderAdapter adapter : all()) {
            changes.append(adapter.changes()).append(' ');
        }
        return replaceLastChanges(changes.toString());
    }

    private synchronized boolean replaceLastChanges(String changes) {
        boolean changed = !lastChanges.equals(changes);
        lastChanges = changes;
        return changed;
    }
}
