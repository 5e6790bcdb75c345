// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.Jvm;
import dev.streamweir.agent.report.ReportServer;
import dev.streamweir.agent.report.Source;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.Supplier;

/** What the agent knows and has decided, once for the JVM. */
final class Core implements Source {
    final Findings findings;
    private final Options options;
    private final PlanFiles files;
    /** Weak, so that an application that is unloaded goes. */
    private final Map<ClassLoader, WeakReference<LoaderSide>> sides = new WeakHashMap<>();
    /** Capacities of caches by the cache. */
    private final Map<Object, Long> capacities = new WeakHashMap<>();

    private boolean started;
    private boolean serving;
    private Plan startPlan;
    private Bounds first;
    private String bounded = "Pending";
    private long seq = System.currentTimeMillis();
    private String seen = "";

    Core(Options options, Findings findings) {
        this.options = options;
        this.findings = findings;
        files = new PlanFiles(options.plan, findings);
        findings.listen(this::changed);
    }

    // What hooks and classes inside call.

    synchronized boolean knows(ClassLoader loader) {
        return sides.containsKey(loader);
    }

    /** The side of a loader, made at the first time. The loader's bridge keeps it. */
    synchronized LoaderSide sideOf(ClassLoader loader, Supplier<LoaderSide> made) {
        WeakReference<LoaderSide> known = sides.get(loader);
        LoaderSide side = known == null ? null : known.get();
        if (side == null) {
            side = made.get();
            sides.put(loader, new WeakReference<>(side));
        }
        return side;
    }

    /** The plan's settings for an application: those of the first read, since they hold until the process ends. */
    synchronized Map<String, String> settings() {
        start();
        return startPlan == null ? Map.of() : startPlan.settings;
    }

    /** The application's own caches are to be replaced. */
    synchronized boolean replacesCaches() {
        return startPlan != null && startPlan.replaceCaches;
    }

    /** Bounds for one more class loader; null where nothing is bounded. */
    synchronized Bounds boundsFor() {
        start();
        if (bounded.equals("Off")) {
            return null;
        }
        long limit = Memory.limit();
        long heap = Jvm.maxHeap();
        if (first == null) {
            first = Bounds.of(startPlan, limit, heap);
            if (first.source.equals("Clamped")) {
                findings.add("PlanClamped", "the plan is for a limit of " + startPlan.limit + " and a heap of " + startPlan.heap
                        + " bytes, this process has " + limit + " and " + heap + ": the shared cache is " + first.cache + " instead of " + startPlan.cache);
            }
            return first;
        }
        Bounds further = Bounds.further(first.cache, limit, heap);
        findings.add("SecondLoader", "Kafka Streams is loaded by more than one class loader, and each needs a cache of its own: this one has "
                + further.cache + " bytes; put Kafka Streams where the applications share it");
        return further;
    }

    private void start() {
        if (!started) {
            started = true;
            startPlan = files.read();
        }
    }

    /** The decision of one class loader: once off, it is off for the report. */
    synchronized void bounded(boolean inForce, String failure) {
        if (!inForce) {
            bounded = "Off";
            findings.add("NotBounded", "RocksDB is as Kafka Streams ships it: " + failure);
        } else if (bounded.equals("Pending")) {
            bounded = "InForce";
        }
        changed();
    }

    /** Something of the hooks does not work, so that nothing can be bounded. */
    void cannotBound(String reason, String message) {
        synchronized (this) {
            bounded = "Off";
        }
        findings.add(reason, message);
        serve();
        changed();
    }

    /** Arena block and write buffer for the next store: they follow the plan on disk. 0: leave them. */
    long[] sizes(Bounds bounds, long open) {
        Plan plan = files.read();
        long writeBuffer = plan == null ? 0 : plan.writeBuffer;
        return new long[] {bounds.arenaBlock(plan, open), writeBuffer};
    }

    void cacheMade(Object cache, long capacity) {
        synchronized (capacities) {
            capacities.put(cache, capacity);
        }
    }

