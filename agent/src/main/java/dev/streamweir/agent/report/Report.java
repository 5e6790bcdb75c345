// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.nio.file.FileStore;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** Puts the report together. Its schema is documented in one place, the type Report of the Go package assignment. */
final class Report {
    /** Version of the schema. */
    private static final int SCHEMA = 1;

    /** The operator reads no more. */
    static final int LARGEST = 256 * 1024;

    /** As the schema says. */
    private static final int FINDINGS = 50;

    /** Characters: more than any sentence of the agent has, less than the texts of some exceptions. */
    private static final int MESSAGE = 1000;

    /** They take about 40 bytes each, so these an eighth of the report. */
    private static final int OWN_CACHES = 800;

    /** What is told of a client besides settings and state directory, which are made here. Nothing else of it gets into a report. */
    private static final String[] CLIENT = {
        "applicationID", "clientID", "version", "state", "topology", "threads", "globalStores", "brokers", "records",
    };

    private final Source source;
    private final long started;
    private final Map<String, Object> allocator = Allocator.read(Path.of("/"), System.getenv());

    Report(Source source, long started) {
        this.source = source;
        this.started = started;
    }

    /** The report in JSON, at most {@link #LARGEST} bytes. */
    byte[] bytes() {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("schema", SCHEMA);
        report.put("agent", source.version());
        report.put("seq", source.seq()); // first: a change while the rest is read makes another report
        report.put("podUID", source.podUid());
        report.put("started", started);
        report.put("bounded", source.bounded());
        report.put("plan", part("plan", source::plan, Map.of()));
        report.put("rocksdb", part("rocksdb", this::rocksdb, Map.of()));
        List<Map<String, Object>> clients = part("clients", this::clients, new ArrayList<>());
        report.put("clients", clients);
        report.put("jvm", part("jvm", () -> Jvm.read(source), Map.of()));
        report.put("cgroup", part("cgroup", () -> Cgroup.read().toMap(), Map.of()));
        report.put("allocator", allocator);
        report.put("findings", findings());
        return fit(report, clients);
    }

    /** One part of the report. Where it fails, it alone is missing. */
    private <T> T part(String name, Supplier<T> read, T otherwise) {
        try {
            T value = read.get();
            return value == null ? otherwise : value;
        } catch (Throwable e) {
            source.finding("ReportIncomplete", "The report has no part " + name + ": " + e + ".");
            return otherwise;
        }
    }

    private List<Map<String, Object>> clients() {
        List<Map<String, Object>> list = new ArrayList<>();
        Set<FileStore> seen = new HashSet<>();
        for (Map<String, Object> from : source.clients()) {
            Map<String, Object> client = new LinkedHashMap<>();
            for (String name : CLIENT) {
                client.put(name, from.get(name));
            }
            Object originals = from.get("originals");
            Map<?, ?> settings = originals instanceof Map ? (Map<?, ?>) originals : Map.of();
            client.put("settings", Settings.of(settings, source.injected(settings)));
            client.put("stateDir", StateDir.read(stateDir(settings, from), seen));
            if (from.containsKey("truncated")) {
                truncated("tasks or stores");
            }
            list.add(client);
        }
        return list;
    }

    /** state.dir/application.id; state.dir is java.io.tmpdir/kafka-streams by default (StreamsConfig since 2.8.1). */
    private static String stateDir(Map<?, ?> settings, Map<String, Object> client) {
        Object dir = settings.get("state.dir");
        return (dir == null ? System.getProperty("java.io.tmpdir") + "/kafka-streams" : dir) + "/" + client.get("applicationID");
    }

    private List<Map<String, Object>> findings() {
        List<Map<String, Object>> list = new ArrayList<>();
        for (Map<String, Object> from : source.findings()) {
            if (list.size() < FINDINGS) {
                Map<String, Object> finding = new LinkedHashMap<>(from);
                String message = String.valueOf(from.get("message"));
                finding.put("message", message.substring(0, Math.min(message.length(), MESSAGE)));
                list.add(finding);
            }
        }
        return list;
    }

    /** Of the caches that the application keeps itself no more than there is room for. */
    private Map<String, Object> rocksdb() {
        Map<String, Object> map = new LinkedHashMap<>(source.rocksdb());
        Object caches = map.get("ownCaches");
        if (caches instanceof List && ((List<?>) caches).size() > OWN_CACHES) {
            map.put("ownCaches", ((List<?>) caches).subList(0, OWN_CACHES));
            truncated("caches");
        }
        return map;
    }

    private void truncated(String what) {
        source.finding("ReportTruncated", "The report has no room for all " + what + " of this process. The operator takes them from the Kafka "
            + "group and the StreamApp, if these say so; fewer clients or tasks in one process help.");
    }

    /** Leaves out what costs the operator least until the rest fits: topologies, then stores, then tasks, then whole clients. */
    private byte[] fit(Map<String, Object> report, List<Map<String, Object>> clients) {
        byte[] bytes = Json.bytes(report);
        String[] what = {"topologies", "stores", "tasks", "clients"};
        for (int step = 0; step < what.length && bytes.length > LARGEST; step++) {
            truncated(what[step]);
            report.put("findings", findings());
            int size = Json.bytes(report).length;
            for (int c = clients.size(); c-- > 0 && size > LARGEST;) {
                size -= Json.bytes(clients.get(c)).length;
                size += reduce(clients, c, step);
            }
            bytes = Json.bytes(report);
        }
        return bytes;
    }

    /** Takes one step with one client, and gives the size that is left of it. */
    private static int reduce(List<Map<String, Object>> clients, int index, int step) {
        Map<String, Object> client = clients.get(index);
        if (step == 0) {
            client.put("topology", "");
        } else if (step == 1) {
            client.put("threads", trimmed(client.get("threads"), true));
            client.put("globalStores", List.of());
        } else if (step == 2) {
            client.put("threads", trimmed(client.get("threads"), false));
        } else {
            clients.remove(index);
            return 0;
        }
        return Json.bytes(client).length;
    }

    /** The threads without the stores of their tasks, or without tasks. */
    private static List<Object> trimmed(Object threads, boolean keepTasks) {
        List<Object> list = new ArrayList<>();
        for (Object thread : threads instanceof List ? (List<?>) threads : List.of()) {
            List<Object> tasks = new ArrayList<>();
            Object old = ((Map<?, ?>) thread).get("tasks");
            for (Object task : keepTasks && old instanceof List ? (List<?>) old : List.of()) {
                tasks.add(copy((Map<?, ?>) task, "stores", List.of()));
            }
            list.add(copy((Map<?, ?>) thread, "tasks", tasks));
        }
        return list;
    }

    private static Map<Object, Object> copy(Map<?, ?> map, String name, Object value) {
        Map<Object, Object> copy = new LinkedHashMap<>(map);
        copy.put(name, value);
        return copy;
    }
}
