// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Records the configs of the main consumer that Kafka Streams creates. */
public final class ConfigProbe implements ConsumerInterceptor<byte[], byte[]> {
    private static final Map<String, Object> CONFIGS = new HashMap<>();

    /** Returns the value of a config; "null" if the consumer does not have it. */
    static String get(String name) {
        synchronized (CONFIGS) {
            return String.valueOf(CONFIGS.get(name));
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
        synchronized (CONFIGS) {
            CONFIGS.putAll(configs);
        }
    }

    @Override
    public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

    @Override
    public void close() {}
}