    /** The capacity of a cache; 0: not known. */
    long capacityOf(Object cache) {
        synchronized (capacities) {
            return capacities.getOrDefault(cache, 0L);
        }
    }

    /** Kafka Streams is in use: from now on there is something to report. */
    void clientCreated() {
        serve();
        changed();
    }

    private void serve() {
        synchronized (this) {
            if (serving) {
                return;
            }
            serving = true;
        }
        ReportServer.start(options.port, this);
    }

    /** Tells those who wait that there is something new. */
    synchronized void changed() {
        seq++;
        notifyAll();
    }

    // What the report asks.

    @Override
    public String version() {
        String version = Core.class.getPackage().getImplementationVersion();
        return version == null ? "" : version;
    }

    @Override
    public String podUid() {
        String uid = System.getenv("STREAMWEIR_POD_UID");
        return uid == null ? "" : uid;
    }

    @Override
    public synchronized String bounded() {
        return bounded;
    }

    @Override
    public synchronized Map<String, Object> plan() {
        Plan last = files.current();
        Map<String, Object> plan = new HashMap<>();
        plan.put("onDisk", files.onDisk());
        plan.put("inForce", last == null ? "" : last.generation);
        plan.put("source", first != null ? first.source : last == null ? "Bootstrap" : "Plan");
        return plan;
    }

    @Override
    public Map<String, Object> rocksdb() {
        Map<String, Object> sum = new HashMap<>();
        List<Object> ownCaches = new ArrayList<>();
        long writeBuffers = 0;
        Bounds one = null;
        for (LoaderSide side : sides()) {
            Map<String, Object> figures = side.rocksdb();
            for (String name : new String[] {"cacheCapacity", "cacheUsage", "cachePinned", "opened", "closed"}) {
                long figure = figures.containsKey(name) ? (Long) figures.get(name) : 0;
                sum.merge(name, figure, (a, b) -> (Long) a + (Long) b);
            }
            if (figures.get("ownCaches") != null) {
                ownCaches.addAll((List<?>) figures.get("ownCaches"));
            }
            if (side.bounds() != null) {
                writeBuffers += side.bounds().writeBufferManager;
                one = one == null ? side.bounds() : one;
            }
        }
        sum.put("ownCaches", ownCaches);
        sum.put("writeBufferManager", writeBuffers);
        if (one != null) {
            Plan plan = files.current();
            sum.put("arenaBlock", one.arenaBlock(plan, (Long) sum.get("opened") - (Long) sum.get("closed")));
            sum.put("writeBuffer", plan == null ? 0 : plan.writeBuffer);
        }
        return sum;
    }

    @Override
    public List<Map<String, Object>> clients() {
        List<Map<String, Object>> all = new ArrayList<>();
        for (LoaderSide side : sides()) {
            all.addAll(side.clients());
        }
        return all;
    }

    private synchronized List<LoaderSide> sides() {
        List<LoaderSide> all = new ArrayList<>();
        for (WeakReference<LoaderSide> reference : sides.values()) {
            LoaderSide side = reference.get();
            if (side != null) {
                all.add(side);
            }
        }
        return all;
    }

    @Override
    public Collection<String> injected(Map<?, ?> originals) {
        return Injection.injected(originals.get(Injection.INJECTED)).keySet();
    }

    @Override
    public List<Map<String, Object>> findings() {
        return findings.report();
    }

    @Override
    public void finding(String reason, String message) {
        findings.add(reason, message);
    }

    @Override
    public synchronized long seq() {
        return seq;
    }

    @Override
    public synchronized void awaitChange(long known, long millis) throws InterruptedException {
        long end = System.nanoTime() + millis * 1_000_000;
        for (long left = millis; seq == known && left > 0; left = (end - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
    }

    @Override
    public void look() {
        boolean planChanged = files.look();
        StringBuilder now = new StringBuilder();
        for (LoaderSide side : sides()) {
            now.append(side.changes()).append(' ');
        }
        synchronized (this) {
            if (planChanged || !seen.contentEquals(now)) {
                seen = now.toString();
                changed();
            }
        }
    }
}
