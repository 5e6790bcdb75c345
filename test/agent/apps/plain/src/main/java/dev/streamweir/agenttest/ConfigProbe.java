// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Is told the configs with which Kafka Streams makes its main consumer: what is really in force. */
public final class ConfigProbe implements ConsumerInterceptor<byte[], byte[]> {
    private static final Map<String, Object> SEEN = new HashMap<>();

    /** The value of a config, "null" where the consumer has not got it. */
    static synchronized String get(String name) {
        synchronized (SEEN) {
            return String.valueOf(SEEN.get(name));
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
        synchronized (SEEN) {
            SEEN.putAll(configs);
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
