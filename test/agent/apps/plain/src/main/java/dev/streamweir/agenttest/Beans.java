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

/** The application's own monitoring: it evaluates every metric, as exporters do. */
final class Beans {
    private Beans() {}

    /** Reads all MBeans of Kafka and all metrics; gives how many, and the capacities of the block caches that RocksDB reports. */
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
                continue; // since it was listed
            }
        }
        TreeSet<String> capacities = new TreeSet<>();
        int metrics = 0;
        for (Client client : clients) {
            for (Metric metric : client.streams().metrics().values()) {
                Object value = metric.metricValue();
                metrics++;
                // 0 is said of a window store that has no segment yet.
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
