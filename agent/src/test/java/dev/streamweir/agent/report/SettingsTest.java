// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingsTest {
    private static final String[] CONSUMERS = {"", "consumer.", "main.consumer.", "restore.consumer.", "global.consumer."};

    @Test
    void reportsEveryPrefixThatReachesAClient() {
        for (String prefix : CONSUMERS) {
            assertEquals("1", value(prefix + "fetch.max.bytes", 1), prefix);
        }
        assertEquals("1", value("buffer.memory", "1"));
        assertEquals("1", value("producer.buffer.memory", "1"));
        assertEquals("1", value("producer.send.buffer.bytes", 1L));
        assertEquals("1", value("cache.max.bytes.buffering", " 1 "));
    }

    @Test
    void omitsPrefixesThatReachNoClient() {
        for (String name : List.of("producer.fetch.max.bytes", "consumer.buffer.memory", "consumer.num.stream.threads", "admin.send.buffer.bytes",
                "topic.max.poll.records", "consumer.consumer.fetch.max.bytes", "")) {
            assertEquals(null, value(name, "x"), name);
        }
    }

    @Test
    void omitsUnknownSettings() {
        for (String name : List.of("sasl.jaas.config", "ssl.keystore.password", "consumer.sasl.jaas.config", "my.secret", "bootstrap.servers",
                "buffer.memory batch.size", "fetch.max.bytes.secret")) {
            assertEquals(null, value(name, "secret"), name);
        }
    }

    @Test
    void writesValuesAsText() {
        assertEquals("java.lang.String", value("rocksdb.config.setter", String.class));
        assertEquals("true", value("enable.transactional.statestores", true));
        assertEquals("null", value("num.stream.threads", null));
        assertEquals("java.lang.Object", value("processing.guarantee", new Object()), "not the result of toString");
        assertEquals(256, value("processing.guarantee", "x".repeat(1000)).length());
    }

    @Test
    void hidesTheNameOfAMember() {
        assertEquals("set", value("group.instance.id", "orders-1"));
        assertEquals("set", value("main.consumer.group.instance.id", "orders-1"));
    }

    @Test
    void reportsTheOriginOfASetting() {
        Map<String, Object> originals = Map.of("buffer.memory", 1, "batch.size", 2, "my.secret", 3);
        assertEquals(List.of(Map.of("name", "batch.size", "value", "2", "by", "App"), Map.of("name", "buffer.memory", "value", "1", "by", "Plan")),
            Settings.of(originals, List.of("buffer.memory", "my.secret")));
    }

    @Test
    void reportsTheSetterOfTheApplication() {
        Map<String, Object> originals = Map.of("rocksdb.config.setter", Integer.class, "streamweir.own.rocksdb.config.setter", String.class);
        assertEquals(List.of(Map.of("name", "rocksdb.config.setter", "value", "java.lang.String", "by", "App")),
            Settings.of(originals, List.of("rocksdb.config.setter")));
    }

    /** Returns the reported value of one setting; null if it is omitted. */
    private static String value(String name, Object value) {
        Map<String, Object> originals = new HashMap<>();
        originals.put(name, value);
        List<Map<String, Object>> reported = Settings.of(originals, List.of());
        return reported.isEmpty() ? null : (String) reported.get(0).get("value");
    }
}
