// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The names that one setting of Kafka Streams can have: memplan/settings.go has the same table. */
final class Setting {
    private static final String[] PREFIXES = {"main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer."};

    private Setting() {}

    /** The name without its prefix. */
    static String bare(String name) {
        for (String prefix : PREFIXES) {
            if (name.startsWith(prefix)) {
                return name.substring(prefix.length());
            }
        }
        return name;
    }

    /** Tells whether the application has set what a name stands for: under any alias, at any prefix that reaches the same client. */
    static boolean isSet(Map<?, ?> configs, String name) {
        for (String other : sameAs(name)) {
            if (configs.get(other) != null) {
                return true;
            }
        }
        return false;
    }

    private static List<String> sameAs(String name) {
        String bare = bare(name);
        String prefix = name.substring(0, name.length() - bare.length());
        List<String> names = new ArrayList<>();
        names.add(name);
        names.add(bare);
        if (prefix.endsWith("consumer.")) {
            names.add("consumer." + bare);
        }
        if (bare.equals("buffer.memory")) { // nobody but a producer has it
            names.add("producer." + bare);
        }
        if (bare.equals("statestore.cache.max.bytes") || bare.equals("cache.max.bytes.buffering")) { // KIP-770: the new name wins
            names.add("statestore.cache.max.bytes");
            names.add("cache.max.bytes.buffering");
        }
        return names;
    }
}
