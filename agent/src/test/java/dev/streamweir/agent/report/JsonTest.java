// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void writesTreesInOrder() {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("b", 1L);
        map.put("a", List.of(true, "x", 2.5, Map.of()));
        map.put("none", null);
        map.put("empty", List.of());
        assertEquals("{\"b\":1,\"a\":[true,\"x\",2.5,{}],\"none\":null,\"empty\":[]}", json(map));
    }

    @Test
    void writesNumbersWithoutJsonFormAsNull() {
        assertEquals("[null,null,null,0.0,-9223372036854775808]",
            json(Arrays.asList(Double.NaN, Double.POSITIVE_INFINITY, Float.NaN, 0.0, Long.MIN_VALUE)));
    }

    @Test
    void writesOtherObjectsAsNull() {
        assertEquals("[null,null]", json(Arrays.asList(new Object(), new byte[] {1})));
    }

    @Test
    void escapesText() {
        assertEquals("\"\\\"\\\\\\u0000\\u000a\\u001f\\u007f/\u00e9\u20ac\"", json("\"\\\0\n\u001f\u007f/\u00e9\u20ac"));
    }

    @Test
    void replacesUnpairedSurrogates() {
        assertEquals("\"a\ufffdb\"", json("a\ud83db"));
        assertEquals("\"\ufffda\ufffd\"", json("\ude00a\ud83d"));
        assertEquals("\"\ud83d\ude00\"", json("\ud83d\ude00"));
    }

    @Test
    void endsInAListThatContainsItself() {
        List<Object> list = new ArrayList<>();
        list.add(list);
        assertTrue(json(list).startsWith("[[[[") && json(list).contains("null"));
    }

    private static String json(Object tree) {
        return new String(Json.bytes(tree), StandardCharsets.UTF_8);
    }
}
