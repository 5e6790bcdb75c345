// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Writes trees of maps, iterables, strings, numbers and booleans as JSON (RFC 8259). Anything else is written as null. */
final class Json {
    /** The largest depth. No report is deeper than 8; a tree that contains itself ends here. */
    private static final int MAX_DEPTH = 32;

    private static final String HEX = "0123456789abcdef";

    private final StringBuilder out = new StringBuilder(4096);

    private Json() {}

    /** Returns the tree in UTF-8. */
    static byte[] bytes(Object tree) {
        Json json = new Json();
        json.value(tree, 0);
        return json.out.toString().getBytes(StandardCharsets.UTF_8);
    }

    private void value(Object value, int depth) {
        if (value instanceof String) {
            string((String) value);
        } else if (value instanceof Map && depth < MAX_DEPTH) {
            object((Map<?, ?>) value, depth + 1);
        } else if (value instanceof Iterable && depth < MAX_DEPTH) {
            array((Iterable<?>) value, depth + 1);
        } else if (value instanceof Boolean || (value instanceof Number && isFinite((Number) value))) {
            out.append(value);
        } else {
            out.append("null");
        }
    }

    /** Reports whether a number is finite. JSON cannot express the others. */
    private static boolean isFinite(Number number) {
        return number instanceof Long || number instanceof Integer || Double.isFinite(number.doubleValue());
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

    private void string(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c == 0x7f) {
                out.append("\\u00").append(HEX.charAt(c >> 4)).append(HEX.charAt(c & 15));
            } else if (Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
                i++;
                out.append(c).append(text.charAt(i));
            } else {
                out.append(Character.isSurrogate(c) ? '\ufffd' : c); // a surrogate without its pair has no UTF-8
            }
        }
        out.append('"');
    }
}
