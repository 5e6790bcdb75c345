// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import dev.streamweir.agent.ConfigKeys;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Selects the reported settings of an application. Only settings on these lists ever leave the process, because any other may contain a
 * secret.
 */
final class Settings {
    /** The longest reported value, in characters: longer than any real value of these settings. */
    private static final int MAX_LENGTH = 256;

    /** Settings of Kafka Streams itself, without prefixes: those that the planner reads, and those that control rebalances. */
    private static final Set<String> STREAMS = words("num.stream.threads num.standby.replicas max.warmup.replicas buffered.records.per.partition"
        + " statestore.cache.max.bytes cache.max.bytes.buffering statestore.uncommitted.max.bytes enable.transactional.statestores"
        + " processing.guarantee group.protocol dsl.store.format rocksdb.config.setter security.protocol"
        + " acceptable.recovery.lag probing.rebalance.interval.ms task.assignor.class internal.task.assignor.class"
        + " windowstore.changelog.additional.retention.ms commit.interval.ms metrics.recording.level default.dsl.store"
        + " dsl.store.suppliers.class topology.optimization built.in.metrics.version");

    /** Settings of producers: without a prefix or with theirs. */
    private static final Set<String> PRODUCER = words("buffer.memory batch.size max.request.size compression.type compression.zstd.level"
        + " send.buffer.bytes receive.buffer.bytes");

    /** Settings of consumers: without a prefix or with one of theirs. */
    private static final Set<String> CONSUMER = words("fetch.max.bytes max.partition.fetch.bytes max.poll.records send.buffer.bytes"
        + " receive.buffer.bytes session.timeout.ms group.instance.id");

    private static final String[] CONSUMER_PREFIXES = {"", "consumer.", "main.consumer.", "restore.consumer.", "global.consumer."};
    private static final String[] PRODUCER_PREFIXES = {"", "producer."};

    /** Reported only as "set": it names a machine or a person rather than an amount. */
    private static final String HIDDEN = "group.instance.id";

    private Settings() {}

    /**
     * Returns the list {@code settings} of the schema, by name.
     *
     * @param originals the configs of the client
     * @param injected the keys of the injected ones
     */
    static List<Map<String, Object>> of(Map<?, ?> originals, Collection<String> injected) {
        Map<String, Map<String, Object>> settings = new TreeMap<>();
        for (Map.Entry<?, ?> e : originals.entrySet()) {
            String name = String.valueOf(e.getKey());
            boolean own = name.equals(ConfigKeys.OWN_SETTER);
            boolean ours = name.equals(ConfigKeys.SETTER) && originals.containsKey(ConfigKeys.OWN_SETTER);
            if (own) {
                name = ConfigKeys.SETTER;
            } else if (ours || !isReported(name)) {
                continue;
            }
            Map<String, Object> setting = new LinkedHashMap<>();
            setting.put("name", name);
            setting.put("value", name.endsWith(HIDDEN) ? "set" : text(e.getValue()));
            setting.put("by", !own && injected.contains(name) ? "Plan" : "App");
            settings.put(name, setting);
        }
        return new ArrayList<>(settings.values());
    }

    private static Set<String> words(String text) {
        return Set.of(text.split(" "));
    }

    private static boolean isReported(String name) {
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

    /** Returns the text of a value. A class has its name, as Kafka accepts it; an object of the application has the name of its class. */
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
        return text.length() > MAX_LENGTH ? text.substring(0, MAX_LENGTH) : text;
    }
}
