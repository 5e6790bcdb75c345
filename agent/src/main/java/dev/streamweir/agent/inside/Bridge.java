// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import java.util.Map;
import java.util.function.BiFunction;

/**
 * What the calls that were inserted into Kafka Streams and RocksDB go to. Each loader has a bridge of its own. Nothing that happens behind
 * the door can harm the caller.
 */
public final class Bridge {
    /** The door to the agent, set right after this class was defined. */
    public static volatile BiFunction<String, Object[], Object> door;

    private Bridge() {}

    /** The configs that StreamsConfig is to be made of: the application's own where anything goes wrong. */
    public static Map<?, ?> configs(Map<?, ?> configs) {
        Object injected = call("configs", configs);
        return injected instanceof Map ? (Map<?, ?>) injected : configs;
    }

    /** A KafkaStreams object was made. */
    public static void created(Object streams) {
        call("created", streams);
    }

    /** The stream thread that calls was assigned active and standby tasks. */
    public static void assigned(Map<?, ?> active, Map<?, ?> standby) {
        call("assigned", active, standby);
    }

    /** A cache with this capacity in bytes was made. */
    public static void cacheMade(Object cache, long capacity) {
        call("cacheMade", cache, capacity);
    }

    private static Object call(String word, Object... arguments) {
        try {
            return door.apply(word, arguments);
        } catch (Throwable failure) {
            try {
                door.apply("finding", new Object[] {"AgentFailed", word + ": " + failure});
            } catch (Throwable hopeless) {
                // The application runs on.
            }
            return null;
        }
    }
}
