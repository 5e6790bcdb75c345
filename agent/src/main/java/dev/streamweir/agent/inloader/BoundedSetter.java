// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.ConfigKeys;
import java.util.Map;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/**
 * Applies the shared bounds to the options of each store. Kafka Streams creates one setter for each RocksDB instance, segments included. The
 * application's own setter runs first, and its settings stay.
 */
public final class BoundedSetter implements RocksDBConfigSetter {
    private RocksDBConfigSetter own;
    /** Null before the options are set. */
    private OpenStore store;

    /** Called by Kafka Streams. */
    public BoundedSetter() {}

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        InitialOptions initial = initialOf(options);
        Object ownClass = configs.get(ConfigKeys.OWN_SETTER);
        if (ownClass instanceof Class) {
            own = (RocksDBConfigSetter) Utils.newInstance((Class<?>) ownClass);
            own.setConfig(storeName, options, configs);
        }
        store = InLoaderAgent.stores.bound(storeName, options, initial);
    }

    private static InitialOptions initialOf(Options options) {
        try {
            return new InitialOptions(options);
        } catch (Throwable unknown) {
            return null;
        }
    }

    @Override
    public void close(String storeName, Options options) {
        try {
            if (own != null) {
                own.close(storeName, options);
            }
        } finally {
            InLoaderAgent.stores.closed(store);
        }
    }
}
