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

/** The example of bounded memory in the documentation of Kafka Streams, without a WriteBufferManager: one cache for all stores. */
public final class StaticCache implements RocksDBConfigSetter {
    /** Its capacity in bytes, which no cache of the agent has. */
    static final long CAPACITY = 7L << 20;

    private static final Cache CACHE;

    static {
        RocksDB.loadLibrary();
        CACHE = new LRUCache(CAPACITY);
    }

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
        table.setBlockCache(CACHE);
        table.setCacheIndexAndFilterBlocks(true);
        options.setTableFormatConfig(table);
    }

    @Override
    public void close(String storeName, Options options) {}
}
