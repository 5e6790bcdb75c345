// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.kafka.streams.KafkaStreams;

/** The KafkaStreams objects of one loader and what their threads were assigned. Holds nothing that the application has let go. */
final class Clients {
    /** More clients than one JVM has memory for: each has threads with consumers and producers of their own. */
    private static final int MOST = 64;

    /** Stores open one after the other after an assignment. Nothing more opens when so many looks (one a second) have found nothing. */
    private static final int SETTLED = 10;

    private final List<Client> clients = new ArrayList<>();
    private final Map<Thread, ThreadTasks> assigned = new WeakHashMap<>();

    private long changes;
    private String states = "";
    private int stores;
    private int looks;
    private int quiet;

    /** A KafkaStreams object was made. Its constructors call each other, so it may come more than once. */
    synchronized void created(Object streams) {
        prune();
        for (Client c : clients) {
            if (c.is(streams)) {
                return;
            }
        }
        if (clients.size() < MOST) {
            clients.add(new Client((KafkaStreams) streams));
        }
        quiet = 0;
    }

    /** The calling stream thread was assigned these tasks. */
    void assigned(Map<?, ?> active, Map<?, ?> standby) {
        Thread thread = Thread.currentThread();
        ThreadTasks tasks = ThreadTasks.of(thread.getName(), active.keySet(), standby.keySet());
        synchronized (this) {
            assigned.put(thread, tasks);
            quiet = 0;
        }
    }

    /** The clients that are not closed: see Client.report. The first has {@code truncated} where not all tasks or stores fit. */
    List<Map<String, Object>> report() {
        Room room = new Room();
        Collection<ThreadTasks> threads = threads();
        List<Map<String, Object>> list = new ArrayList<>();
        for (Client c : open()) {
            Map<String, Object> map = c.report(threads, room);
            if (map != null) {
                list.add(map);
            }
        }
        if (room.exceeded()) {
            list.get(0).put("truncated", true);
        }
        return list;
    }

    /** Grows with each change of clients, their states, and the stores that they have open. Called about once a second. */
    long changes() {
        boolean thorough;
        synchronized (this) {
            thorough = quiet < SETTLED || looks % SETTLED == 0;
            looks++;
        }
        StringBuilder nowStates = new StringBuilder();
        int nowStores = 0;
        for (Client c : open()) {
            nowStates.append(System.identityHashCode(c)).append(c.state()).append(',');
            ClientMetrics metrics = thorough ? c.metrics() : null;
            nowStores = nowStores * 31 + (metrics == null ? 0 : metrics.stores.hashCode());
        }
        synchronized (this) {
            boolean same = states.contentEquals(nowStates) && (!thorough || stores == nowStores);
            quiet = same ? quiet + 1 : 0;
            states = nowStates.toString();
            stores = thorough ? nowStores : stores;
            return same ? changes : ++changes;
        }
    }

    private synchronized List<Client> open() {
        prune();
        return new ArrayList<>(clients);
    }

    private synchronized Collection<ThreadTasks> threads() {
        prune();
        return new ArrayList<>(assigned.values());
    }

    private void prune() {
        clients.removeIf(c -> c.state() == null);
        for (Iterator<Thread> it = assigned.keySet().iterator(); it.hasNext();) {
            if (!it.next().isAlive()) {
                it.remove();
            }
        }
    }
}
