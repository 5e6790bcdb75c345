// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import dev.streamweir.agent.Fixture;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.attribute.FileStoreAttributeView;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StateDirTest {
    @Test
    void readsADirectoryThatDoesNotExistYet(@TempDir Path folder) throws IOException {
        Map<String, Object> map = StateDir.read(folder.resolve("a/b/c").toString(), new HashSet<>());
        assertEquals(Files.getFileStore(folder).type(), map.get("type"));
        assertNotEquals("", map.get("type"));
    }

    @Test
    void isEmptyForAnInvalidPath() {
        assertEquals(Map.of("type", ""), StateDir.read("a\0b", new HashSet<>()));
    }

    @Test
    void reportsTheBytesOfAFileSystemInMemoryOnce() throws IOException {
        Set<FileStore> seen = new HashSet<>();
        assertEquals(Fixture.map(Fixture.client(), "stateDir").keySet(), describe(new Store("tmpfs"), new HashSet<>()).keySet());
        FileStore memory = new Store("tmpfs");
        assertEquals(Map.of("type", "tmpfs", "bytes", 60L), describe(memory, seen));
        assertEquals(Map.of("type", "tmpfs"), describe(memory, seen), "another client on the same file system");
        assertEquals(Map.of("type", "ramfs", "bytes", 60L), describe(new Store("ramfs"), seen));
    }

    @Test
    void omitsTheBytesOfADisk() throws IOException {
        assertEquals(Map.of("type", "xfs"), describe(new Store("xfs"), new HashSet<>()));
    }

    private static Map<String, Object> describe(FileStore store, Set<FileStore> seen) throws IOException {
        Map<String, Object> map = new LinkedHashMap<>();
        StateDir.describe(store, seen, map);
        return map;
    }

    /** A file system of 100 bytes with 40 free. */
    private static final class Store extends FileStore {
        private final String type;

        Store(String type) {
            this.type = type;
        }

        @Override
        public String name() {
            return "fake";
        }

        @Override
        public String type() {
            return type;
        }

        @Override
        public boolean isReadOnly() {
            return false;
        }

        @Override
        public long getTotalSpace() {
            return 100;
        }

        @Override
        public long getUsableSpace() {
            return 30;
        }

        @Override
        public long getUnallocatedSpace() {
            return 40;
        }

        @Override
        public boolean supportsFileAttributeView(Class<? extends FileAttributeView> view) {
            return false;
        }

        @Override
        public boolean supportsFileAttributeView(String view) {
            return false;
        }

        @Override
        public <V extends FileStoreAttributeView> V getFileStoreAttributeView(Class<V> view) {
            return null;
        }

        @Override
        public Object getAttribute(String attribute) {
            return null;
        }
    }
}
