// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Responds to the requests with the token, on one thread: at once, or after the next change. */
final class Responder {
    /** The largest number of requests in progress. */
    static final int REQUESTS = 32;

    /**
     * The largest number of waiting requests. The operator has one; the others are for its second replica, its restarts, and people. A further
     * one replaces the oldest, which is then answered at once.
     */
    static final int WAITING = 8;

    /** The longest wait. */
    static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(60);

    /** The interval of the checks for changes without an event while a request waits, in nanoseconds. */
    private static final long CHECK_INTERVAL = TimeUnit.SECONDS.toNanos(1);

    private final Source source;
    private final Report report;
    private final Consumer<Connection> respond;
    private final List<Pending> requests = new ArrayList<>();
    /** Whether a request has come or the source has changed since the last round. */
    private boolean awake;
    private long lastCheck = System.nanoTime() - CHECK_INTERVAL;

    /**
     * @param respond takes the connections with a response to write
     */
    Responder(Source source, Consumer<Connection> respond) {
        this.source = source;
        this.respond = respond;
        report = new Report(source, Started.millis());
        source.onChange(this::wake);
    }

    /** Accepts a request, unless too many are in progress. */
    synchronized boolean offer(Connection connection, Query query) {
        requests.removeIf(request -> request.connection.closed);
        if (requests.size() >= REQUESTS) {
            return false;
        }
        requests.add(new Pending(connection, query));
        wake();
        return true;
    }

    private synchronized void wake() {
        awake = true;
        notifyAll();
    }

    /** Responds to requests for ever. */
    void run() {
        while (true) {
            try {
                await();
                checkForChanges();
                respond();
            } catch (Throwable e) {
                source.finding("ReportIncomplete", "the report failed: " + e);
            }
        }
    }

    /** Waits for a request, a change, the next check, or the end of a wait. */
    private synchronized void await() throws InterruptedException {
        while (!awake) {
            long nanos = CHECK_INTERVAL;
            for (Pending request : requests) {
                nanos = Math.min(nanos, request.end - System.nanoTime());
            }
            if (requests.isEmpty()) {
                wait();
            } else if (nanos <= 0) {
                return;
            } else {
                TimeUnit.NANOSECONDS.timedWait(this, nanos + TimeUnit.MILLISECONDS.toNanos(1));
                return;
            }
        }
        awake = false;
    }

    /** Checks for changes unless the last check is more recent than the interval. */
    private void checkForChanges() {
        long now = System.nanoTime();
        if (now - lastCheck < CHECK_INTERVAL) {
            return;
        }
        lastCheck = now;
        try {
            Jvm.observe();
            source.checkForChanges();
        } catch (Throwable e) {
            source.finding("ReportIncomplete", "the check for changes failed: " + e);
        }
    }

    /** Responds to all requests that need not wait any longer. They share one report. */
    private void respond() {
        byte[] bytes = null;
        long sequence = source.sequence();
        for (Pending request : due(sequence)) {
            if (request.query.after == sequence) {
                request.connection.response = Response.unchanged();
            } else {
                bytes = bytes == null ? Response.report(report.bytes()) : bytes;
                request.connection.response = bytes;
            }
            respond.accept(request.connection);
        }
    }

    /** Removes and returns the requests that need not wait: with a change, at the end of their wait, or the oldest ones of too many. */
    private synchronized List<Pending> due(long sequence) {
        long now = System.nanoTime();
        List<Pending> due = new ArrayList<>();
        requests.removeIf(request -> request.connection.closed);
        for (Iterator<Pending> all = requests.iterator(); all.hasNext();) {
            Pending request = all.next();
            if (request.query.after != sequence || request.end - now <= 0) {
                due.add(request);
                all.remove();
            }
        }
        while (requests.size() > WAITING) {
            due.add(requests.remove(0));
        }
        return due;
    }

    /** A request in progress. */
    private static final class Pending {
        final Connection connection;
        final Query query;
        /** The end of its wait. */
        final long end;

        Pending(Connection connection, Query query) {
            this.connection = connection;
            this.query = query;
            end = System.nanoTime() + Math.min(TimeUnit.MILLISECONDS.toNanos(query.wait), LONGEST_NANOS);
        }
    }
}
