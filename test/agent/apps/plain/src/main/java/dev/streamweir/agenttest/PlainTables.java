// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;
import org.rocksdb.PlainTableConfig;

/** A table format that is not block-based and has no block cache. */
public final class PlainTables implements RocksDBConfigSetter {
    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        options.setTableFormatConfig(new PlainTableConfig());
        options.setAllowMmapReads(true);
    }

    @Override
    public void close(String storeName, Options options) {}
}
