// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/** The first example in the documentation of Kafka Streams: one cache for each store, closed with the store. */
public final class CachePerStore implements RocksDBConfigSetter {
    /** Its capacity in bytes. */
    static final long CAPACITY = 3L << 20;

    private final Cache cache = new LRUCache(CAPACITY);

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
        table.setBlockCache(cache);
        options.setTableFormatConfig(table);
        options.setMaxWriteBufferNumber(2);
    }

    @Override
    public void close(String storeName, Options options) {
        cache.close();
    }
}
