// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** Puts the plan's settings among the application's. What the application has set is a fact, and stays. */
final class Injection {
    /**
     * Lists what was injected, as {@code name=value,...}: a second pass over the same map takes exactly that back first, so that the
     * plan's values never count as the application's.
     */
    static final String INJECTED = "streamweir.injected";
    /** The application's own RocksDBConfigSetter, to which ours delegates. */
    static final String OWN_SETTER = "streamweir.own.rocksdb.config.setter";
    static final String SETTER = "rocksdb.config.setter";

    private Injection() {}

    /**
     * Gives a copy of the application's own configs with the settings and the setter injected.
     *
     * @param own configs without anything of ours: see {@link #withoutOurs}
     * @param settings the plan's settings
     * @param setter our setter, null to leave the application's in place
     * @param ownSetter the application's own setter as a class, null if it has none
     */
    static Map<Object, Object> into(Map<Object, Object> own, Map<String, String> settings, Class<?> setter, Class<?> ownSetter) {
        Map<String, String> injected = new TreeMap<>();
        settings.forEach((name, value) -> {
            if (!Setting.isSet(own, name)) {
                injected.put(name, value);
            }
        });
        Map<Object, Object> all = new HashMap<>(own);
        all.putAll(injected);
        if (setter != null) {
            if (ownSetter != null) {
                all.put(OWN_SETTER, ownSetter);
            }
            all.put(SETTER, setter);
            injected.put(SETTER, setter.getName());
        }
        StringBuilder marker = new StringBuilder();
        injected.forEach((name, value) -> marker.append(marker.length() == 0 ? "" : ",").append(name).append('=').append(value));
        all.put(INJECTED, marker.toString());
        return all;
    }

    /** The application's own configs: a copy without what an earlier pass injected, unless it has been changed since. */
    static Map<Object, Object> withoutOurs(Map<?, ?> configs) {
        Map<Object, Object> own = new HashMap<>(configs);
        Object ownSetter = own.remove(OWN_SETTER);
        for (Map.Entry<String, String> ours : injected(own.remove(INJECTED)).entrySet()) {
            Object now = own.get(ours.getKey());
            String text = now instanceof Class ? ((Class<?>) now).getName() : String.valueOf(now);
            if (text.equals(ours.getValue())) {
                own.remove(ours.getKey());
                if (ours.getKey().equals(SETTER) && ownSetter != null) {
                    own.put(SETTER, ownSetter);
                }
            }
        }
        return own;
    }

    /** What a marker lists. */
    static Map<String, String> injected(Object marker) {
        Map<String, String> injected = new LinkedHashMap<>();
        for (String part : marker instanceof String ? ((String) marker).split(",") : new String[0]) {
            int at = part.indexOf('=');
            if (at > 0) {
                injected.put(part.substring(0, at), part.substring(at + 1));
            }
        }
        return injected;
    }
}
