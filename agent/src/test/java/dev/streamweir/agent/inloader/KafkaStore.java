// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/** A database in an object with the lock and the fields of RocksDBStore. */
final class KafkaStore implements AutoCloseable {
    final RocksDB db;
    final Accessor dbAccessor;

    /** The column families of a store. */
    static class Accessor {
        private final ColumnFamilyHandle columnFamily;

        Accessor(ColumnFamilyHandle columnFamily) {
            this.columnFamily = columnFamily;
        }
    }

    KafkaStore(Options options, String path) throws RocksDBException {
        db = RocksDB.open(options, path);
        dbAccessor = new Accessor(db.getDefaultColumnFamily());
    }

    @Override
    public synchronized void close() {
        db.close();
    }
}
