// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * A topology with a key-value, a windowed and a join store.
 *
 * <p>Arguments: {@code app.orders}, {@code app.payments} and {@code app.clicks}, the input topics. Orders and payments are
 * joined, so they must have the same number of partitions.
 */
final class ShopTopology {
    private ShopTopology() {}

    /**
     * Two subtopologies: orders and payments share one (stores orders-by-customer, and the two of the join, under the names
     * that Kafka Streams generates), clicks have the other (store clicks-per-minute).
     */
    static Topology of(Properties configs) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream(configs.getProperty("app.orders"));
        KStream<String, String> payments = builder.stream(configs.getProperty("app.payments"));
        KStream<String, String> clicks = builder.stream(configs.getProperty("app.clicks"));

        orders.groupByKey().count(Materialized.as("orders-by-customer"));
        orders.join(
                payments,
                (order, payment) -> order + "/" + payment,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(5)));
        clicks.groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
                .count(Materialized.as("clicks-per-minute"));
        return builder.build(configs);
    }
}
