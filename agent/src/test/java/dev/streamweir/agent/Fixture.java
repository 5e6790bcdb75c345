// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The files in agent/testdata, which the operator's tests share. They have a value for each field of the plan and of the report. */
public final class Fixture {
    private Fixture() {}

    /** Returns the path of a file. */
    public static Path path(String name) {
        return Path.of(System.getProperty("testdata"), name);
    }

    /** Returns the report. */
    public static Map<String, Object> report() {
        try {
            return parse(Files.readAllBytes(path("report.json")));
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /** Returns the first client of the report. */
    public static Map<String, Object> client() {
        return list(report(), "clients").get(0);
    }

    /** Parses an object in JSON. */
    public static Map<String, Object> parse(byte[] json) {
        try {
            return new ObjectMapper().readValue(json, new TypeReference<Map<String, Object>>() {});
        } catch (IOException malformed) {
            throw new UncheckedIOException(malformed);
        }
    }

    /** Returns the object of a key. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> map(Map<String, Object> from, String key) {
        return (Map<String, Object>) from.get(key);
    }

    /** Returns the list of objects of a key. */
    @SuppressWarnings("unchecked")
    public static List<Map<String, Object>> list(Map<String, Object> from, String key) {
        return (List<Map<String, Object>>) from.get(key);
    }
}
