// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/** One cache for all stores, which RocksDB then replaces by one for each store. The Java objects still have the first one. */
public final class PointLookup implements RocksDBConfigSetter {
    /** The capacity of each cache in MiB. */
    static final long CAPACITY_MIB = 6;

    private final StaticCache first = new StaticCache();

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        first.setConfig(storeName, options, configs);
        options.optimizeForPointLookup(CAPACITY_MIB);
    }

    @Override
    public void close(String storeName, Options options) {}
}
