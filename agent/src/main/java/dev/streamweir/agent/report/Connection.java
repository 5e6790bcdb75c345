// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;

/**
 * One connection: it reads one request, waits for its response, and writes that. Only the server's thread uses it, except for {@link #response}
 * and {@link #closed}.
 */
final class Connection {
    /** The largest head of a request in bytes. The operator's has about 300. */
    static final int LARGEST_HEAD = 8 * 1024;

    private final SocketChannel channel;
    /** The registration at the server's selector. */
    SelectionKey key;
    /** The response; null until it is known. */
    volatile byte[] response;
    volatile boolean closed;
    /** The head of the request as far as it has been read; null before the first byte. */
    private byte[] head;
    private int size;
    private boolean complete;
    private boolean writing;
    private int written;
    /** The end of the time for the present step. */
    private long deadline;

    Connection(SocketChannel channel, long readNanos) {
        this.channel = channel;
        deadline = System.nanoTime() + readNanos;
    }

    /** Reports whether the request is not yet complete. */
    boolean isReading() {
        return !complete;
    }

    /** Reports whether the time for the present step is over. */
    boolean isExpired(long now) {
        return now - deadline > 0;
    }

    /** Begins the wait for the response. */
    void await(long limitNanos) {
        deadline = System.nanoTime() + limitNanos;
    }

    /**
     * Reads the available bytes. Returns the request when it is complete, and null otherwise. Bytes after the request are ignored.
     *
     * @throws IOException if the client has disconnected, or the head of the request is too large or malformed
     */
    Request read(ByteBuffer buffer) throws IOException {
        buffer.clear();
        if (isReading()) {
            buffer.limit(LARGEST_HEAD - size);
        }
        int count = channel.read(buffer);
        if (count < 0) {
            throw new EOFException();
        }
        if (!isReading() || count == 0) {
            return null;
        }
        if (head == null) {
            head = new byte[LARGEST_HEAD];
        }
        buffer.flip();
        buffer.get(head, size, count);
        int end = Request.end(head, size, size + count);
        size += count;
        if (end < 0 && size == LARGEST_HEAD) {
            throw new IOException("the head of the request is too large");
        }
        if (end < 0) {
            return null;
        }
        complete = true;
        byte[] bytes = head;
        head = null;
        return Request.parse(bytes, end);
    }

    /** Writes as much of the response as the client takes, and reports whether all is written. The first call starts the time limit. */
    boolean write(ByteBuffer buffer, long limitNanos) throws IOException {
        if (closed || response == null) {
            return closed;
        }
        if (!writing) {
            writing = true;
            deadline = System.nanoTime() + limitNanos;
        }
        while (written < response.length) {
            buffer.clear();
            buffer.put(response, written, Math.min(buffer.capacity(), response.length - written));
            buffer.flip();
            int count = channel.write(buffer);
            if (count == 0) {
                key.interestOps(SelectionKey.OP_WRITE);
                return false;
            }
            written += count;
        }
        return true;
    }

    void close() {
        closed = true;
        try {
            channel.close();
        } catch (IOException e) {
            return; // it is closed in any case
        }
    }
}
