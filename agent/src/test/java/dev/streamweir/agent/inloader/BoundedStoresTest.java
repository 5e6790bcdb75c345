// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.streamweir.agent.Messages;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.streams.state.internals.BlockBasedTableConfigWithAccessibleCache;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.PlainTableConfig;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBufferManager;

/** With a real RocksDB of the oldest release. */
class BoundedStoresTest {
    private static final long MIB = 1L << 20;
    private static final long SHARED = 24 * MIB;
    private static final long OF_KAFKA = 50 * MIB;
    private static final long OWN = 7 * MIB;

    static {
        RocksDB.loadLibrary();
    }

    @TempDir
    Path folder;

    private final List<String> messages = new ArrayList<>();
    private final Map<Object, Long> capacities = new HashMap<>();
    private boolean replacesCaches;
    private final BoundedStores stores = new BoundedStores(this::agent);

    private Object agent(String message, Object[] arguments) {
        switch (message) {
            case Messages.BOUNDS:
                return new long[] {SHARED, SHARED / 3};
            case Messages.STORE_SIZES:
                return new long[] {0, 0};
            case Messages.REPLACES_CACHES:
                return replacesCaches;
            case Messages.CAPACITY_OF:
                return capacities.getOrDefault(arguments[0], 0L);
            default:
                messages.add(message + (arguments.length == 0 ? "" : " " + arguments[0]));
                return null;
        }
    }

    /** The application's own setter. */
    private interface Setter {
        void setConfig(Options options);
    }

    private static Options options() {
        BlockBasedTableConfig table = new BlockBasedTableConfigWithAccessibleCache();
        table.setBlockCache(new LRUCache(OF_KAFKA));
        return new Options().setCreateIfMissing(true).setTableFormatConfig(table);
    }

    /** Opens a store as Kafka Streams does. */
    private OpenStore open(String name, Setter own) throws RocksDBException {
        Options options = options();
        InitialOptions initial = new InitialOptions(options);
        own.setConfig(options);
        OpenStore store = stores.bound(name, options, initial);
        openDatabase(name, options);
        return store;
    }

    private void openDatabase(String name, Options options) throws RocksDBException {
        try (KafkaStore ofKafka = new KafkaStore(options, folder.resolve(name).toString())) {
            stores.opened(ofKafka, ofKafka.db);
        }
    }

    private static void setCache(Options options, BlockBasedTableConfig table, Cache cache) {
        table.setBlockCache(cache);
        options.setTableFormatConfig(table);
    }

    private void expect(long opened, long closed, List<?> ownCaches) {
        Map<String, Object> figures = stores.figures();
        assertEquals(opened, figures.get(Messages.OPENED));
        assertEquals(closed, figures.get(Messages.CLOSED));
        assertEquals(ownCaches, figures.get(Messages.OWN_CACHES));
    }

    private static Map<String, Object> cache(long capacity, int count) {
        return Map.of(Messages.CAPACITY, capacity, Messages.STORES, count);
    }

    @Test
    void boundsAreActiveWithTheFirstOpenStore() throws RocksDBException {
        stores.bound("later", options(), new InitialOptions(options()));
        assertEquals(List.of(), messages, "it is not open");
        OpenStore store = open("one", options -> {});
        open("two", options -> {});
        assertEquals(List.of(Messages.BOUNDS_ACTIVE), messages);
        stores.closed(store);
        expect(2, 1, List.of());
    }

    @Test
    void aFailedOpenDoesNotCount() throws RocksDBException {
        OpenStore failed = stores.bound("locked", options(), new InitialOptions(options()));
        stores.closed(failed);
        stores.closed(null);
        expect(0, 0, List.of());
        OpenStore store = open("locked", options -> {});
        stores.closed(store);
        stores.closed(store);
        expect(1, 1, List.of());
    }

    @Test
    void flushesTheMemtablesOfTheSharedManager() throws RocksDBException {
        OpenStore shared = open("one", options -> {});
        OpenStore own = open("two", options -> options.setWriteBufferManager(new WriteBufferManager(MIB, new LRUCache(MIB))));
        assertNotNull(shared.memtable);
        assertNull(own.memtable, "its memtables have a manager of the application");
        replacesCaches = true;
        OpenStore replaced = open("three", options -> options.setWriteBufferManager(new WriteBufferManager(MIB, new LRUCache(MIB))));
        assertNotNull(replaced.memtable);
    }

