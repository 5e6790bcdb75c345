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

/** Serves the report over HTTP. Whatever fails here, the application runs on. */
public final class ReportServer {
    private static final String PATH = "/v1/report";

    /** Requests that may wait at once. The operator waits with one; more are for its second replica, a restart of it, and people. */
    private static final int WAITING = 8;

    /** All requests that are worked on at once, each by a thread. The server closes the connections of more. */
    private static final int THREADS = WAITING + 8;

    /** Connections that may stand in line. */
    private static final int BACKLOG = 32;

    /** The longest wait that is granted, in milliseconds. */
    private static final long LONGEST = 60_000;

    /** While somebody waits, what nobody announces is looked for so often, in milliseconds. */
    private static final long LOOK = 1_000;

    private final Source source;
    private final Report report;
    private final Semaphore waiting = new Semaphore(WAITING);
    private final AtomicLong looked = new AtomicLong(System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(LOOK));
    private final HttpServer server;

    private ReportServer(int port, Source source) throws IOException {
        this.source = source;
        report = new Report(source, Started.millis());
        server = HttpServer.create(new InetSocketAddress(port), BACKLOG);
        server.createContext("/", this::handle);
        // A new thread only where none is idle: one request at a time needs one.
        server.setExecutor(new ThreadPoolExecutor(0, THREADS, 10, TimeUnit.SECONDS, new SynchronousQueue<>(),
            work -> daemon("streamweir-report", work)));
    }

    /**
     * Starts to serve all addresses of this host at a port, 0 for any that is free, on daemon threads. Gives the port; 0 if it could not
     * be started, and a finding says why. Never throws.
     */
    public static int start(int port, Source source) {
        try {
            ReportServer made = new ReportServer(port, source);
            // The server's own thread becomes a daemon if the one that starts it is.
            Thread starter = daemon("streamweir-report-start", made.server::start);
            starter.start();
            starter.join();
            return made.server.getAddress().getPort();
        } catch (BindException e) {
            source.finding("PortTaken", "Port " + port + " is taken by another process or library of the pod, so there is no report; let the application "
                + "listen at another port, and in a pod with the host's network let nothing else on the node.");
        } catch (LinkageError e) {
            source.finding("NoHttpServer", "The JVM has no module jdk.httpserver, so there is no report; add the module to the runtime image.");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable e) {
            source.finding("NoReport", "The report cannot be served at port " + port + ": " + e + ".");
        }
        return 0;
    }

    /** A thread that neither keeps the JVM alive nor holds on to the application's class loader. */
    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
        return thread;
    }

    private void handle(HttpExchange exchange) {
        try {
            answer(exchange);
        } catch (Throwable e) {
            return; // the client has gone, or there is no memory: the next request may do better
        } finally {
            exchange.close();
        }
    }

    private void answer(HttpExchange exchange) throws IOException, InterruptedException {
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
        look();
        if (query.valid && query.after == source.seq() && query.wait > 0) {
            if (!waiting.tryAcquire()) {
                exchange.getResponseHeaders().set("Retry-After", "5");
                exchange.sendResponseHeaders(503, -1);
                return;
            }
            try {
                await(query.after, Math.min(query.wait, LONGEST));
            } finally {
                waiting.release();
            }
        }
        if (!query.valid) {
            exchange.sendResponseHeaders(400, -1);
        } else if (query.after == source.seq()) {
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
        while (source.seq() == after) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (left <= 0) {
                return;
            }
            source.awaitChange(after, Math.min(left, LOOK));
            look();
        }
    }

    /** Looks for changes, if nobody has for a while. */
    private void look() {
        long last = looked.get();
        long now = System.nanoTime();
        if (now - last >= TimeUnit.MILLISECONDS.toNanos(LOOK) && looked.compareAndSet(last, now)) {
            try {
                Jvm.observe();
                source.look();
            } catch (Throwable e) {
                source.finding("ReportIncomplete", "The agent could not look for changes: " + e + ".");
            }
        }
    }
}
