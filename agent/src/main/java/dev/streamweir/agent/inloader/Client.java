// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;

/** One KafkaStreams object. */
final class Client {
    /** Attempts to read the metrics: a map of Kafka's that is not thread-safe (the producers of 2.8 with exactly_once) can fail while it is read. */
    private static final int ATTEMPTS = 5;

    private final WeakReference<KafkaStreams> streams;
    /** The largest record since the start. Kafka's metric covers the last minute only. */
    private double largestRecord;

    Client(KafkaStreams streams) {
        this.streams = new WeakReference<>(streams);
    }

    boolean is(Object other) {
        return streams.get() == other;
    }

    /** Returns the name of its KafkaStreams.State; null if it is closed or no longer exists. */
    String state() {
        KafkaStreams present = streams.get();
        String state = present == null ? null : String.valueOf(present.state());
        return "NOT_RUNNING".equals(state) || "ERROR".equals(state) ? null : state;
    }

    /** Returns the facts from its metrics; null if it no longer exists or they cannot be read. */
    ClientMetrics metrics() {
        for (int i = 0; i < ATTEMPTS; i++) {
            KafkaStreams present = streams.get();
            try {
                return present == null ? null : new ClientMetrics(present.metrics());
            } catch (RuntimeException e) {
                continue; // a thread started or ended
            }
        }
        return null;
    }

    /**
     * Returns an element of {@code clients} of the schema, with {@link Messages#ORIGINALS} in place of settings and stateDir; null if the client is
     * closed or cannot be read.
     *
     * @param assigned the tasks of the stream threads of this loader
     * @param limits the remaining tasks and stores of the report
     */
    Map<String, Object> report(Collection<ThreadTasks> assigned, ReportLimits limits) {
        String state = state();
        ClientMetrics metrics = state == null ? null : metrics();
        if (metrics == null) {
            return null;
        }
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("applicationID", metrics.client.getOrDefault("application-id", ""));
        map.put("clientID", metrics.clientId);
        map.put("version", metrics.client.getOrDefault("version", ""));
        map.put("state", state);
        map.put("topology", metrics.client.getOrDefault("topology-description", ""));
        map.put(Messages.ORIGINALS, originals());
        map.put("threads", threads(metrics, assigned, limits));
        map.put("globalStores", stores(metrics.stores.get(ClientMetrics.GLOBAL_TASK), limits));
        map.put("brokers", metrics.brokers.size());
        largestRecord = Math.max(largestRecord, metrics.largestRecord);
        Map<String, Object> records = new LinkedHashMap<>();
        records.put("averageSize", metrics.averageRecord());
        records.put("largestSize", Math.round(largestRecord));
        map.put("records", records);
        return map;
    }

    private static List<Object> threads(ClientMetrics metrics, Collection<ThreadTasks> assigned, ReportLimits limits) {
        TreeMap<String, ThreadTasks> threads = new TreeMap<>(metrics.threads);
        for (ThreadTasks tasks : assigned) {
            if (tasks.thread.startsWith(metrics.clientId + "-StreamThread-")) {
                threads.put(tasks.thread, tasks); // more than the metrics have: new tasks, and certain roles
            }
        }
        List<Object> list = new ArrayList<>();
        for (ThreadTasks tasks : threads.values()) {
            List<Object> reported = new ArrayList<>();
            addTasks(reported, tasks.active, "Active", metrics, limits);
            addTasks(reported, tasks.standby, "Standby", metrics, limits);
            Map<String, Object> thread = new LinkedHashMap<>();
            thread.put("name", tasks.thread);
            thread.put("tasks", reported);
            list.add(thread);
        }
        return list;
    }

    private static void addTasks(List<Object> to, Collection<String> ids, String role, ClientMetrics metrics, ReportLimits limits) {
        for (String id : ids) {
            if (!limits.takeTask()) {
                return;
            }
            Map<String, Object> task = new LinkedHashMap<>();
            task.put("id", id);
            task.put("role", role);
            task.put("stores", stores(metrics.stores.get(id), limits));
            to.add(task);
        }
    }

    private static List<Object> stores(Map<String, String> scopes, ReportLimits limits) {
        List<Object> list = new ArrayList<>();
        if (scopes == null) {
            return list;
        }
        for (Map.Entry<String, String> e : scopes.entrySet()) {
            if (!limits.takeStore()) {
                return list;
            }
            Map<String, Object> store = new LinkedHashMap<>();
            store.put("name", e.getKey());
            store.put("scope", e.getValue());
            list.add(store);
        }
        return list;
    }

    /**
     * Returns the configs of the client; none if its version does not keep them in a field of KafkaStreams. Versions 2.8 to 4.4 do, under
     * different names.
     */
    private Map<String, Object> originals() {
        KafkaStreams present = streams.get();
        if (present == null) {
            return new HashMap<>();
        }
        for (Field field : KafkaStreams.class.getDeclaredFields()) {
            try {
                if (StreamsConfig.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    return new HashMap<>(((StreamsConfig) field.get(present)).originals());
                }
            } catch (ReflectiveOperationException | RuntimeException e) {
                continue;
            }
        }
        return new HashMap<>();
    }
}
