// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/**
 * The facts in the metrics of one KafkaStreams object, read in one pass. Names and tags are public in all versions (KIP-444). Only a few metrics,
 * selected by name and implemented in Java, are evaluated: those of the stores call into RocksDB, which may be closing at that moment
 * (KAFKA-10025).
 */
final class ClientMetrics {
    /** The task id of the global thread in all versions (GlobalProcessorContextImpl). */
    static final String GLOBAL_TASK = "-1_-1";

    /** A coordinator's id is this minus the broker's id (AbstractCoordinator), so it is the larger of the two. */
    private static final int COORDINATOR = Integer.MAX_VALUE;

    String clientId = "";
    final Map<String, String> client = new HashMap<>();
    /** The tasks of each thread according to the tags, for threads without a recorded assignment. */
    final TreeMap<String, ThreadTasks> threads = new TreeMap<>();
    /** The scopes of the stores, by task and store. */
    final Map<String, TreeMap<String, String>> stores = new HashMap<>();
    final Set<Integer> brokers = new HashSet<>();
    double largestRecord;
    private double averages;
    private int producers;

    ClientMetrics(Map<MetricName, ? extends Metric> metrics) {
        for (Map.Entry<MetricName, ? extends Metric> e : metrics.entrySet()) {
            MetricName name = e.getKey();
            String group = name.group();
            if (name.tags().containsKey("task-id")) {
                task(group, name.tags());
            } else if (group.equals("stream-metrics")) {
                client(name, e.getValue());
            } else if (group.equals("stream-thread-metrics")) {
                thread(name.tags().get("thread-id"));
            } else if (group.equals("producer-metrics")) {
                records(name.name(), e.getValue());
            } else if (group.endsWith("-node-metrics")) {
                broker(name.tags().get("node-id"));
            }
        }
    }

    /** Returns the average size of the records that the producers have written; 0 if it is unknown. */
    long averageRecord() {
        return producers == 0 ? 0 : Math.round(averages / producers);
    }

    private void client(MetricName name, Metric metric) {
        switch (name.name()) {
            case "version":
            case "application-id":
            case "topology-description":
                clientId = name.tags().getOrDefault("client-id", clientId);
                client.put(name.name(), String.valueOf(metric.metricValue()));
                break;
            default: // with built.in.metrics.version=0.10.0-2.4 (2.8), threads are in the same group
        }
    }

    private ThreadTasks thread(String name) {
        if (name == null || !name.contains("-StreamThread-")) {
            return null;
        }
        return threads.computeIfAbsent(name, ThreadTasks::new);
    }

    private void task(String group, Map<String, String> tags) {
        String id = tags.get("task-id");
        ThreadTasks thread = thread(tags.getOrDefault("thread-id", tags.get("client-id")));
        // Only an active task has processors.
        if (thread != null && group.equals("stream-processor-node-metrics")) {
            thread.active.add(id);
            thread.standby.remove(id);
        } else if (thread != null && !thread.active.contains(id)) {
            thread.standby.add(id);
        }
        for (Map.Entry<String, String> tag : tags.entrySet()) {
            // The tag is <scope>-id, for example rocksdb-window-state-id.
            if (tag.getKey().endsWith("-state-id")) {
                String scope = tag.getKey().substring(0, tag.getKey().length() - "-id".length());
                stores.computeIfAbsent(id, none -> new TreeMap<>()).merge(tag.getValue(), scope, ClientMetrics::databaseScope);
            }
        }
    }

    /** Returns the scope of the database out of two scopes of one store. */
    private static String databaseScope(String first, String second) {
        boolean firstIsRocksDB = first.startsWith("rocksdb");
        boolean secondIsRocksDB = second.startsWith("rocksdb");
        if (firstIsRocksDB != secondIsRocksDB) {
            return firstIsRocksDB ? first : second;
        }
        return first.compareTo(second) <= 0 ? first : second;
    }

    private void records(String name, Metric metric) {
        boolean largest = name.equals("record-size-max");
        if (!largest && !name.equals("record-size-avg")) {
            return;
        }
        Object value = metric.metricValue();
        double size = value instanceof Number ? ((Number) value).doubleValue() : 0;
        if (!(size > 0) || Double.isInfinite(size)) {
            return; // NaN before the first record
        }
        if (largest) {
            largestRecord = Math.max(largestRecord, size);
        } else {
            averages += size;
            producers++;
        }
    }

    /** Counts the broker of a node: node-3, node-2147483644 for the coordinator on broker 3, node--1 for a bootstrap server. */
    private void broker(String node) {
        if (node == null || !node.startsWith("node-")) {
            return;
        }
        try {
            int id = Integer.parseInt(node.substring("node-".length()));
            if (id >= 0) {
                brokers.add(Math.min(id, COORDINATOR - id));
            }
        } catch (NumberFormatException e) {
            return; // not a broker
        }
    }
}
