// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.TreeSet;
import javax.management.AttributeNotFoundException;
import javax.management.InstanceNotFoundException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.common.Metric;

/** The application's own monitoring. It evaluates every metric, as exporters do. */
final class Beans {
    private Beans() {}

    /** Reads all MBeans of Kafka and all metrics, and returns the capacities of the block caches in RocksDB's metrics. */
    static String read(List<Client> clients) throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        int attributes = 0;
        for (ObjectName name : server.queryNames(new ObjectName("kafka.*:*"), null)) {
            try {
                for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                    server.getAttribute(name, attribute.getName());
                    attributes++;
                }
            } catch (InstanceNotFoundException | AttributeNotFoundException gone) {
                continue; // removed since the query
            }
        }
        TreeSet<String> capacities = new TreeSet<>();
        int metrics = 0;
        for (Client client : clients) {
            for (Metric metric : client.streams().metrics().values()) {
                Object value = metric.metricValue();
                metrics++;
                // A window store without segments has a capacity of 0.
                if (metric.metricName().name().equals("block-cache-capacity") && !"0".equals(String.valueOf(value))) {
                    capacities.add(String.valueOf(value));
                }
            }
        }
        if (attributes == 0 || metrics == 0) {
            throw new IllegalStateException(attributes + " attributes, " + metrics + " metrics");
        }
        return "capacities " + String.join(" ", capacities);
    }
}
