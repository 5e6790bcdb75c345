// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Serves the report over HTTP. No failure here affects the application. */
public final class ReportServer {
    private static final String PATH = "/v1/report";

    /** The largest number of waiting requests. The operator has one; the others are for its second replica, its restarts, and people. */
    private static final int WAITING = 8;

    /** The largest number of requests in progress, each on its own thread. The server closes the connections of further ones. */
    private static final int THREADS = WAITING + 8;

    /** The largest number of connections in the queue. */
    private static final int BACKLOG = 32;

    /** The longest wait, in milliseconds. */
    private static final long LONGEST_WAIT = 60_000;

    /** The interval of the checks for changes without an event while a request waits, in milliseconds. */
    private static final long CHECK_INTERVAL = 1_000;

    private final Source source;
    private final Report report;
    private final Semaphore waiting = new Semaphore(WAITING);
    private final AtomicLong lastCheck = new AtomicLong(System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(CHECK_INTERVAL));
    private final HttpServer server;

    private ReportServer(int port, Source source) throws IOException {
        this.source = source;
        report = new Report(source, Started.millis());
        server = HttpServer.create(new InetSocketAddress(port), BACKLOG);
        server.createContext("/", this::handle);
        // A new thread starts only if none is idle, so one request at a time uses one thread.
        server.setExecutor(new ThreadPoolExecutor(0, THREADS, 10, TimeUnit.SECONDS, new SynchronousQueue<>(),
            work -> daemon("streamweir-report", work)));
    }

    /**
     * Starts serving a port (0: any free one) at all addresses of this host, on daemon threads. Returns the port. If the start fails, it adds a
     * finding and returns 0. Never throws.
     */
    public static int start(int port, Source source) {
        try {
            HttpServer server = new ReportServer(port, source).server;
            // The server's own thread inherits the daemon status of the thread that starts it.
            Thread starter = daemon("streamweir-report-start", server::start);
            starter.start();
            starter.join();
            return server.getAddress().getPort();
        } catch (BindException e) {
            source.finding("PortTaken", "port " + port + " is in use by another process or library of the pod, so the report is not available; let "
                + "the application use another port; in a pod with the host's network, keep the port free on the node");
        } catch (LinkageError e) {
            source.finding("NoHttpServer", "the JVM has no module jdk.httpserver, so the report is not available; "
                + "add the module to the runtime image");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable e) {
            source.finding("NoReport", "the report cannot be served at port " + port + ": " + e);
        }
        return 0;
    }

    /** Returns a thread that keeps neither the JVM alive nor the application's class loader in memory. */
    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
        return thread;
    }

    private void handle(HttpExchange exchange) {
        try {
            respond(exchange);
        } catch (Throwable e) {
            return; // the client has disconnected, or memory is exhausted: the next request may succeed
        } finally {
            exchange.close();
        }
    }

    private void respond(HttpExchange exchange) throws IOException, InterruptedException {
        if (!exchange.getRequestURI().getPath().equals(PATH)) {
            exchange.sendResponseHeaders(404, -1);
        } else if (!exchange.getRequestMethod().equals("GET")) {
            exchange.getResponseHeaders().set("Allow", "GET");
            exchange.sendResponseHeaders(405, -1);
        } else {
            get(exchange, new Query(exchange.getRequestURI().getRawQuery()));
        }
    }

    private void get(HttpExchange exchange, Query query) throws IOException, InterruptedException {
        checkForChanges();
        if (query.valid && query.after == source.sequence() && query.wait > 0) {
            if (!waiting.tryAcquire()) {
                exchange.getResponseHeaders().set("Retry-After", "5");
                exchange.sendResponseHeaders(503, -1);
                return;
            }
            try {
                await(query.after, Math.min(query.wait, LONGEST_WAIT));
            } finally {
                waiting.release();
            }
        }
        if (!query.valid) {
            exchange.sendResponseHeaders(400, -1);
        } else if (query.after == source.sequence()) {
            exchange.sendResponseHeaders(204, -1);
        } else {
            byte[] bytes = report.bytes();
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, bytes.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(bytes);
            }
        }
    }

    private void await(long after, long millis) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (source.sequence() == after) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (left <= 0) {
                return;
            }
            source.awaitChange(after, Math.min(left, CHECK_INTERVAL));
            checkForChanges();
        }
    }

    /** Checks for changes unless the last check is more recent than the interval. */
    private void checkForChanges() {
        long last = lastCheck.get();
        long now = System.nanoTime();
        if (now - last >= TimeUnit.MILLISECONDS.toNanos(CHECK_INTERVAL) && lastCheck.compareAndSet(last, now)) {
            try {
                Jvm.observe();
                source.checkForChanges();
            } catch (Throwable e) {
                source.finding("ReportIncomplete", "the check for changes failed: " + e);
            }
        }
    }
}