    @Test
    void reportsAStoreWhoseMemtableCannotBeFlushed() throws RocksDBException {
        Options options = options();
        stores.bound("one", options, new InitialOptions(options));
        try (RocksDB db = RocksDB.open(options, folder.resolve("one").toString())) {
            stores.opened("a store of an unknown release", db);
        }
        assertEquals(List.of(Messages.FINDING + " MemtableNotFlushed", Messages.BOUNDS_ACTIVE), messages);
    }

    @Test
    void unreadableOptionsTurnBoundsOff() throws RocksDBException {
        open("one", options -> {});
        stores.bound("two", options(), null);
        openDatabase("two", options());
        open("three", options -> {});
        assertEquals(List.of(Messages.BOUNDS_ACTIVE, Messages.STORE_NOT_BOUNDED + " the options of store two could not be read"), messages);
    }

    @Test
    void neverActiveAfterAFailure() throws RocksDBException {
        stores.bound("one", options(), null);
        open("two", options -> {});
        assertEquals(List.of(Messages.STORE_NOT_BOUNDED + " the options of store one could not be read"), messages);
    }

    @Test
    void aStoreWithoutTheSetterTurnsBoundsOff() throws RocksDBException {
        openDatabase("one", options());
        assertEquals(List.of(Messages.STORE_NOT_BOUNDED + " a store was opened without the agent's RocksDBConfigSetter"), messages);
        expect(0, 0, List.of());
    }

    @Test
    void countsAKnownCacheOnce() throws RocksDBException {
        Cache own = new LRUCache(OWN);
        capacities.put(own, OWN);
        List<OpenStore> open = new ArrayList<>();
        for (String name : List.of("one", "two")) {
            open.add(open(name, options -> setCache(options, (BlockBasedTableConfig) options.tableFormatConfig(), own)));
        }
        expect(2, 0, List.of(cache(OWN, 2)));
        stores.closed(open.get(0));
        expect(2, 1, List.of(cache(OWN, 1)));
        stores.closed(open.get(1));
        expect(2, 2, List.of());
        assertEquals(List.of(Messages.BOUNDS_ACTIVE), messages);
    }

    @Test
    void countsTheCacheThatReplacesAKnownOne() throws RocksDBException {
        Cache own = new LRUCache(OWN);
        capacities.put(own, OWN);
        List<OpenStore> open = new ArrayList<>();
        for (String name : List.of("one", "two")) {
            open.add(open(name, options -> {
                setCache(options, (BlockBasedTableConfig) options.tableFormatConfig(), own);
                options.optimizeForPointLookup(64); // in MiB; the Java objects do not show it
            }));
        }
        expect(2, 0, List.of(cache(64 * MIB, 1), cache(64 * MIB, 1)));
        open.forEach(stores::closed);
        expect(2, 2, List.of());
    }

    @Test
    void replacesTheCacheThatReplacesThatOfKafka() throws RocksDBException {
        open("one", options -> options.optimizeForPointLookup(64));
        expect(1, 0, List.of());
        assertEquals(List.of(Messages.BOUNDS_ACTIVE), messages);
    }

    @Test
    void countsTheCacheOfAnOwnTableFormat() throws RocksDBException {
        OpenStore store = open("one", options -> options.setTableFormatConfig(new BlockBasedTableConfig().setBlockCacheSize(5 * MIB)));
        expect(1, 0, List.of(cache(5 * MIB, 1)));
        stores.closed(store);
        expect(1, 1, List.of());
        replacesCaches = true;
        open("two", options -> options.setTableFormatConfig(new BlockBasedTableConfig().setBlockCacheSize(5 * MIB)));
        expect(2, 1, List.of());
    }

    @Test
    void aTableWithoutABlockCacheIsBounded() throws RocksDBException {
        open("one", options -> options.setTableFormatConfig(new BlockBasedTableConfig().setNoBlockCache(true)));
        open("two", options -> options.setTableFormatConfig(new PlainTableConfig()).useFixedLengthPrefixExtractor(4)
            .setAllowMmapReads(true));
        expect(2, 0, List.of());
        assertEquals(List.of(Messages.BOUNDS_ACTIVE), messages);
    }
}
