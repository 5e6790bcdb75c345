// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import java.util.Map;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Cache;
import org.rocksdb.Options;

/**
 * Puts the shared bounds into the options of each store. Kafka Streams makes one of these for each RocksDB instance, segments included. The
 * application's own setter comes first, and what it has set stays.
 */
public final class BoundedSetter implements RocksDBConfigSetter {
    /** The key under which the agent hands the application's own setter over: dev.streamweir.agent.Injection. */
    private static final String OWN_SETTER = "streamweir.own.rocksdb.config.setter";

    private RocksDBConfigSetter own;
    private Cache ownCache;

    /** Called by Kafka Streams. */
    public BoundedSetter() {}

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        Sizes before = before(options);
        Object ownClass = configs.get(OWN_SETTER);
        if (ownClass instanceof Class) {
            own = (RocksDBConfigSetter) Utils.newInstance((Class<?>) ownClass);
            own.setConfig(storeName, options, configs);
        }
        try {
            ownCache = Inside.instance.bound(options, before);
        } catch (Throwable failure) {
            Inside.instance.finding("StoreNotBounded", "store " + storeName + " is as Kafka Streams or the application made it: " + failure);
        }
    }

    private static Sizes before(Options options) {
        try {
            return new Sizes(options);
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
            Inside.instance.closed(ownCache);
        }
    }
}
