// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** One KafkaStreams object that can be restarted. */
public class Client {
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);
    private static final long RUNNING_TIMEOUT_MS = 280_000;
    private static final long POLL_INTERVAL_MS = 20;

    private final AtomicLong records = new AtomicLong();
    private final Properties configs;
    private volatile Throwable failure;
    private volatile KafkaStreams streams;

    /** Starts a client. */
    public Client(Properties configs) {
        this.configs = configs;
        open();
    }

    /** Wraps the client of a framework, which has built it from {@link Topologies} with {@link #counter}. */
    protected Client(Properties configs, KafkaStreams streams) {
        this.configs = configs;
        this.streams = streams;
    }

    /** Returns the counter of the processed records. */
    public AtomicLong counter() {
        return records;
    }

    /** Returns the present object. */
    public KafkaStreams streams() {
        return streams;
    }

    private void open() {
        records.set(0);
        KafkaStreams created = new KafkaStreams(Topologies.build(configs, records), configs);
        created.setUncaughtExceptionHandler(e -> {
            failure = e;
            e.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        created.start();
        streams = created;
    }

    /** Waits until the client is RUNNING and has processed a number of records. */
    public void awaitRunning(long expected) throws Exception {
        long end = System.currentTimeMillis() + RUNNING_TIMEOUT_MS;
        while (streams().state() != KafkaStreams.State.RUNNING || counter().get() < expected) {
            if (failure != null) {
                throw new IllegalStateException("a stream thread has failed", failure);
            }
            if (System.currentTimeMillis() > end) {
                throw new TimeoutException(streams().state() + " with " + counter().get() + " records");
            }
            Thread.sleep(POLL_INTERVAL_MS);
        }
    }

    /** Closes the client and starts it again with the same state directory. */
    public void restart() throws Exception {
        close();
        open();
        awaitRunning(0);
    }

    /** Adds a stream thread, waits until the tasks have moved, and removes a thread. */
    public void cycleThread() throws Exception {
        streams().addStreamThread().orElseThrow(() -> new IllegalStateException("no thread added in " + streams().state()));
        awaitRunning(0);
        streams().removeStreamThread().orElseThrow(() -> new IllegalStateException("no thread removed in " + streams().state()));
        awaitRunning(0);
    }

    /** Closes the client. */
    public void close() {
        if (!streams().close(CLOSE_TIMEOUT)) {
            throw new IllegalStateException("not closed after " + CLOSE_TIMEOUT);
        }
    }
}
