// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Writes trees of maps, iterables, strings, numbers and booleans as JSON (RFC 8259). Anything else is written as null. */
final class Json {
    /** No report is deeper than 8; a tree that holds itself ends here. */
    private static final int DEPTH = 32;

    private static final String HEX = "0123456789abcdef";

    private final StringBuilder out = new StringBuilder(4096);

    private Json() {}

    /** The tree in UTF-8. */
    static byte[] bytes(Object tree) {
        Json json = new Json();
        json.value(tree, 0);
        return json.out.toString().getBytes(StandardCharsets.UTF_8);
    }

    private void value(Object value, int depth) {
        if (value instanceof String) {
            string((String) value);
        } else if (value instanceof Map && depth < DEPTH) {
            object((Map<?, ?>) value, depth + 1);
        } else if (value instanceof Iterable && depth < DEPTH) {
            array((Iterable<?>) value, depth + 1);
        } else if (value instanceof Boolean || value instanceof Number && finite((Number) value)) {
            out.append(value);
        } else {
            out.append("null");
        }
    }

    /** JSON has no word for the others. */
    private static boolean finite(Number n) {
        return n instanceof Long || n instanceof Integer || Double.isFinite(n.doubleValue());
    }

    private void object(Map<?, ?> map, int depth) {
        char before = '{';
        for (Map.Entry<?, ?> e : map.entrySet()) {
            out.append(before);
            string(String.valueOf(e.getKey()));
            out.append(':');
            value(e.getValue(), depth);
            before = ',';
        }
        out.append(before == '{' ? "{}" : "}");
    }

    private void array(Iterable<?> list, int depth) {
        char before = '[';
        for (Object o : list) {
            out.append(before);
            value(o, depth);
            before = ',';
        }
        out.append(before == '[' ? "[]" : "]");
    }

    private void string(String s) {
        out.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c == 0x7f) {
                out.append("\\u00").append(HEX.charAt(c >> 4)).append(HEX.charAt(c & 15));
            } else if (Character.isHighSurrogate(c) && i + 1 < s.length() && Character.isLowSurrogate(s.charAt(i + 1))) {
                out.append(c).append(s.charAt(++i));
            } else {
                out.append(Character.isSurrogate(c) ? '\ufffd' : c); // one without its other half has no UTF-8
            }
        }
        out.append('"');
    }
}
