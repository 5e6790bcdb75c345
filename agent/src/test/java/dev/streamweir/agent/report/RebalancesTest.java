// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.Messages;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** Reports during constant changes of tasks and clients. */
class RebalancesTest {
    private static final int REPORTS = 10_000;

    private final FakeSource source = new FakeSource();
    private final Semaphore turns = new Semaphore(0);
    private final Map<Integer, Map<String, Object>> clients = new ConcurrentHashMap<>();

    @Test
    void everyReportIsCompleteAndLimited() throws Exception {
        source.clients = () -> new ArrayList<>(clients.values());
        Report report = new Report(source, 1);
        AtomicBoolean done = new AtomicBoolean();
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        Thread changing = new Thread(() -> change(done), "changing");
        changing.setUncaughtExceptionHandler((t, e) -> failures.add(e));
        changing.start();
        int largest = 0;
        for (int i = 0; i < REPORTS; i++) {
            turns.release(); // allows one change during the report
            byte[] bytes = report.bytes();
            largest = Math.max(largest, bytes.length);
            assertEquals('}', bytes[bytes.length - 1]);
        }
        done.set(true);
        turns.release();
        changing.join();
        assertEquals(List.of(), failures);
        assertEquals(List.of(), source.findings());
        assertTrue(largest > 1000 && largest <= Report.LARGEST, largest + " bytes");
    }

    private void change(AtomicBoolean done) {
        Random random = new Random(1);
        while (!done.get()) {
            turns.acquireUninterruptibly();
            int id = random.nextInt(3);
            if (random.nextBoolean()) {
                clients.remove(id);
            } else {
                clients.put(id, client(id, random.nextInt(20)));
            }
            source.change();
        }
    }

    private static Map<String, Object> client(int id, int tasks) {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < tasks; i++) {
            list.add(Map.of("id", "0_" + i, "role", "Active", "stores", List.of(Map.of("name", "s", "scope", "rocksdb-state"))));
        }
        Map<String, Object> client = new HashMap<>();
        client.put("clientID", "c" + id);
        client.put("threads", List.of(Map.of("name", "c" + id + "-StreamThread-1", "tasks", list)));
        client.put(Messages.ORIGINALS, Map.of("buffer.memory", 1, "state.dir", "/tmp"));
        return client;
    }
}
