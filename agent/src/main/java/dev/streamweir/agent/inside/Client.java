// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

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
    /** A map of Kafka's that is not made for two threads (the producers of 2.8 with exactly_once) can fail under the reader's hands. */
    private static final int ATTEMPTS = 5;

    private final WeakReference<KafkaStreams> streams;
    /** The largest record since the start: Kafka's own figure forgets after a minute. */
    private double largestRecord;

    Client(KafkaStreams streams) {
        this.streams = new WeakReference<>(streams);
    }

    boolean is(Object other) {
        return streams.get() == other;
    }

    /** The name of its KafkaStreams.State; null: closed, or gone. */
    String state() {
        KafkaStreams s = streams.get();
        String state = s == null ? null : String.valueOf(s.state());
        return "NOT_RUNNING".equals(state) || "ERROR".equals(state) ? null : state;
    }

    /** What its metrics tell; null: closed, or cannot be read. */
    ClientMetrics metrics() {
        for (int i = 0; i < ATTEMPTS; i++) {
            KafkaStreams s = streams.get();
            try {
                return s == null ? null : new ClientMetrics(s.metrics());
            } catch (RuntimeException e) {
                continue; // a thread came or went
            }
        }
        return null;
    }

    /**
     * ReportedClient of the schema, with {@code originals} in the place of settings and stateDir; null: closed, or cannot be read.
     *
     * @param assigned what stream threads of this loader were assigned
     * @param room what there is room for in the report; what is used is taken off
     */
    Map<String, Object> report(Collection<ThreadTasks> assigned, Room room) {
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
        map.put("originals", originals());
        map.put("threads", threads(metrics, assigned, room));
        map.put("globalStores", stores(metrics.stores.get(ClientMetrics.GLOBAL_TASK), room));
        map.put("brokers", metrics.brokers.size());
        largestRecord = Math.max(largestRecord, metrics.largestRecord);
        Map<String, Object> records = new LinkedHashMap<>();
        records.put("averageSize", metrics.averageRecord());
        records.put("largestSize", Math.round(largestRecord));
        map.put("records", records);
        return map;
    }

    private static List<Object> threads(ClientMetrics metrics, Collection<ThreadTasks> assigned, Room room) {
        TreeMap<String, ThreadTasks> threads = new TreeMap<>(metrics.threads);
        for (ThreadTasks tasks : assigned) {
            if (tasks.thread.startsWith(metrics.clientId + "-StreamThread-")) {
                threads.put(tasks.thread, tasks); // says more than the metrics: a task that was just assigned, and for sure its role
            }
        }
        List<Object> list = new ArrayList<>();
        for (ThreadTasks tasks : threads.values()) {
            List<Object> told = new ArrayList<>();
            tasks(told, tasks.active, "Active", metrics, room);
            tasks(told, tasks.standby, "Standby", metrics, room);
            Map<String, Object> thread = new LinkedHashMap<>();
            thread.put("name", tasks.thread);
            thread.put("tasks", told);
            list.add(thread);
        }
        return list;
    }

    private static void tasks(List<Object> to, Collection<String> ids, String role, ClientMetrics metrics, Room room) {
        for (String id : ids) {
            if (!room.forTask()) {
                return;
            }
            Map<String, Object> task = new LinkedHashMap<>();
            task.put("id", id);
            task.put("role", role);
            task.put("stores", stores(metrics.stores.get(id), room));
            to.add(task);
        }
    }

    private static List<Object> stores(Map<String, String> scopes, Room room) {
        List<Object> list = new ArrayList<>();
        if (scopes == null) {
            return list;
        }
        for (Map.Entry<String, String> e : scopes.entrySet()) {
            if (!room.forStore()) {
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
     * The settings that the client was made with; none where its version keeps them elsewhere than in a field of KafkaStreams (2.8 to 4.4
     * have one; its name changed).
     */
    private Map<String, Object> originals() {
        KafkaStreams s = streams.get();
        if (s == null) {
            return new HashMap<>();
        }
        for (Field field : KafkaStreams.class.getDeclaredFields()) {
            try {
                if (StreamsConfig.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    return new HashMap<>(((StreamsConfig) field.get(s)).originals());
                }
            } catch (ReflectiveOperationException | RuntimeException e) {
                continue;
            }
        }
        return new HashMap<>();
    }
}
