// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** Adds the plan's settings to the configs of an application. A config of the application always stays. */
final class Injection {
    private Injection() {}

    /**
     * Returns a copy of the application's own configs with the settings and the setter injected.
     *
     * @param own the configs without injected ones: see {@link #withoutOurs}
     * @param settings the plan's settings
     * @param setter the agent's setter, null to keep the application's
     * @param ownSetter the class of the application's own setter, null if it has none
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
                all.put(ConfigKeys.OWN_SETTER, ownSetter);
            }
            all.put(ConfigKeys.SETTER, setter);
            injected.put(ConfigKeys.SETTER, setter.getName());
        }
        StringBuilder marker = new StringBuilder();
        injected.forEach((name, value) -> marker.append(marker.length() == 0 ? "" : ",").append(name).append('=').append(value));
        all.put(ConfigKeys.INJECTED, marker.toString());
        return all;
    }

    /** Returns a copy of the configs without those of an earlier pass. An injected config with a new value is the application's. */
    static Map<Object, Object> withoutOurs(Map<?, ?> configs) {
        Map<Object, Object> own = new HashMap<>(configs);
        Object ownSetter = own.remove(ConfigKeys.OWN_SETTER);
        for (Map.Entry<String, String> ours : injected(own.remove(ConfigKeys.INJECTED)).entrySet()) {
            Object present = own.get(ours.getKey());
            String text = present instanceof Class ? ((Class<?>) present).getName() : String.valueOf(present);
            if (text.equals(ours.getValue())) {
                own.remove(ours.getKey());
                if (ours.getKey().equals(ConfigKeys.SETTER) && ownSetter != null) {
                    own.put(ConfigKeys.SETTER, ownSetter);
                }
            }
        }
        return own;
    }

    /** Returns the configs in the value of {@link ConfigKeys#INJECTED}. */
    static Map<String, String> injected(Object marker) {
        Map<String, String> injected = new LinkedHashMap<>();
        for (String part : marker instanceof String ? ((String) marker).split(",") : new String[0]) {
            int equals = part.indexOf('=');
            if (equals > 0) {
                injected.put(part.substring(0, equals), part.substring(equals + 1));
            }
        }
        return injected;
    }
}
