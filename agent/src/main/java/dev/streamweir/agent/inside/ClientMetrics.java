// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/**
 * What the metrics of one KafkaStreams object tell, read in one pass. Names and tags are public in all versions (KIP-444). Values are
 * asked of a few metrics only that live in Java, by name: those of the stores reach into RocksDB, which may be closing at that moment
 * (KAFKA-10025).
 */
final class ClientMetrics {
    /** The task of the global thread, in all versions (GlobalProcessorContextImpl). */
    static final String GLOBAL_TASK = "-1_-1";

    /** Coordinators have this less the broker's id as theirs (AbstractCoordinator), so ids from the half on are such. */
    private static final int COORDINATOR = Integer.MAX_VALUE;

    String clientId = "";
    final Map<String, String> client = new HashMap<>();
    /** Tasks as they are seen by thread: what is known of a thread that no assignment was seen of. */
    final TreeMap<String, ThreadTasks> threads = new TreeMap<>();
    /** Scopes by store, by task. */
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

    /** The average size of the records that the producers have written; 0: not known. */
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
            default: // threads are in the same group with built.in.metrics.version=0.10.0-2.4 (2.8)
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
            // <scope>-id, for instance rocksdb-window-state-id
            if (tag.getKey().endsWith("-state-id")) {
                String scope = tag.getKey().substring(0, tag.getKey().length() - "-id".length());
                stores.computeIfAbsent(id, none -> new TreeMap<>()).merge(tag.getValue(), scope, ClientMetrics::nearer);
            }
        }
    }

    /** Of two scopes of one store, the one of the database below it. */
    private static String nearer(String a, String b) {
        boolean rocksA = a.startsWith("rocksdb");
        return rocksA == b.startsWith("rocksdb") ? a.compareTo(b) <= 0 ? a : b : rocksA ? a : b;
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

    /** node-3, node-2147483644 for the coordinator on 3, node--1 for a bootstrap server. */
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
