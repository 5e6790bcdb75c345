// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** The allocator of native memory in this process: the C library's, or one that replaces it. */
final class Allocator {
    /** Parts of the libraries' file names with the allocators' names. An allocator that replaces the C library's comes first. */
    private static final String[][] LIBRARIES = {
        {"jemalloc", "jemalloc"}, {"tcmalloc", "tcmalloc"}, {"mimalloc", "mimalloc"},
        {"ld-musl", "musl"}, {"libc.musl", "musl"}, {"libc.so.6", "glibc"}, {"libc-2.", "glibc"},
    };

    /** The equivalent of MALLOC_ARENA_MAX in GLIBC_TUNABLES. */
    private static final String TUNABLE = "glibc.malloc.arena_max=";

    private Allocator() {}

    /** Returns the map {@code allocator} of the schema, read below a root of the file system. Never throws. */
    static Map<String, Object> read(Path root, Map<String, String> env) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("name", name(root.resolve("proc/self/maps")));
        map.put("arenas", arenas(env));
        return map;
    }

    private static String name(Path maps) {
        int best = LIBRARIES.length;
        try (BufferedReader in = Files.newBufferedReader(maps, StandardCharsets.ISO_8859_1)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String file = line.substring(line.lastIndexOf('/') + 1);
                for (int i = 0; i < best && line.indexOf('/') >= 0; i++) {
                    if (file.contains(LIBRARIES[i][0])) {
                        best = i;
                    }
                }
            }
        } catch (IOException | RuntimeException e) {
            return "";
        }
        return best == LIBRARIES.length ? "" : LIBRARIES[best][1];
    }

    private static int arenas(Map<String, String> env) {
        int arenas = 0;
        for (String tunable : env.getOrDefault("GLIBC_TUNABLES", "").split(":")) {
            if (tunable.startsWith(TUNABLE)) {
                arenas = count(tunable.substring(TUNABLE.length()));
            }
        }
        return env.containsKey("MALLOC_ARENA_MAX") ? count(env.get("MALLOC_ARENA_MAX")) : arenas;
    }

    private static int count(String text) {
        try {
            return Math.max(0, Integer.parseInt(text.trim()));
        } catch (NumberFormatException e) {
            return 0;
        }
    }
}
