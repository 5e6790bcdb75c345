// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The names of one config of Kafka Streams. Package memplan has the same table. */
final class Setting {
    private static final String[] PREFIXES = {"main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer."};

    private Setting() {}

    /** Returns a name without its prefix. */
    static String bare(String name) {
        for (String prefix : PREFIXES) {
            if (name.startsWith(prefix)) {
                return name.substring(prefix.length());
            }
        }
        return name;
    }

    /** Reports whether the application has set a config: under any alias, and with any prefix that reaches the same client. */
    static boolean isSet(Map<?, ?> configs, String name) {
        for (String other : namesOf(name)) {
            if (configs.get(other) != null) {
                return true;
            }
        }
        return false;
    }

    private static List<String> namesOf(String name) {
        String bare = bare(name);
        String prefix = name.substring(0, name.length() - bare.length());
        List<String> names = new ArrayList<>();
        names.add(name);
        names.add(bare);
        if (prefix.endsWith("consumer.")) {
            names.add("consumer." + bare);
        }
        if (bare.equals("buffer.memory")) { // only producers have it
            names.add("producer." + bare);
        }
        if (bare.equals("statestore.cache.max.bytes") || bare.equals("cache.max.bytes.buffering")) { // KIP-770: the new name takes precedence
            names.add("statestore.cache.max.bytes");
            names.add("cache.max.bytes.buffering");
        }
        return names;
    }
}
