// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With real KafkaStreams objects that are not started: there is no broker. */
class ClientsTest {
    private final Clients clients = new Clients();
    private final List<KafkaStreams> made = new ArrayList<>();

    @TempDir Path folder;

    @AfterEach
    void close() {
        made.forEach(s -> s.close(Duration.ZERO));
    }

    @Test
    void aClient() {
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
        assertEquals("2", ((Map<?, ?>) client.get("originals")).get("num.stream.threads"));
        assertFalse(client.containsKey("truncated"));
    }

    @Test
    void oneThatIsMadeByConstructorsThatCallEachOtherIsOne() {
        KafkaStreams s = streams("one");
        clients.created(s);
        clients.created(s);
        clients.created(streams("two"));
        assertEquals(2, clients.report().size());
    }

    @Test
    void aClosedClientIsGone() {
        KafkaStreams s = streams("one");
        clients.created(s);
        long changes = clients.changes();
        assertEquals(changes, clients.changes());
        s.close(Duration.ofSeconds(30));
        assertEquals(List.of(), clients.report());
        assertTrue(clients.changes() > changes, "and that is told");
    }

    @Test
    void whatWasAssigned() throws Exception {
        clients.created(streams("one"));
        clients.created(streams("one-StreamThread"));
        Thread thread = new Thread(() -> {
            clients.assigned(Map.of(new TaskId(0, 1), Set.of()), Map.of(new TaskId(0, 2), Set.of(), new TaskId(1, 10), Set.of()));
            List<Map<String, Object>> report = clients.report();
            assertEquals("[{id=0_1, role=Active, stores=[]}, {id=0_2, role=Standby, stores=[]}, {id=1_10, role=Standby, stores=[]}]",
                thread(report.get(0), 1).get("tasks").toString());
            assertEquals(List.of(), thread(report.get(0), 0).get("tasks"), "another thread's");
            assertEquals(List.of(), thread(report.get(1), 1).get("tasks"), "another client's");
            clients.assigned(Map.of(), Map.of());
            assertEquals(List.of(), thread(clients.report().get(0), 1).get("tasks"));
            clients.assigned(Map.of(new TaskId(0, 3), Set.of()), Map.of());
        }, "one-StreamThread-2");
        Throwable[] failure = new Throwable[1];
        thread.setUncaughtExceptionHandler((t, e) -> failure[0] = e);
        thread.start();
        thread.join();
        assertEquals(null, failure[0]);
        assertEquals(List.of(), thread(clients.report().get(0), 1).get("tasks"), "of a thread that has ended");
    }

    @Test
    void noMoreThanAReportHolds() throws Exception {
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
        assertEquals(true, client.get("truncated"));
    }

    private static Map<?, ?> thread(Map<String, Object> client, int index) {
        return (Map<?, ?>) ((List<?>) client.get("threads")).get(index);
    }

    private KafkaStreams streams(String id) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.table("in", Materialized.as("store"));
        Properties p = new Properties();
        p.put("application.id", "orders");
        p.put("client.id", id);
        p.put("bootstrap.servers", "127.0.0.1:9"); // nobody is there
        p.put("num.stream.threads", "2");
        p.put("state.dir", folder.resolve(id).toString());
        p.put("default.key.serde", Serdes.StringSerde.class);
        p.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams s = new KafkaStreams(builder.build(), p);
        made.add(s);
        return s;
    }
}
