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

/** The allocator of native memory that this process runs with: the one of its C library, or one that was loaded over it. */
final class Allocator {
    /** What the libraries' file names contain, and the allocators' names. One that was loaded over the C library's is found first. */
    private static final String[][] LIBRARIES = {
        {"jemalloc", "jemalloc"}, {"tcmalloc", "tcmalloc"}, {"mimalloc", "mimalloc"},
        {"ld-musl", "musl"}, {"libc.musl", "musl"}, {"libc.so.6", "glibc"}, {"libc-2.", "glibc"},
    };

    /** glibc's other spelling of MALLOC_ARENA_MAX, in GLIBC_TUNABLES. */
    private static final String TUNABLE = "glibc.malloc.arena_max=";

    private Allocator() {}

    /** ReportedAllocator of the schema. The file system's root and the environment come from outside. Never throws. */
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
