// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

class MemtablesTest {
    private static final long BUDGET = 1000;

    @TempDir
    Path folder;

    private final List<String> flushed = Collections.synchronizedList(new ArrayList<>());
    private final List<String> reported = Collections.synchronizedList(new ArrayList<>());
    private volatile Consumer<String> failures = reported::add;
    private final Memtables memtables = new Memtables(BUDGET, cause -> failures.accept(cause));

    /** A memtable of a size that the test sets. */
    private final class Simulated extends Memtable {
        private final String name;
        private long size;
        private boolean fails;

        Simulated(String name, long size) {
            this.name = name;
            this.size = size;
            memtables.add(this);
        }

        @Override
        long read() {
            return size;
        }

        @Override
        void flush() throws RocksDBException {
            if (fails) {
                throw new RocksDBException("no space");
            }
            flushed.add(name);
            size = 0;
        }
    }

    @Test
    void flushesTheLargestOfIdleStoresDownToHalfTheBudget() {
        new Simulated("small", 100);
        new Simulated("large", 400);
        new Simulated("middle", 300);
        memtables.check(1);
        assertEquals(List.of(), flushed, "one measurement does not show the writes");
        memtables.check(1);
        assertEquals(List.of("large"), flushed);
        memtables.check(1);
        assertEquals(List.of("large"), flushed);
    }

    @Test
    void flushesNothingUpToThreeQuartersOfTheBudget() {
        new Simulated("idle", 750);
        memtables.check(1);
        memtables.check(1);
        assertEquals(List.of(), flushed);
    }

    @Test
    void leavesStoresWithManyWrites() {
        Simulated growing = new Simulated("growing", 400);
        Simulated full = new Simulated("full", 500);
        Simulated slow = new Simulated("slow", 100);
        memtables.check(1);
        growing.size = 500; // + 25 % in a second
        full.size = 300; // it was flushed because it was full
        slow.size = 110; // + 10 % in a second
        memtables.check(1);
        assertEquals(List.of("slow"), flushed);
    }

    @Test
    void countsWritesPerSecond() {
        Simulated store = new Simulated("store", 800);
        memtables.check(1);
        store.size = 950; // + 19 % in 2 s
        memtables.check(2);
        assertEquals(List.of("store"), flushed);
    }

    @Test
    void leavesAMemtableAloneThatCannotBeFlushed() {
        Simulated broken = new Simulated("broken", 600);
        new Simulated("other", 300);
        broken.fails = true;
        memtables.check(1);
        memtables.check(1);
        assertEquals(List.of("other"), flushed);
        assertEquals(List.of("org.rocksdb.RocksDBException: no space"), reported);
        memtables.check(1);
        assertEquals(1, reported.size());
    }

    @Test
    void checksWhileAStoreIsOpen() throws InterruptedException {
        Simulated store = new Simulated("idle", 800);
        memtables.start();
        for (int i = 0; i < 100 && flushed.isEmpty(); i++) {
            Thread.sleep(100);
        }
        assertEquals(List.of("idle"), flushed);
        memtables.remove(store);
        for (int i = 0; i < 100 && memtables.isChecking(); i++) {
            Thread.sleep(100);
        }
        assertFalse(memtables.isChecking(), "the thread ends with the last store");
    }

    @Test
    void checksGoOnAfterAFailure() throws InterruptedException {
        Simulated broken = new Simulated("broken", 900);
        broken.fails = true;
        failures = cause -> {
            reported.add(cause);
            throw new IllegalStateException(cause);
        };
        memtables.start();
        for (int i = 0; i < 100 && reported.isEmpty(); i++) {
            Thread.sleep(100);
        }
        new Simulated("later", 800);
        memtables.start();
        for (int i = 0; i < 100 && flushed.isEmpty(); i++) {
            Thread.sleep(100);
        }
        assertEquals(List.of("later"), flushed);
    }

    @Test
    void flushesAStore() throws Exception {
        StoreMemtable memtable;
        try (Options options = new Options().setCreateIfMissing(true);
                KafkaStore store = new KafkaStore(options, folder.toString())) {
            memtable = new StoreMemtable(store, store.db);
            assertEquals(0, memtable.read(), "an empty memtable is not flushed");
            store.db.put(new byte[8], new byte[100_000]);
            assertTrue(memtable.read() > 100_000, memtable.read() + " bytes");
            memtable.flush();
            assertEquals(0, memtable.read());
            store.db.put(new byte[8], new byte[100_000]);
        }
        assertEquals(0, memtable.read(), "the store is closed");
        memtable.flush();
    }

    @Test
    void anUnknownStoreIsAnError() throws Exception {
        try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, folder.toString())) {
            assertThrows(NoSuchFieldException.class, () -> new StoreMemtable("a store", db));
        }
    }
}
