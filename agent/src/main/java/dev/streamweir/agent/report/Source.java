// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * What the core of the agent tells the report. Maps have the names of the report's schema (package assignment, Report) as keys, and
 * strings, numbers, booleans, maps and lists as values. Methods are called by several threads at once; what they return is never
 * changed afterwards. One that throws costs its own part of the report only.
 */
public interface Source {
    /** The agent's version. */
    String version();

    /** The pod's UID, empty outside of a pod. */
    String podUid();

    /** Pending, InForce or Off. */
    String bounded();

    /** onDisk, inForce, source. */
    Map<String, Object> plan();

    /** Everything of ReportedRocksDB. */
    Map<String, Object> rocksdb();

    /**
     * The KafkaStreams objects that are not closed, of all class loaders, as {@code inside.Clients.report()} gives them. That is the
     * schema's ReportedClient without settings and stateDir, and instead of them {@code originals}, the application's settings as they
     * are after the injection. These may hold secrets: {@link Settings} picks what is told.
     */
    List<Map<String, Object>> clients();

    /** The keys of these originals that the agent injected. */
    Collection<String> injected(Map<?, ?> originals);

    /** reason and message of each finding. */
    List<Map<String, Object>> findings();

    /** Adds a finding, once for each reason and message. Changes the sequence if it was new. */
    void finding(String reason, String message);

    /** The sequence, which grows with each change of tasks, stores, clients, plan or findings. */
    long seq();

    /** Waits until {@link #seq} is not this one any more, at most so long. */
    void awaitChange(long seq, long millis) throws InterruptedException;

    /**
     * Looks for changes that nobody announces: the plan on disk, stores that have opened, states of clients. Changes the sequence if
     * there is one. Called each second while somebody waits.
     */
    void look();
}
