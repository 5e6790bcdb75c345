// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.CompressionType;
import org.rocksdb.Options;

/** A setter without settings of memory. Its settings must stay until the store closes. */
public final class OtherSettings implements RocksDBConfigSetter {
    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        options.setCompressionType(CompressionType.LZ4_COMPRESSION);
    }

    @Override
    public void close(String storeName, Options options) {
        if (options.compressionType() != CompressionType.LZ4_COMPRESSION) {
            throw new IllegalStateException("the compression of " + storeName + " was changed to " + options.compressionType());
        }
    }
}
