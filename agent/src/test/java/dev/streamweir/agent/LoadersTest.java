// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.report.Boundedness;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LoadersTest {
    private final Components components = new Components(Options.parse("port=0", new Findings()), new Findings());
    private final ClassLoader loader = new URLClassLoader(new URL[0]);

    private LoaderAdapter adapter() {
        return components.loaders.adapterOf(loader, () -> new LoaderAdapter(components, new Definer(null), loader, null));
    }

    @Test
    void createsOneAdapterForEachLoader() {
        assertFalse(components.loaders.contains(loader));
        LoaderAdapter adapter = adapter();
        assertSame(adapter, adapter());
        assertTrue(components.loaders.contains(loader));
        assertFalse(components.loaders.contains(LoadersTest.class.getClassLoader()));
    }

    @Test
    void aLoaderWithoutTheAgentsClassesReportsZeros() {
        LoaderAdapter adapter = adapter();
        assertEquals(List.of(), components.loaders.clients());
        assertEquals(Map.of("cacheCapacity", 0L, "cacheUsage", 0L, "cachePinned", 0L, "opened", 0L, "closed", 0L, "ownCaches", List.of(),
            "writeBufferManager", 0L), components.loaders.rocksdb(null));
        assertNull(adapter.bounds());
    }

    @Test
    void reportsTheBoundsOfALoader() {
        LoaderAdapter adapter = adapter();
        long[] cacheAndManager = (long[]) adapter.apply(Messages.BOUNDS, new Object[0]);
        assertEquals(cacheAndManager[0], adapter.bounds().cache);
        Map<String, Object> rocksdb = components.loaders.rocksdb(null);
        assertEquals(Fixture.map(Fixture.report(), "rocksdb").keySet(), rocksdb.keySet());
        assertEquals(cacheAndManager[1], rocksdb.get("writeBufferManager"));
        assertEquals(adapter.bounds().arenaBlock(null, 0), rocksdb.get("arenaBlock"));
        assertEquals(0L, ((Number) rocksdb.get("writeBuffer")).longValue());
    }

    @Test
    void keepsTheCapacityOfACache() {
        LoaderAdapter adapter = adapter();
        Object cache = new Object();
        assertEquals(0L, adapter.apply(Messages.CAPACITY_OF, new Object[] {cache}));
        adapter.apply(Messages.CACHE_CREATED, new Object[] {cache, 7L});
        assertEquals(7L, adapter.apply(Messages.CAPACITY_OF, new Object[] {cache}));
    }

    @Test
    void checksForChangesOfItsLoaders() {
        components.loaders.checkForChange();
        assertFalse(components.loaders.checkForChange());
        LoaderAdapter adapter = adapter();
        assertTrue(components.loaders.checkForChange(), "a new loader");
        assertFalse(components.loaders.checkForChange());
        assertSame(adapter, adapter());
    }

    @Test
    void runsWithoutTheAgentsClassesIfTheyCannotBeDefined() {
        LoaderAdapter adapter = adapter(); // without instrumentation
        Map<?, ?> configs = (Map<?, ?>) adapter.apply(Messages.CONFIGS, new Object[] {Map.of("application.id", "a")});
        assertEquals(Map.of("application.id", "a", ConfigKeys.INJECTED, ""), configs);
        assertEquals(Boundedness.OFF, components.decision.boundedness());
        assertEquals("NotBounded", components.findings.report().get(0).get("reason"));
    }
}
