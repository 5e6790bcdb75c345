// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import org.rocksdb.RocksDBException;

/** The memtables of one open store, those of all its column families together. */
abstract class Memtable {
    /**
     * A store has few writes if it would take this many seconds to write as much again as its memtable holds. So a store with a constant rate of
     * writes is flushed once in this time at most.
     */
    static final int SECONDS_TO_DOUBLE = 10;

    /** The size in bytes at the last measurement; negative before the first one. */
    private long size = -1;
    private boolean hasFewWrites;

    /** Returns the present size in bytes; 0 if it is empty or the store is closed. */
    abstract long read() throws RocksDBException;

    /** Begins to write the entries to a file, and does not wait for it. Does nothing if the store is closed. */
    abstract void flush() throws RocksDBException;

    /**
     * Reads the size. A memtable that has become smaller was flushed because it was full, so the store has many writes.
     *
     * @param seconds the time since the last measurement
     */
    final void measure(double seconds) throws RocksDBException {
        long before = size;
        size = read();
        hasFewWrites = before >= 0 && size >= before && (size - before) * SECONDS_TO_DOUBLE <= size * seconds;
    }

    /** Returns the size at the last measurement in bytes. */
    final long size() {
        return Math.max(size, 0);
    }

    /** Returns whether a flush frees memory for other stores: the store has entries, and few writes between the last two measurements. */
    final boolean isFlushable() {
        return hasFewWrites && size > 0;
    }
}
