// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * Flushes the memtables of stores with few writes when the budget of the shared write buffer manager is nearly used up. From 7/8 of the budget on
 * (WriteBufferManager::ShouldFlush), each write of any store flushes the memtable of that store, however small, while the entries of idle stores
 * keep the budget: one busy store among 24 then managed 930
 * writes a second instead of 103,804 (measured with a limit of 15 MiB).
 */
final class Memtables {
    private static final long CHECK_NANOS = 1_000_000_000;
    private static final double NANOS_PER_SECOND = 1e9;
    /** Flushes begin when more of the budget is used, in quarters: an eighth of the budget below ShouldFlush. */
    private static final int FULL_QUARTERS = 3;
    /** Flushes end when no more of the budget is used, in quarters: up to it, ShouldFlush is false even during flushes. */
    private static final int FREE_QUARTERS = 2;

    private final long budget;
    private final Consumer<String> failed;
    private final Set<Memtable> open = ConcurrentHashMap.newKeySet();
    private Thread thread;

    /**
     * @param budget the limit of the write buffer manager in bytes
     * @param failed receives the reason if a memtable cannot be flushed
     */
    Memtables(long budget, Consumer<String> failed) {
        this.budget = budget;
        this.failed = failed;
    }

    /** Adds the memtable of a store that has opened. */
    void add(Memtable memtable) {
        open.add(memtable);
    }

    /** Removes the memtable of a store that is closed. The caller may hold the monitor of the store, so this method waits for no lock. */
    void remove(Memtable memtable) {
        open.remove(memtable);
    }

    /** Checks the memtables every second on a thread that ends with the last store: it would keep the loader of an ended application. */
    synchronized void start() {
        if (thread == null) {
            thread = new Thread(this::run, "streamweir-memtables");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void run() {
        long last = System.nanoTime();
        while (!hasEnded()) {
            try {
                Thread.sleep(CHECK_NANOS / 1_000_000);
            } catch (InterruptedException interrupted) {
                continue; // an application may interrupt threads that it does not know
            }
            long now = System.nanoTime();
            try {
                check((now - last) / NANOS_PER_SECOND);
            } catch (Throwable failure) {
                // The application continues, and so do the checks.
            }
            last = now;
        }
    }

    private synchronized boolean hasEnded() {
        if (open.isEmpty()) {
            thread = null;
        }
        return !isChecking();
    }

    /** Returns whether the memtables are checked every second. */
    synchronized boolean isChecking() {
        return thread != null;
    }

    /** Measures all memtables. If they use more than 3/4 of the budget, flushes those of stores with few writes, the largest first, down to 1/2. */
    void check(double seconds) {
        long used = 0;
        List<Memtable> flushable = new ArrayList<>();
        for (Memtable memtable : open) {
            try {
                memtable.measure(seconds);
            } catch (Throwable failure) {
                exclude(memtable, failure);
                continue;
            }
            used += memtable.size();
            if (memtable.isFlushable()) {
                flushable.add(memtable);
            }
        }
        if (used > budget / 4 * FULL_QUARTERS) {
            flushable.sort(Comparator.comparingLong(Memtable::size).reversed());
            flush(flushable, used - budget / 4 * FREE_QUARTERS);
        }
    }

    /** Flushes memtables until they have freed an amount in bytes. */
    private void flush(List<Memtable> flushable, long amount) {
        for (Memtable memtable : flushable) {
            if (amount <= 0) {
                return;
            }
            try {
                memtable.flush();
                amount -= memtable.size();
            } catch (Throwable failure) {
                exclude(memtable, failure);
            }
        }
    }

    /** Leaves a memtable alone that cannot be measured or flushed. */
    private void exclude(Memtable memtable, Throwable failure) {
        open.remove(memtable);
        failed.accept(failure.toString());
    }
}
