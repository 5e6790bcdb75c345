// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import dev.streamweir.agent.Messages;
import java.nio.file.FileStore;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** Assembles the report. Its schema is documented once: type Report of the Go package agent/report. */
final class Report {
    /** The version of the schema. */
    static final int SCHEMA = 1;

    /** The largest report that the operator reads, in bytes. */
    static final int LARGEST = 256 * 1024;

    /** The limit of the schema. */
    private static final int FINDINGS = 50;

    /** The longest message, in characters: longer than any sentence of the agent, shorter than the texts of some exceptions. */
    private static final int MESSAGE_LENGTH = 1000;

    /** The largest number of own caches. Each takes about 40 bytes, so all take an eighth of the report. */
    private static final int OWN_CACHES = 800;

    /** The fields of a client that are copied from the source. This class adds settings and state directory; nothing else gets into a report. */
    private static final String[] CLIENT_FIELDS = {
        "applicationID", "clientID", "version", "state", "topology", "threads", "globalStores", "brokers", "records",
    };

    /** The parts that are omitted, in the order in which they cost the operator the least. */
    private static final String[] OMITTED = {"topologies", "stores", "tasks", "clients"};

    private final Source source;
    private final long started;
    private final Map<String, Object> allocator = Allocator.read(Path.of("/"), System.getenv());
    /** Whether tasks, stores or clients are omitted from the present report. */
    private boolean truncated;

    Report(Source source, long started) {
        this.source = source;
        this.started = started;
    }

    /** Returns the report in JSON, at most {@link #LARGEST} bytes. */
    byte[] bytes() {
        truncated = false;
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("schema", SCHEMA);
        report.put("agent", source.version());
        report.put("seq", source.sequence()); // first, so that a change during the rest leads to another report
        report.put("podUID", source.podUid());
        report.put("started", started);
        report.put("bounded", source.bounded().wireName);
        report.put("truncated", false); // replaced at the end
        report.put("plan", part("plan", source::plan, Map.of()));
        report.put("rocksdb", part("rocksdb", this::rocksdb, Map.of()));
        List<Map<String, Object>> clients = part("clients", this::clients, new ArrayList<>());
        report.put("clients", clients);
        report.put("jvm", part("jvm", () -> Jvm.read(source), Map.of()));
        report.put("cgroup", part("cgroup", () -> Cgroup.read().toMap(), Map.of()));
        report.put("allocator", allocator);
        report.put("findings", findings());
        report.put("truncated", truncated);
        return fit(report, clients);
    }

    /** Returns one part of the report, or {@code otherwise} if reading it fails. */
    private <T> T part(String name, Supplier<T> read, T otherwise) {
        try {
            T value = read.get();
            return value == null ? otherwise : value;
        } catch (Throwable e) {
            source.finding("ReportIncomplete", "part " + name + " of the report could not be read: " + e);
            return otherwise;
        }
    }

    private List<Map<String, Object>> clients() {
        List<Map<String, Object>> list = new ArrayList<>();
        Set<FileStore> seen = new HashSet<>();
        for (Map<String, Object> from : source.clients()) {
            Map<String, Object> client = new LinkedHashMap<>();
            for (String name : CLIENT_FIELDS) {
                client.put(name, from.get(name));
            }
            Object originals = from.get(Messages.ORIGINALS);
            Map<?, ?> settings = originals instanceof Map ? (Map<?, ?>) originals : Map.of();
            client.put("settings", Settings.of(settings, source.injected(settings)));
            client.put("stateDir", StateDir.read(stateDir(settings, from), seen));
            if (from.containsKey(Messages.TRUNCATED)) {
                truncated = true;
                reportTruncated(String.valueOf(from.get(Messages.TRUNCATED)));
            }
            list.add(client);
        }
        return list;
    }

    /** Returns state.dir/application.id. The default of state.dir is java.io.tmpdir/kafka-streams (StreamsConfig since 2.8.1). */
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
                finding.put("message", message.substring(0, Math.min(message.length(), MESSAGE_LENGTH)));
                list.add(finding);
            }
        }
        return list;
    }

    /** Returns the RocksDB figures with at most {@link #OWN_CACHES} caches of the application. */
    private Map<String, Object> rocksdb() {
        Map<String, Object> map = new LinkedHashMap<>(source.rocksdb());
        Object caches = map.get(Messages.OWN_CACHES);
        if (caches instanceof List && ((List<?>) caches).size() > OWN_CACHES) {
            map.put(Messages.OWN_CACHES, ((List<?>) caches).subList(0, OWN_CACHES));
            reportTruncated("caches");
        }
        return map;
    }

    private void reportTruncated(String omitted) {
        source.finding("ReportTruncated", "the report is too small for all " + omitted + " of this process, so its tasks do not count; the operator "
            + "uses the Kafka group instead if it has one; run fewer clients or tasks in one process");
    }

    /** Returns the report, reduced until it fits: without topologies, then without stores, then without tasks, then without whole clients. */
    private byte[] fit(Map<String, Object> report, List<Map<String, Object>> clients) {
        byte[] bytes = Json.bytes(report);
        for (int step = 0; step < OMITTED.length && bytes.length > LARGEST; step++) {
            reportTruncated(OMITTED[step]);
            report.put("findings", findings());
            report.put("truncated", truncated || step > 0); // the operator needs no topology for the tasks
            int size = Json.bytes(report).length;
            for (int i = clients.size() - 1; i >= 0 && size > LARGEST; i--) {
                size -= Json.bytes(clients.get(i)).length;
                size += reduce(clients, i, step);
            }
            bytes = Json.bytes(report);
        }
        return bytes;
    }

    /** Applies one step to one client, and returns its remaining size. */
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

    /** Returns the threads without the stores of their tasks, or without tasks. */
    private static List<Object> trimmed(Object threads, boolean keepTasks) {
        List<Object> list = new ArrayList<>();
        for (Object thread : threads instanceof List ? (List<?>) threads : List.of()) {
            List<Object> tasks = new ArrayList<>();
            Object all = ((Map<?, ?>) thread).get("tasks");
            for (Object task : keepTasks && all instanceof List ? (List<?>) all : List.of()) {
                tasks.add(copyWith((Map<?, ?>) task, "stores", List.of()));
            }
            list.add(copyWith((Map<?, ?>) thread, "tasks", tasks));
        }
        return list;
    }

    private static Map<Object, Object> copyWith(Map<?, ?> map, String name, Object value) {
        Map<Object, Object> copy = new LinkedHashMap<>(map);
        copy.put(name, value);
        return copy;
    }
}
