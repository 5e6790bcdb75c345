// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * Serves the report over HTTP. One thread does all input and output, without waiting for any client, and {@link Responder} reads the report on
 * another. No failure here affects the application.
 *
 * <p>All resources are bounded: connections, the time and the size of a request, the time of a response. Clients without the token occupy only
 * connections. If all are occupied, a new connection replaces the oldest one without a complete request.
 */
public final class ReportServer {
    private static final String PATH = "/v1/report";

    /** The largest number of connections that the kernel keeps for the server. */
    private static final int BACKLOG = 64;

    /** The largest number of open connections, more than the requests that the responder accepts. */
    static final int CONNECTIONS = 2 * Responder.REQUESTS;

    /** The time to send a request, and the time to read a response. */
    private static final long EXCHANGE_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** The interval of the checks for expired connections while there are any, in milliseconds. */
    private static final long EXPIRY_CHECK = 500;

    /** The pause after a failure such as a lack of file descriptors or memory, in milliseconds. */
    private static final long PAUSE = 200;

    private final Source source;
    private final Responder responder;
    private final ServerSocketChannel listener;
    private final Selector selector;
    /** In the order of their beginning. */
    private final Set<Connection> connections = new LinkedHashSet<>();
    private final Queue<Connection> responses = new ConcurrentLinkedQueue<>();
    /** For all input and output, so that the kernel's copies need no direct memory of the application. */
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(Connection.LARGEST_HEAD);

    private ReportServer(int port, Source source) throws IOException {
        this.source = source;
        responder = new Responder(source, this::wake);
        listener = ServerSocketChannel.open();
        try {
            listener.bind(new InetSocketAddress(port), BACKLOG);
            listener.configureBlocking(false);
            selector = Selector.open();
            listener.register(selector, SelectionKey.OP_ACCEPT);
        } catch (IOException | RuntimeException e) {
            listener.close();
            throw e;
        }
    }

    /**
     * Starts serving a port (0: any free one) at all addresses of this host, on daemon threads. Returns the port. If the start fails, it adds a
     * finding and returns 0. Never throws.
     */
    public static int start(int port, Source source) {
        try {
            ReportServer server = new ReportServer(port, source);
            int bound = ((InetSocketAddress) server.listener.getLocalAddress()).getPort();
            daemon("streamweir-report", server::serve).start();
            daemon("streamweir-responder", server.responder::run).start();
            return bound;
        } catch (BindException e) {
            source.finding("PortTaken", "port " + port + " is in use by another process or library of the pod, so the report is not available; let "
                + "the application use another port; in a pod with the host's network, keep the port free on the node");
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

    /** Queues the response of a connection. Called by the responder's thread. */
    private void wake(Connection connection) {
        responses.add(connection);
        selector.wakeup();
    }

    private void serve() {
        while (true) {
            try {
                selector.select(connections.isEmpty() ? 0 : EXPIRY_CHECK);
                for (Connection ready = responses.poll(); ready != null; ready = responses.poll()) {
                    write(ready);
                }
                for (SelectionKey key : selector.selectedKeys()) {
                    handle(key);
                }
                selector.selectedKeys().clear();
                closeExpired();
            } catch (Throwable e) {
                selector.selectedKeys().clear();
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE);
        } catch (InterruptedException e) {
            return; // only the pause ends
        }
    }

    private void handle(SelectionKey key) {
        Connection connection = (Connection) key.attachment();
        if (connection == null) {
            acceptAll();
        } else if (key.isValid() && key.isReadable()) {
            read(connection);
        } else if (key.isValid()) {
            write(connection);
        }
    }

    private void acceptAll() {
        try {
            for (SocketChannel channel = listener.accept(); channel != null; channel = listener.accept()) {
                accept(channel);
            }
        } catch (IOException e) {
            pause(); // for example without a file descriptor
        }
    }

    private void accept(SocketChannel channel) throws IOException {
        boolean room = connections.size() < CONNECTIONS || closeOldestIncomplete();
        try {
            if (room) {
                channel.configureBlocking(false);
                Connection connection = new Connection(channel, EXCHANGE_NANOS);
                connection.key = channel.register(selector, SelectionKey.OP_READ, connection);
                connections.add(connection);
            } else {
                channel.close();
            }
        } catch (IOException | RuntimeException | Error e) {
            channel.close();
            throw e;
        }
    }

    /** Closes the oldest connection without a complete request, and reports whether there was one. */
    private boolean closeOldestIncomplete() {
        for (Connection connection : connections) {
            if (connection.isReading()) {
                close(connection);
                return true;
            }
        }
        return false;
    }

    private void read(Connection connection) {
        try {
            Request request = connection.read(buffer);
            if (request != null) {
                respond(connection, request);
            }
        } catch (IOException | RuntimeException e) {
            close(connection); // the client has disconnected, or does not use HTTP
        }
    }

    /** Responds to a request, or hands it to the responder. */
    private void respond(Connection connection, Request request) {
        if (!request.path.equals(PATH)) {
            connection.response = Response.notFound();
        } else if (!request.method.equals("GET")) {
            connection.response = Response.notAllowed();
        } else if (!source.accepts(request.token)) {
            connection.response = Response.unauthorized();
        } else {
            Query query = new Query(request.query);
            if (!query.valid) {
                connection.response = Response.invalid();
            } else if (responder.offer(connection, query)) {
                connection.await(Responder.LONGEST_NANOS + EXCHANGE_NANOS);
                return;
            } else {
                connection.response = Response.busy();
            }
        }
        write(connection);
    }

    private void write(Connection connection) {
        try {
            if (connection.write(buffer, EXCHANGE_NANOS)) {
                close(connection);
            }
        } catch (IOException | RuntimeException e) {
            close(connection);
        }
    }

    private void closeExpired() {
        long now = System.nanoTime();
        List<Connection> expired = new ArrayList<>();
        for (Connection connection : connections) {
            if (connection.isExpired(now)) {
                expired.add(connection);
            }
        }
        expired.forEach(this::close);
    }

    private void close(Connection connection) {
        connections.remove(connection);
        connection.close();
    }
}
