// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.Fixture;
import dev.streamweir.agent.Messages;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class ReportTest {
    private final FakeSource source = new FakeSource();
    private final Report report = new Report(source, 77);

    @Test
    void hasEveryPart() {
        String json = json();
        assertTrue(json.startsWith("{\"schema\":1,\"agent\":\"1.2.3\",\"seq\":1000,\"podUID\":\"uid-1\",\"started\":77,\"bounded\":\"Active\",\"truncated\":false,\"plan\":{"), json);
        for (String part : List.of("rocksdb", "clients", "jvm", "cgroup", "allocator", "findings")) {
            assertTrue(json.contains("\"" + part + "\":"), part);
        }
    }

    /** The facts of the source come from the fixture. JVM, cgroup, allocator and state directory are those of this process. */
    @Test
    void writesTheFieldsOfTheSharedFixture() {
        Map<String, Object> fixture = Fixture.report();
        Map<String, Object> fixtureClient = Fixture.client();
        Map<String, Object> client = new HashMap<>(fixtureClient);
        Map<Object, Object> originals = new HashMap<>();
        for (Map<String, Object> setting : Fixture.list(fixtureClient, "settings")) {
            originals.put(setting.get("name"), setting.get("value"));
            if (setting.get("by").equals("Plan")) {
                source.injected = List.of((String) setting.get("name"));
            }
        }
        client.put(Messages.ORIGINALS, originals);
        source.clients = () -> List.of(client);
        source.version = (String) fixture.get("agent");
        source.podUid = (String) fixture.get("podUID");
        source.plan = Fixture.map(fixture, "plan");
        source.rocksdb = () -> Fixture.map(fixture, "rocksdb");
        Fixture.list(fixture, "findings").forEach(finding -> source.finding((String) finding.get("reason"), (String) finding.get("message")));
        source.setSequence((Long) fixture.get("seq"));

        Map<String, Object> written = Fixture.parse(new Report(source, (Long) fixture.get("started")).bytes());
        assertEquals(fixture.keySet(), written.keySet());
        assertEquals(Boolean.class, fixture.get("truncated").getClass());
        for (String part : List.of("schema", "agent", "seq", "podUID", "started", "bounded", "plan", "rocksdb", "findings")) {
            assertEquals(fixture.get(part), written.get(part), part);
        }
        for (String part : List.of("jvm", "cgroup", "allocator")) {
            assertEquals(typesOf(Fixture.map(fixture, part)), typesOf(Fixture.map(written, part)), part);
        }
        Map<String, Object> writtenClient = Fixture.list(written, "clients").get(0);
        assertEquals(fixtureClient.keySet(), writtenClient.keySet());
        for (String field : fixtureClient.keySet()) {
            if (field.equals("settings")) {
                assertEquals(Set.copyOf(Fixture.list(fixtureClient, field)), Set.copyOf(Fixture.list(writtenClient, field)));
            } else if (!field.equals("stateDir")) { // StateDirTest
                assertEquals(fixtureClient.get(field), writtenClient.get(field), field);
            }
        }
    }

    /** Returns the kinds of values by key: a number is an Integer or a Long. */
    private static Map<String, String> typesOf(Map<String, Object> map) {
        Map<String, String> types = new TreeMap<>();
        map.forEach((key, value) -> types.put(key, value instanceof Long ? "Integer" : value.getClass().getSimpleName()));
        return types;
    }

    @Test
    void namesEachStateOfTheBounds() {
        Map<Boundedness, String> names = Map.of(Boundedness.PENDING, "Pending", Boundedness.ACTIVE, "Active", Boundedness.OFF, "Off");
        for (Boundedness bounded : Boundedness.values()) {
            source.bounded = bounded;
            assertEquals(names.get(bounded), Fixture.parse(report.bytes()).get("bounded"));
        }
    }

    @Test
    void containsNoSecrets() {
        Map<String, Object> originals = new HashMap<>();
        for (String name : List.of("sasl.jaas.config", "ssl.keystore.password", "an.unknown.key", "consumer.sasl.jaas.config", "consumer.my.key",
                "main.consumer.ssl.key.password", "producer.ssl.truststore.password", "group.instance.id", "admin.batch.size")) {
            originals.put(name, "SECRET");
        }
        originals.put("buffer.memory", 1024);
        originals.put("SECRET", "buffer.memory");
        Map<String, Object> client = client("app", 1, 1);
        client.put(Messages.ORIGINALS, originals);
        client.put("unknown", "SECRET");
        source.clients = () -> List.of(client);
        String json = json();
        assertFalse(json.contains("SECRET"), json);
        assertTrue(json.contains("{\"name\":\"buffer.memory\",\"value\":\"1024\",\"by\":\"App\"}"), json);
    }

    @Test
    void aFailureCostsOnlyItsOwnPart() {
        source.clients = () -> {
            throw new IllegalStateException("broken");
        };
        source.rocksdb = () -> {
            throw new NoClassDefFoundError("gone");
        };
        String json = json();
        assertTrue(json.contains("\"clients\":[]") && json.contains("\"rocksdb\":{}") && json.contains("\"jvm\":{\"version\""), json);
        assertEquals(List.of("ReportIncomplete", "ReportIncomplete"), source.reasons());
    }

    @Test
    void leavesOutTopologiesFirst() {
        Map<String, Object> client = client("app", 10, 3);
        client.put("topology", "t".repeat(Report.LARGEST));
        source.clients = () -> List.of(client);
        String json = json();
        assertTrue(json.length() <= Report.LARGEST);
        assertTrue(json.contains("\"topology\":\"\"") && json.contains("rocksdb-state") && json.contains("ReportTruncated"));
        assertTrue(json.contains("\"truncated\":false"), "all tasks are there");
    }

    @Test
    void aClientWithOmittedPartsTruncatesTheReport() {
        Map<String, Object> client = client("app", 1, 1);
        source.clients = () -> List.of(client);
        assertTrue(json().contains("\"truncated\":false"));
        client.put(Messages.TRUNCATED, "clients");
        assertTrue(json().contains("\"truncated\":true"));
    }

    @Test
    void leavesOutStoresSecond() {
        source.clients = () -> List.of(client("app", 1000, 100));
        String json = json();
        assertTrue(json.length() <= Report.LARGEST);
        assertFalse(json.contains("rocksdb-state"));
        assertTrue(json.contains("\"0_999\""), "keeps the tasks");
        assertTrue(json.contains("\"truncated\":true"));
        assertTrue(json.contains("ReportTruncated"));
    }

    @Test
    void leavesOutTasksAndClientsLast() {
        source.clients = () -> List.of(client("app", 10_000, 1));
        assertTrue(json().length() <= Report.LARGEST);
        assertTrue(json().contains("StreamThread-1"), "keeps the threads");
        source.clients = () -> Collections.nCopies(3_000, client("\0\0\0\0\0\0\0\0", 1, 1));
        assertTrue(json().length() <= Report.LARGEST);
        assertTrue(json().contains("applicationID"), "keeps some clients");
    }

    @Test
    void reportsTruncationOnce() {
        source.clients = () -> List.of(client("app", 1000, 100));
        json();
        long sequence = source.sequence();
        json();
        assertEquals(sequence, source.sequence());
    }

    @Test
    void limitsFindingsAndOwnCaches() {
        for (int i = 0; i < 100; i++) {
            source.finding("Reason", i + " " + "x".repeat(100_000));
        }
        source.rocksdb = () -> Map.of("ownCaches", Collections.nCopies(100_000, Map.of("capacity", 1, "stores", 1)));
        String json = json();
        assertTrue(json.length() <= Report.LARGEST, json.length() + " characters");
        assertEquals(50, json.split("\"Reason\"", -1).length - 1);
    }

    private String json() {
        return new String(report.bytes(), StandardCharsets.UTF_8);
    }

    /** Returns a client with a number of tasks, each with a number of stores. */
    private static Map<String, Object> client(String application, int tasks, int stores) {
        List<Object> list = new ArrayList<>();
        List<Object> open = Collections.nCopies(stores, Map.of("name", "store", "scope", "rocksdb-state"));
        for (int i = 0; i < tasks; i++) {
            list.add(Map.of("id", "0_" + i, "role", "Active", "stores", open));
        }
        Map<String, Object> client = new HashMap<>();
        client.put("applicationID", application);
        client.put("clientID", application);
        client.put("threads", List.of(Map.of("name", application + "-StreamThread-1", "tasks", list)));
        client.put("globalStores", List.of());
        client.put("topology", "Topologies:");
        return client;
    }
}
