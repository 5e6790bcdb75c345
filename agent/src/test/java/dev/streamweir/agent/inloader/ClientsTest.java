// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.Fixture;
import dev.streamweir.agent.Messages;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With real KafkaStreams objects that are not started, because no broker runs. */
class ClientsTest {
    private final Clients clients = new Clients();
    private final List<KafkaStreams> created = new ArrayList<>();

    @TempDir Path folder;

    @AfterEach
    void close() {
        created.forEach(streams -> streams.close(Duration.ZERO));
    }

    @Test
    void reportsAClient() {
        clients.created(streams("one"));
        Map<String, Object> client = clients.report().get(0);
        assertEquals("orders", client.get("applicationID"));
        assertEquals("one", client.get("clientID"));
        assertEquals("2.8.2", client.get("version"));
        assertEquals("CREATED", client.get("state"));
        assertTrue(((String) client.get("topology")).contains("Sub-topology: 0"), client.toString());
        assertEquals(2, ((List<?>) client.get("threads")).size());
        assertEquals("one-StreamThread-1", thread(client, 0).get("name"));
        assertEquals(List.of(), thread(client, 0).get("tasks"));
        assertEquals(List.of(), client.get("globalStores"));
        assertEquals(0, client.get("brokers"));
        assertEquals(Map.of("averageSize", 0L, "largestSize", 0L), client.get("records"));
        assertEquals("2", ((Map<?, ?>) client.get(Messages.ORIGINALS)).get("num.stream.threads"));
        assertFalse(client.containsKey(Messages.TRUNCATED));
    }

    @Test
    void writesTheFieldsOfTheSharedFixture() throws InterruptedException {
        Map<String, Object> fixture = Fixture.client();
        Set<String> fields = new TreeSet<>(fixture.keySet());
        fields.removeAll(Set.of("settings", "stateDir")); // the agent replaces the originals by these
        fields.add(Messages.ORIGINALS);
        clients.created(streams("one"));
        List<Map<String, Object>> report = new ArrayList<>();
        Thread thread = new Thread(() -> {
            clients.assigned(Map.of(new TaskId(0, 3), Set.of()), Map.of());
            report.addAll(clients.report());
        }, "one-StreamThread-1");
        thread.start();
        thread.join();
        Map<String, Object> client = report.get(0);
        assertEquals(fields, new TreeSet<>(client.keySet()));
        assertEquals(Fixture.map(fixture, "records").keySet(), Fixture.map(client, "records").keySet());
        Map<String, Object> fixtureThread = Fixture.list(fixture, "threads").get(0);
        assertEquals(fixtureThread.keySet(), Fixture.list(client, "threads").get(0).keySet());
        Map<String, Object> fixtureTask = Fixture.list(fixtureThread, "tasks").get(0);
        Map<String, Object> task = Fixture.list(Fixture.list(client, "threads").get(0), "tasks").get(0);
        assertEquals(fixtureTask.keySet(), task.keySet());
        assertEquals(fixtureTask.get("id"), task.get("id"));
        assertEquals(fixtureTask.get("role"), task.get("role"));
    }

    @Test
    void addsAClientOnce() {
        KafkaStreams streams = streams("one");
        clients.created(streams);
        clients.created(streams);
        clients.created(streams("two"));
        assertEquals(2, clients.report().size());
    }

    @Test
    void omitsAClosedClient() {
        KafkaStreams streams = streams("one");
        clients.created(streams);
        long changes = clients.changes();
        assertEquals(changes, clients.changes());
        streams.close(Duration.ofSeconds(30));
        assertEquals(List.of(), clients.report());
        assertTrue(clients.changes() > changes, "counts as a change");
    }

    @Test
    void reportsAssignedTasks() throws Exception {
        clients.created(streams("one"));
        clients.created(streams("one-StreamThread"));
        Thread thread = new Thread(() -> {
            clients.assigned(Map.of(new TaskId(0, 1), Set.of()), Map.of(new TaskId(0, 2), Set.of(), new TaskId(1, 10), Set.of()));
            List<Map<String, Object>> report = clients.report();
            assertEquals("[{id=0_1, role=Active, stores=[]}, {id=0_2, role=Standby, stores=[]}, {id=1_10, role=Standby, stores=[]}]",
                thread(report.get(0), 1).get("tasks").toString());
            assertEquals(List.of(), thread(report.get(0), 0).get("tasks"), "of another thread");
            assertEquals(List.of(), thread(report.get(1), 1).get("tasks"), "of another client");
            clients.assigned(Map.of(), Map.of());
            assertEquals(List.of(), thread(clients.report().get(0), 1).get("tasks"));
            clients.assigned(Map.of(new TaskId(0, 3), Set.of()), Map.of());
        }, "one-StreamThread-2");
        Throwable[] failure = new Throwable[1];
        thread.setUncaughtExceptionHandler((t, e) -> failure[0] = e);
        thread.start();
        thread.join();
        assertEquals(null, failure[0]);
        assertEquals(List.of(), thread(clients.report().get(0), 1).get("tasks"), "of an ended thread");
    }

    @Test
    void limitsTheTasksOfAReport() throws Exception {
        clients.created(streams("one"));
        Map<Object, Object> many = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            many.put(new TaskId(0, i), Set.of());
        }
        Thread thread = new Thread(() -> {
            clients.assigned(many, Map.of());
            many.put("report", clients.report().get(0));
        }, "one-StreamThread-1");
        thread.start();
        thread.join();
        @SuppressWarnings("unchecked")
        Map<String, Object> client = (Map<String, Object>) many.get("report");
        assertEquals(10_000, ((List<?>) thread(client, 0).get("tasks")).size());
        assertEquals("tasks or stores", client.get(Messages.TRUNCATED));
    }

    @Test
    void limitsTheClientsOfAReport() {
        for (int i = 0; i < 65; i++) {
            clients.created(streams("client-" + i));
        }
        List<Map<String, Object>> report = clients.report();
        assertEquals(64, report.size());
        assertEquals("clients", report.get(0).get(Messages.TRUNCATED));
        created.get(0).close(Duration.ofSeconds(30));
        report = clients.report();
        assertEquals(64, report.size());
        assertFalse(report.get(0).containsKey(Messages.TRUNCATED));
    }

    private static Map<?, ?> thread(Map<String, Object> client, int index) {
        return (Map<?, ?>) ((List<?>) client.get("threads")).get(index);
    }

    private KafkaStreams streams(String id) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.table("in", Materialized.as("store"));
        Properties configs = new Properties();
        configs.put("application.id", "orders");
        configs.put("client.id", id);
        configs.put("bootstrap.servers", "127.0.0.1:9"); // no broker
        configs.put("num.stream.threads", "2");
        configs.put("state.dir", folder.resolve(id).toString());
        configs.put("default.key.serde", Serdes.StringSerde.class);
        configs.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(builder.build(), configs);
        created.add(streams);
        return streams;
    }
}
