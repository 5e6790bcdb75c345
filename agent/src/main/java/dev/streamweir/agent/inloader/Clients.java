// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.kafka.streams.KafkaStreams;

/** The KafkaStreams objects of one loader and the tasks of their threads. It keeps no object alive that the application has released. */
final class Clients {
    /** The largest number of reported clients, as in the schema of the report. */
    private static final int MAX_CLIENTS = 64;

    /** Stores open one after the other after an assignment. After this number of checks without a change, one a second, all are open. */
    private static final int QUIET_CHECKS = 10;

    private final List<Client> clients = new ArrayList<>();
    private final Map<Thread, ThreadTasks> assigned = new WeakHashMap<>();

    private long changes;
    /** The states at the last check. */
    private String states = "";
    /** A hash of the open stores at the last check that read them. */
    private int stores;
    private int checks;
    /** The number of checks without a change since the last one. */
    private int quiet;

    /** Adds a KafkaStreams object. Its constructors call each other, so the same object may come more than once. */
    synchronized void created(Object streams) {
        prune();
        for (Client client : clients) {
            if (client.is(streams)) {
                return;
            }
        }
        clients.add(new Client((KafkaStreams) streams));
        quiet = 0;
    }

    /** Records the tasks that the calling stream thread is assigned. */
    void assigned(Map<?, ?> active, Map<?, ?> standby) {
        Thread thread = Thread.currentThread();
        ThreadTasks tasks = ThreadTasks.of(thread.getName(), active.keySet(), standby.keySet());
        synchronized (this) {
            assigned.put(thread, tasks);
            quiet = 0;
        }
    }

    /** Returns the open clients: see {@link Client#report}. The first has {@link Messages#TRUNCATED} if any part is omitted. */
    List<Map<String, Object>> report() {
        ReportLimits limits = new ReportLimits();
        Collection<ThreadTasks> threads = threads();
        List<Map<String, Object>> list = new ArrayList<>();
        for (Client client : open()) {
            Map<String, Object> map = client.report(threads, limits);
            if (map != null) {
                list.add(map);
            }
        }
        String omitted = limits.exceeded() ? "tasks or stores" : tooMany() ? "clients" : null;
        if (omitted != null && !list.isEmpty()) {
            list.get(0).put(Messages.TRUNCATED, omitted);
        }
        return list;
    }

    /** Returns a number that grows with each change of clients, their states and their open stores. Called about once a second. */
    long changes() {
        boolean thorough;
        synchronized (this) {
            thorough = quiet < QUIET_CHECKS || checks % QUIET_CHECKS == 0;
            checks++;
        }
        StringBuilder presentStates = new StringBuilder();
        int presentStores = 0;
        for (Client client : open()) {
            presentStates.append(System.identityHashCode(client)).append(client.state()).append(',');
            ClientMetrics metrics = thorough ? client.metrics() : null;
            presentStores = presentStores * 31 + (metrics == null ? 0 : metrics.stores.hashCode());
        }
        synchronized (this) {
            boolean same = states.contentEquals(presentStates) && (!thorough || stores == presentStores);
            quiet = same ? quiet + 1 : 0;
            states = presentStates.toString();
            stores = thorough ? presentStores : stores;
            changes += same ? 0 : 1;
            return changes;
        }
    }

    /** Returns the clients to report. */
    private synchronized List<Client> open() {
        prune();
        return new ArrayList<>(clients.subList(0, Math.min(clients.size(), MAX_CLIENTS)));
    }

    private synchronized boolean tooMany() {
        return clients.size() > MAX_CLIENTS;
    }

    private synchronized Collection<ThreadTasks> threads() {
        prune();
        return new ArrayList<>(assigned.values());
    }

    private void prune() {
        clients.removeIf(client -> client.state() == null);
        assigned.keySet().removeIf(thread -> !thread.isAlive());
    }
}
