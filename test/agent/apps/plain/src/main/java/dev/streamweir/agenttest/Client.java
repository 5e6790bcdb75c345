// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** One KafkaStreams object that can be closed and opened again. */
public class Client {
    private static final Duration CLOSE = Duration.ofSeconds(30);
    private static final long PATIENCE_MS = 280_000;
    private static final long POLL_MS = 20;

    private final AtomicLong records = new AtomicLong();
    private final Properties configs;
    private volatile Throwable dead;
    private volatile KafkaStreams streams;

    /** Starts a client with these configs. */
    public Client(Properties configs) {
        this.configs = configs;
        open();
    }

    /** Watches the client of a framework. The framework must have built it from {@link Topologies} with {@link #counter}. */
    protected Client(Properties configs, KafkaStreams streams) {
        this.configs = configs;
        this.streams = streams;
    }

    /** The counter of the records that went through the topology. */
    public AtomicLong counter() {
        return records;
    }

    /** The client's present object. */
    public KafkaStreams streams() {
        return streams;
    }

    private void open() {
        records.set(0);
        KafkaStreams made = new KafkaStreams(Topologies.build(configs, records), configs);
        made.setUncaughtExceptionHandler(e -> {
            dead = e;
            e.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        made.start();
        streams = made;
    }

    /** Waits until the client is RUNNING and has processed so many records. */
    public void awaitRunning(long wanted) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (streams().state() != KafkaStreams.State.RUNNING || counter().get() < wanted) {
            if (dead != null) {
                throw new IllegalStateException("a stream thread is dead", dead);
            }
            if (System.currentTimeMillis() > end) {
                throw new TimeoutException(streams().state() + " with " + counter().get() + " records");
            }
            Thread.sleep(POLL_MS);
        }
    }

    /** Closes the client and opens it again, on the same state directory. */
    public void restart() throws Exception {
        close();
        open();
        awaitRunning(0);
    }

    /** Adds a stream thread, waits for the tasks to move, and removes one. */
    public void cycleThread() throws Exception {
        streams().addStreamThread().orElseThrow(() -> new IllegalStateException("no thread added in " + streams().state()));
        awaitRunning(0);
        streams().removeStreamThread().orElseThrow(() -> new IllegalStateException("no thread removed in " + streams().state()));
        awaitRunning(0);
    }

    /** Closes the client. */
    public void close() {
        if (!streams().close(CLOSE)) {
            throw new IllegalStateException("not closed after " + CLOSE);
        }
    }
}
