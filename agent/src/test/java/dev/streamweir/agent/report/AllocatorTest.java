// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AllocatorTest {
    private static final String GLIBC = "7f0000000000-7f0000001000 r-xp 00000000 fd:00 123    /usr/lib/x86_64-linux-gnu/libc.so.6\n";

    @TempDir Path root;

    @Test
    void findsTheAllocatorOfTheCLibrary() throws IOException {
        assertEquals("glibc", name("7f00-7f01 r--p 00000000 00:00 0\n" + GLIBC));
        assertEquals("glibc", name("7f00-7f01 r-xp 00000000 fd:00 1 /lib/libc-2.31.so\n"));
        assertEquals("musl", name("7f00-7f01 r-xp 00000000 fd:00 1 /lib/ld-musl-x86_64.so.1\n"));
    }

    @Test
    void findsAReplacement() throws IOException {
        assertEquals("jemalloc", name(GLIBC + "7f00-7f01 r-xp 00000000 fd:00 1 /usr/lib/libjemalloc.so.2\n"));
        assertEquals("tcmalloc", name("7f00-7f01 r-xp 00000000 fd:00 1 /usr/lib/libtcmalloc_minimal.so.4\n" + GLIBC));
        assertEquals("mimalloc", name("7f00-7f01 r-xp 00000000 fd:00 1 /usr/lib/libmimalloc.so.2.1\n" + GLIBC));
    }

    @Test
    void ignoresFolderNames() throws IOException {
        assertEquals("glibc", name(GLIBC + "7f00-7f01 r--p 00000000 fd:00 1 /opt/jemalloc/app.jar\n7f00-7f01 rw-p 00000000 00:00 0 [heap]\n"));
    }

    @Test
    void isEmptyIfUnknown() throws IOException {
        assertEquals("", name("7f00-7f01 r-xp 00000000 fd:00 1 /lib/other.so\n"));
        assertEquals("", Allocator.read(root.resolve("nowhere"), Map.of()).get("name"));
    }

    @Test
    void readsTheNumberOfArenas() {
        assertEquals(0, arenas(Map.of()));
        assertEquals(2, arenas(Map.of("MALLOC_ARENA_MAX", "2")));
        assertEquals(0, arenas(Map.of("MALLOC_ARENA_MAX", "many")));
        assertEquals(0, arenas(Map.of("MALLOC_ARENA_MAX", "-1")));
        assertEquals(3, arenas(Map.of("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1:glibc.malloc.arena_max=3")));
        assertEquals(1, arenas(Map.of("GLIBC_TUNABLES", "glibc.malloc.arena_max=3", "MALLOC_ARENA_MAX", "1")));
    }

    private String name(String maps) throws IOException {
        Files.createDirectories(root.resolve("proc/self"));
        Files.writeString(root.resolve("proc/self/maps"), maps);
        return (String) Allocator.read(root, Map.of()).get("name");
    }

    private Object arenas(Map<String, String> env) {
        return Allocator.read(root, env).get("arenas");
    }
}
