// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Picks what is told of an application's settings. Only names on these lists ever leave the process; a setting that is not known is not
 * told, whatever its name, since it may hold a secret.
 */
final class Settings {
    /** Longer values than any of these settings has in earnest. */
    private static final int LONGEST = 256;

    /** Kafka Streams' own, which have no prefix: those of memplan/settings.go, and those that say how and when an application rebalances. */
    private static final Set<String> STREAMS = words("num.stream.threads num.standby.replicas max.warmup.replicas buffered.records.per.partition"
        + " statestore.cache.max.bytes cache.max.bytes.buffering statestore.uncommitted.max.bytes enable.transactional.statestores"
        + " processing.guarantee group.protocol dsl.store.format rocksdb.config.setter security.protocol"
        + " acceptable.recovery.lag probing.rebalance.interval.ms task.assignor.class internal.task.assignor.class"
        + " windowstore.changelog.additional.retention.ms commit.interval.ms metrics.recording.level default.dsl.store"
        + " dsl.store.suppliers.class topology.optimization built.in.metrics.version");

    /** The producers': without a prefix or with that of producers. */
    private static final Set<String> PRODUCER = words("buffer.memory batch.size max.request.size compression.type compression.zstd.level"
        + " send.buffer.bytes receive.buffer.bytes");

    /** The consumers': without a prefix or with one of theirs. */
    private static final Set<String> CONSUMER = words("fetch.max.bytes max.partition.fetch.bytes max.poll.records send.buffer.bytes"
        + " receive.buffer.bytes session.timeout.ms group.instance.id");

    private static final String[] CONSUMER_PREFIXES = {"", "consumer.", "main.consumer.", "restore.consumer.", "global.consumer."};
    private static final String[] PRODUCER_PREFIXES = {"", "producer."};

    /** Told as "set" only: it names a machine or a person rather than an amount. */
    private static final String HIDDEN = "group.instance.id";

    /** Where the agent keeps the application's own setter when its own has taken the place. */
    private static final String OWN_SETTER = "streamweir.own.rocksdb.config.setter";

    private static final String SETTER = "rocksdb.config.setter";

    private Settings() {}

    /**
     * The settings of the schema, by name.
     *
     * @param originals what the client was made with
     * @param injected the keys of these that the agent injected
     */
    static List<Map<String, Object>> of(Map<?, ?> originals, Collection<String> injected) {
        Map<String, Map<String, Object>> told = new TreeMap<>();
        for (Map.Entry<?, ?> e : originals.entrySet()) {
            String name = String.valueOf(e.getKey());
            boolean own = name.equals(OWN_SETTER);
            if (own) {
                name = SETTER;
            } else if (!isTold(name) || name.equals(SETTER) && originals.containsKey(OWN_SETTER)) {
                continue;
            }
            Map<String, Object> setting = new LinkedHashMap<>();
            setting.put("name", name);
            setting.put("value", name.endsWith(HIDDEN) ? "set" : text(e.getValue()));
            setting.put("by", !own && injected.contains(name) ? "Plan" : "App");
            told.put(name, setting);
        }
        return new ArrayList<>(told.values());
    }

    private static Set<String> words(String text) {
        return Set.of(text.split(" "));
    }

    private static boolean isTold(String name) {
        return STREAMS.contains(name) || has(PRODUCER, PRODUCER_PREFIXES, name) || has(CONSUMER, CONSUMER_PREFIXES, name);
    }

    private static boolean has(Set<String> names, String[] prefixes, String name) {
        for (String prefix : prefixes) {
            if (name.startsWith(prefix) && names.contains(name.substring(prefix.length()))) {
                return true;
            }
        }
        return false;
    }

    /** Classes by their names, as Kafka takes them. An object of the application is told by its class. */
    private static String text(Object value) {
        String text;
        if (value instanceof Class) {
            text = ((Class<?>) value).getName();
        } else if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) {
            text = String.valueOf(value).trim();
        } else if (value instanceof Enum) {
            text = value.toString();
        } else {
            text = value.getClass().getName();
        }
        return text.length() > LONGEST ? text.substring(0, LONGEST) : text;
    }
}
