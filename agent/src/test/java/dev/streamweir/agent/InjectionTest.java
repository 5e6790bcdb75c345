// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class InjectionTest {
    private static final Class<?> OURS = StringBuilder.class;
    private static final Class<?> THEIRS = String.class;

    private static Map<Object, Object> inject(Map<?, ?> configs, Map<String, String> settings) {
        Map<Object, Object> own = Injection.withoutOurs(configs);
        Object setter = own.get(ConfigKeys.SETTER);
        return Injection.into(own, settings, OURS, (Class<?>) setter);
    }

    @ParameterizedTest
    @CsvSource({
        "statestore.cache.max.bytes, statestore.cache.max.bytes",
        "statestore.cache.max.bytes, cache.max.bytes.buffering", // an alias
        "cache.max.bytes.buffering, statestore.cache.max.bytes",
        "main.consumer.fetch.max.bytes, main.consumer.fetch.max.bytes",
        "main.consumer.fetch.max.bytes, consumer.fetch.max.bytes",
        "main.consumer.fetch.max.bytes, fetch.max.bytes",
        "buffer.memory, producer.buffer.memory",
        "buffer.memory, buffer.memory",
        "buffered.records.per.partition, buffered.records.per.partition",
    })
    void keepsAConfigOfTheApplicationUnderAnyAlias(String planned, String set) {
        Map<Object, Object> all = inject(Map.of(set, "0"), Map.of(planned, "7"));
        assertEquals("0", all.get(set));
        assertEquals(set.equals(planned) ? "0" : null, all.get(planned));
        assertFalse(Injection.injected(all.get(ConfigKeys.INJECTED)).containsKey(planned));
    }

    @ParameterizedTest
    @CsvSource({
        "main.consumer.fetch.max.bytes, restore.consumer.fetch.max.bytes",
        "main.consumer.fetch.max.bytes, producer.fetch.max.bytes",
        "buffer.memory, consumer.buffer.memory",
        "restore.consumer.max.poll.records, main.consumer.max.poll.records",
    })
    void ignoresConfigsOfOtherClients(String planned, String set) {
        assertEquals("7", inject(Map.of(set, "0"), Map.of(planned, "7")).get(planned));
    }

    @Test
    void aSecondPassIsIdempotent() {
        Map<String, Object> configs = new HashMap<>(Map.of("application.id", "a", ConfigKeys.SETTER, THEIRS));
        Map<String, String> settings = Map.of("buffer.memory", "7", "statestore.cache.max.bytes", "9");
        Map<Object, Object> once = inject(configs, settings);
        assertEquals(once, inject(once, settings));
        assertEquals(THEIRS, once.get(ConfigKeys.OWN_SETTER));
        assertEquals(configs, Injection.withoutOurs(once));
    }

    @Test
    void keepsChangesOfTheApplicationBetweenTwoPasses() {
        Map<Object, Object> configs = inject(Map.of(), Map.of("statestore.cache.max.bytes", "9"));
        configs.put("statestore.cache.max.bytes", 0);
        configs.put(ConfigKeys.SETTER, THEIRS);
        Map<Object, Object> again = inject(configs, Map.of("statestore.cache.max.bytes", "9"));
        assertEquals(0, again.get("statestore.cache.max.bytes"));
        assertSame(OURS, again.get(ConfigKeys.SETTER));
        assertSame(THEIRS, again.get(ConfigKeys.OWN_SETTER));
    }

    @Test
    void doesNotChangeTheMapOfTheApplication() {
        Map<String, String> configs = new HashMap<>(Map.of("application.id", "a"));
        assertNotSame(configs, inject(configs, Map.of("buffer.memory", "7")));
        assertEquals(Map.of("application.id", "a"), configs);
    }

    @Test
    void keepsKeysThatKafkaRejects() {
        Map<Object, Object> odd = new HashMap<>();
        odd.put(7, "seven");
        odd.put("application.id", null);
        Map<Object, Object> all = inject(odd, Map.of());
        assertEquals("seven", all.get(7));
        assertEquals(odd, Injection.withoutOurs(all));
    }
}
