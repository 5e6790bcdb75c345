// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** A source with the facts of a test. */
final class FakeSource implements Source {
    volatile Supplier<List<Map<String, Object>>> clients = ArrayList::new;
    volatile Supplier<Map<String, Object>> rocksdb = Map::of;
    volatile Runnable check = () -> {};
    volatile Collection<String> injected = List.of();
    volatile String version = "1.2.3";
    volatile String podUid = "uid-1";
    volatile Boundedness bounded = Boundedness.ACTIVE;
    volatile Map<String, Object> plan = Map.of("onDisk", "a", "active", "b", "source", "Plan");
    volatile Runnable listener = () -> {};
    volatile String token = ReportServerTest.TOKEN;
    final AtomicInteger checks = new AtomicInteger();
    private final Map<String, String> findings = new LinkedHashMap<>();
    private long sequence = 1000;

    synchronized void setSequence(long to) {
        sequence = to;
    }

    void change() {
        synchronized (this) {
            sequence++;
        }
        listener.run();
    }

    @Override
    public String version() {
        return version;
    }

    @Override
    public String podUid() {
        return podUid;
    }

    @Override
    public Boundedness bounded() {
        return bounded;
    }

    @Override
    public Map<String, Object> plan() {
        return plan;
    }

    @Override
    public Map<String, Object> rocksdb() {
        return rocksdb.get();
    }

    @Override
    public List<Map<String, Object>> clients() {
        return clients.get();
    }

    @Override
    public Collection<String> injected(Map<?, ?> originals) {
        return injected;
    }

    @Override
    public synchronized List<Map<String, Object>> findings() {
        List<Map<String, Object>> list = new ArrayList<>();
        findings.forEach((message, reason) -> list.add(Map.of("reason", reason, "message", message)));
        return list;
    }

    @Override
    public void finding(String reason, String message) {
        boolean isNew;
        synchronized (this) {
            isNew = findings.putIfAbsent(message, reason) == null;
        }
        if (isNew) {
            change();
        }
    }

    synchronized List<String> reasons() {
        return new ArrayList<>(findings.values());
    }

    @Override
    public synchronized long sequence() {
        return sequence;
    }

    @Override
    public void onChange(Runnable to) {
        listener = to;
    }

    @Override
    public boolean accepts(String presented) {
        return presented.equals(token);
    }

    @Override
    public void checkForChanges() {
        checks.incrementAndGet();
        check.run();
    }
}
