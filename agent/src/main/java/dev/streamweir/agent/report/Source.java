// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * The agent's facts for the report. Maps have the field names of the report's schema (Go package agent/report) as keys, and strings, numbers,
 * booleans, maps and lists as values. Several threads call the methods at the same time, and no result changes afterwards. A method that throws
 * costs only its own part of the report.
 */
public interface Source {
    /** Returns the version of the agent. */
    String version();

    /** Returns the UID of the pod; empty outside a pod. */
    String podUid();

    /** Returns whether RocksDB is bounded. */
    Boundedness bounded();

    /** Returns the map {@code plan} of the schema: onDisk, active, source. */
    Map<String, Object> plan();

    /** Returns the map {@code rocksdb} of the schema. */
    Map<String, Object> rocksdb();

    /**
     * Returns the KafkaStreams objects of all class loaders that are not closed: see {@code inloader.Clients.report}. Each has the fields of the
     * schema except settings and stateDir, and {@link dev.streamweir.agent.Messages#ORIGINALS}, the configs after the injection. These may
     * contain secrets: {@link Settings} selects the reported ones.
     */
    List<Map<String, Object>> clients();

    /** Returns the keys of the injected configs among the originals of a client. */
    Collection<String> injected(Map<?, ?> originals);

    /** Returns reason and message of each finding. */
    List<Map<String, Object>> findings();

    /** Adds a finding. A new one increments the sequence number; the same reason and message again has no effect. */
    void finding(String reason, String message);

    /** Returns the sequence number. It grows with each change of tasks, stores, clients, plan or findings. */
    long sequence();

    /** Sets the listener of each change of {@link #sequence}. It returns at once. */
    void onChange(Runnable listener);

    /** Reports whether a client with this token may read the report. Called by one thread. */
    boolean accepts(String token);

    /**
     * Checks for changes without an event: the plan on disk, opened stores, states of clients. A change increments the sequence number. Called
     * every second while a request waits.
     */
    void checkForChanges();
}
