// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.FlushOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * The memtables of a RocksDBStore of Kafka Streams. {@code RocksDBStore.close} is synchronized in all releases (2.8 to 4.4), so the database stays
 * open while this class holds the monitor of the store.
 */
final class StoreMemtable extends Memtable {
    private static final String SIZE_PROPERTY = "rocksdb.cur-size-active-mem-table";
    /** The size of a memtable without entries in bytes: Arena::kInlineSize of RocksDB. */
    private static final long EMPTY = 2048;
    /** The fields of RocksDBStore with the object that has the column families: the first since 3.7, the second before. */
    private static final String[] ACCESSORS = {"cfAccessor", "dbAccessor"};

    private final Object store;
    private final RocksDB db;
    private final List<ColumnFamilyHandle> families;

    /**
     * Finds the column families of a store that is open.
     *
     * @throws ReflectiveOperationException if this release of Kafka Streams has them elsewhere
     */
    StoreMemtable(Object store, RocksDB db) throws ReflectiveOperationException {
        this.store = store;
        this.db = db;
        families = familiesOf(store);
        if (families.isEmpty()) {
            throw new NoSuchFieldException("no column family in " + store.getClass().getName());
        }
    }

    private static List<ColumnFamilyHandle> familiesOf(Object store) throws IllegalAccessException {
        List<ColumnFamilyHandle> families = new ArrayList<>();
        for (String name : ACCESSORS) {
            for (Field accessor : fieldsOf(store)) {
                if (accessor.getName().equals(name) && families.isEmpty()) {
                    accessor.setAccessible(true);
                    addFamilies(accessor.get(store), families);
                }
            }
        }
        return families;
    }

    private static void addFamilies(Object accessor, List<ColumnFamilyHandle> families) throws IllegalAccessException {
        for (Field field : fieldsOf(accessor)) {
            if (field.getType() == ColumnFamilyHandle.class) {
                field.setAccessible(true);
                families.add((ColumnFamilyHandle) field.get(accessor));
            }
        }
    }

    /** Returns the fields of an object and of its superclasses; none for null. */
    private static List<Field> fieldsOf(Object object) {
        List<Field> fields = new ArrayList<>();
        for (Class<?> c = object == null ? null : object.getClass(); c != null; c = c.getSuperclass()) {
            fields.addAll(List.of(c.getDeclaredFields()));
        }
        return fields;
    }

    @Override
    long read() throws RocksDBException {
        synchronized (store) {
            long total = 0;
            if (db.isOwningHandle()) {
                for (ColumnFamilyHandle family : families) {
                    total += sizeOf(family);
                }
            }
            return total;
        }
    }

    @Override
    void flush() throws RocksDBException {
        synchronized (store) {
            if (!db.isOwningHandle()) {
                return;
            }
            try (FlushOptions options = new FlushOptions().setWaitForFlush(false)) {
                for (ColumnFamilyHandle family : families) {
                    if (sizeOf(family) > 0) {
                        db.flush(options, family);
                    }
                }
            }
        }
    }

    /** Returns the size of the memtable of a column family in bytes; 0 without entries. */
    private long sizeOf(ColumnFamilyHandle family) throws RocksDBException {
        long size = db.getLongProperty(family, SIZE_PROPERTY);
        return size > EMPTY ? size : 0;
    }
}
