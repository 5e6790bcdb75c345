// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/** The example of bounded memory in the documentation of Kafka Streams: one cache and one WriteBufferManager for all stores. */
public final class OwnManager implements RocksDBConfigSetter {
    /** The capacity of the cache in bytes. */
    static final long CAPACITY = 9L << 20;

    private static final Cache CACHE;
    private static final WriteBufferManager MANAGER;

    static {
        RocksDB.loadLibrary();
        CACHE = new LRUCache(CAPACITY, -1, false, 0.1);
        MANAGER = new WriteBufferManager(4L << 20, CACHE);
    }

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
        table.setBlockCache(CACHE);
        table.setCacheIndexAndFilterBlocks(true);
        options.setWriteBufferManager(MANAGER);
        options.setTableFormatConfig(table);
    }

    @Override
    public void close(String storeName, Options options) {}
}
