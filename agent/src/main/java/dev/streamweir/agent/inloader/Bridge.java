// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.util.Map;
import java.util.function.BiFunction;

/**
 * The target of the calls that are inserted into Kafka Streams and RocksDB. Each loader has its own bridge. No failure of the agent reaches the
 * caller.
 */
public final class Bridge {
    /** The agent's adapter of this loader. The agent sets it as soon as this class is defined. */
    public static volatile BiFunction<String, Object[], Object> agent;

    private Bridge() {}

    /** Returns the configs for StreamsConfig: with the plan injected, or unchanged after any failure. */
    public static Map<?, ?> configs(Map<?, ?> configs) {
        Object injected = send(Messages.CONFIGS, configs);
        return injected instanceof Map ? (Map<?, ?>) injected : configs;
    }

    /** Passes a new KafkaStreams object. */
    public static void clientCreated(Object streams) {
        send(Messages.CLIENT_CREATED, streams);
    }

    /** Passes the active and the standby tasks that the calling stream thread is assigned. */
    public static void tasksAssigned(Map<?, ?> active, Map<?, ?> standby) {
        send(Messages.TASKS_ASSIGNED, active, standby);
    }

    /** Passes a store that the calling thread has just opened, and its database. */
    public static void storeOpened(Object store, Object db) {
        send(Messages.STORE_OPENED, store, db);
    }

    /** Passes a new cache with its capacity in bytes. */
    public static void cacheCreated(Object cache, long capacity) {
        send(Messages.CACHE_CREATED, cache, capacity);
    }

    private static Object send(String message, Object... arguments) {
        try {
            return agent.apply(message, arguments);
        } catch (Throwable failure) {
            try {
                agent.apply(Messages.FINDING, new Object[] {"AgentFailed", message + ": " + failure});
            } catch (Throwable ignored) {
                // The application continues.
            }
            return null;
        }
    }
}
