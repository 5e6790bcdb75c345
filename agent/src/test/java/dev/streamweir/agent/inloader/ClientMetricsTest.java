// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.junit.jupiter.api.Test;

class ClientMetricsTest {
    private final Map<MetricName, Metric> metrics = new LinkedHashMap<>();

    @Test
    void readsTheClient() {
        add("version", "stream-metrics", "4.4.0", "client-id", "c1", "process-id", "p");
        add("application-id", "stream-metrics", "orders", "client-id", "c1", "process-id", "p");
        add("topology-description", "stream-metrics", "Topologies:", "client-id", "c1", "process-id", "p");
        unevaluated("commit-id", "stream-metrics", "client-id", "c1");
        unevaluated("poll-rate", "stream-metrics", "client-id", "c1-StreamThread-1"); // a thread with built.in.metrics.version=0.10.0-2.4
        ClientMetrics read = new ClientMetrics(metrics);
        assertEquals("c1", read.clientId);
        assertEquals(Map.of("version", "4.4.0", "application-id", "orders", "topology-description", "Topologies:"), read.client);
    }

    @Test
    void readsStoresFromTagsWithoutEvaluatingMetrics() {
        unevaluated("num-immutable-mem-table", "stream-state-metrics", store("0_1", "rocksdb-state-id", "kv"));
        unevaluated("put-rate", "stream-state-metrics", store("0_1", "rocksdb-state-id", "kv"));
        unevaluated("put-rate", "stream-state-metrics", store("0_1", "rocksdb-window-state-id", "win"));
        unevaluated("suppression-buffer-size-avg", "stream-state-metrics", store("0_1", "in-memory-suppression-state-id", "sup"));
        unevaluated("put-rate", "stream-state-metrics", store("0_2", "in-memory-state-id", "mem"));
        unevaluated("hit-ratio-avg", "stream-record-cache-metrics", store("0_1", "record-cache-id", "kv"));
        unevaluated("put-rate", "stream-rocksdb-session-state-metrics", "client-id", "c1-StreamThread-1", "task-id", "0_3", "rocksdb-session-state-id", "ses");
        ClientMetrics read = new ClientMetrics(metrics);
        assertEquals(Map.of("0_1", Map.of("kv", "rocksdb-state", "win", "rocksdb-window-state", "sup", "in-memory-suppression-state"),
            "0_2", Map.of("mem", "in-memory-state"), "0_3", Map.of("ses", "rocksdb-session-state")), read.stores);
    }

    @Test
    void takesTheScopeOfTheDatabase() {
        for (String order : new String[] {"a", "b"}) {
            metrics.clear();
            unevaluated("x", "stream-state-metrics", store("0_1", order.equals("a") ? "other-state-id" : "rocksdb-state-id", "kv"));
            unevaluated("x", "stream-state-metrics", store("0_1", order.equals("a") ? "rocksdb-state-id" : "other-state-id", "kv"));
            assertEquals(Map.of("0_1", Map.of("kv", "rocksdb-state")), new ClientMetrics(metrics).stores, order);
        }
    }

    @Test
    void readsTheTasksOfThreads() {
        unevaluated("commit-rate", "stream-thread-metrics", "thread-id", "c1-StreamThread-2");
        unevaluated("restore-rate", "stream-state-updater-metrics", "thread-id", "c1-StateUpdater-1");
        unevaluated("process-rate", "stream-task-metrics", "thread-id", "c1-StreamThread-1", "task-id", "0_1");
        unevaluated("process-rate", "stream-processor-node-metrics", "thread-id", "c1-StreamThread-1", "task-id", "0_1", "processor-node-id", "n");
        unevaluated("update-rate", "stream-task-metrics", "thread-id", "c1-StreamThread-1", "task-id", "0_2");
        unevaluated("put-rate", "stream-state-metrics", "thread-id", "c1-GlobalStreamThread", "task-id", "-1_-1", "rocksdb-state-id", "g");
        unevaluated("put-rate", "stream-state-metrics", "thread-id", "main", "task-id", "0_7", "rocksdb-state-id", "kv");
        ClientMetrics read = new ClientMetrics(metrics);
        assertEquals(Set.of("c1-StreamThread-1", "c1-StreamThread-2"), read.threads.keySet());
        assertEquals(Set.of("0_1"), read.threads.get("c1-StreamThread-1").active);
        assertEquals(Set.of("0_2"), read.threads.get("c1-StreamThread-1").standby);
        assertEquals(Map.of("g", "rocksdb-state"), read.stores.get(ClientMetrics.GLOBAL_TASK));
    }

    @Test
    void countsEachBrokerOnce() {
        for (String node : new String[] {"node--1", "node--2", "node-3", "node-2147483644", "node-7", "node-x", "broker"}) {
            unevaluated("request-rate", "consumer-node-metrics", "client-id", "c1", "node-id", node);
        }
        unevaluated("request-rate", "producer-node-metrics", "client-id", "c1", "node-id", "node-7");
        unevaluated("request-rate", "admin-client-node-metrics", "client-id", "c1");
        assertEquals(Set.of(3, 7), new ClientMetrics(metrics).brokers);
    }

    @Test
    void readsTheRecordSizesOfProducers() {
        for (Object[] sizes : new Object[][] {{100.4, 300.0}, {200.0, 900.6}, {Double.NaN, Double.NaN}, {"text", null}, {-1.0, Double.POSITIVE_INFINITY}}) {
            String client = "p" + metrics.size();
            add("record-size-avg", "producer-metrics", sizes[0], "client-id", client);
            add("record-size-max", "producer-metrics", sizes[1], "client-id", client);
        }
        unevaluated("buffer-available-bytes", "producer-metrics", "client-id", "p");
        unevaluated("record-size-max", "other-metrics", "client-id", "p");
        ClientMetrics read = new ClientMetrics(metrics);
        assertEquals(150, read.averageRecord());
        assertEquals(900.6, read.largestRecord);
        assertEquals(0, new ClientMetrics(Map.of()).averageRecord());
    }

    private static String[] store(String task, String tag, String store) {
        return new String[] {"thread-id", "c1-StreamThread-1", "task-id", task, tag, store};
    }

    private void add(String name, String group, Object value, String... tags) {
        put(name, group, tags, value);
    }

    /** Adds a metric that fails the test if it is evaluated. */
    private void unevaluated(String name, String group, String... tags) {
        put(name, group, tags, new AssertionError(group + " " + name + " was evaluated"));
    }

    private void put(String name, String group, String[] tags, Object value) {
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < tags.length; i += 2) {
            map.put(tags[i], tags[i + 1]);
        }
        MetricName metricName = new MetricName(name, group, "", map);
        metrics.put(metricName, new Metric() {
            @Override
            public MetricName metricName() {
                return metricName;
            }

            @Override
            @SuppressWarnings("deprecation") // removed in 3.0
            public double value() {
                throw new AssertionError("value");
            }

            @Override
            public Object metricValue() {
                if (value instanceof Error) {
                    throw (Error) value;
                }
                return value;
            }
        });
    }
}
