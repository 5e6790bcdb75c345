// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** Where a client keeps its stores. */
final class StateDir {
    private StateDir() {}

    /**
     * ReportedStateDir of the schema. {@code seen} are the file systems that other clients of the report have told of already; this one
     * is added. Never throws.
     */
    static Map<String, Object> read(String stateDir, Set<FileStore> seen) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("type", "");
        try {
            describe(Files.getFileStore(existing(Path.of(stateDir))), seen, map);
        } catch (IOException | RuntimeException e) {
            return map; // not there, or not ours to see
        }
        return map;
    }

    static void describe(FileStore store, Set<FileStore> seen, Map<String, Object> map) throws IOException {
        map.put("type", store.type());
        boolean first = seen.add(store);
        if (first && (store.type().equals("tmpfs") || store.type().equals("ramfs"))) {
            // What the whole file system holds, and not the lengths of the files: RocksDB sets space aside for files that it has open
            // (fallocate with FALLOC_FL_KEEP_SIZE), which tmpfs takes from memory at once. Measured with 28 stores of Kafka Streams 4.4:
            // files of 0.6 MiB take 113 MiB, 4 MiB for each MANIFEST (manifest_preallocation_size).
            map.put("bytes", Math.max(0, store.getTotalSpace() - store.getUnallocatedSpace()));
        }
    }

    /** The path or what there is of it: Kafka Streams makes the directory when it starts. */
    private static Path existing(Path path) {
        Path p = path.toAbsolutePath().normalize();
        while (p.getParent() != null && !Files.exists(p)) {
            p = p.getParent();
        }
        return p;
    }
}
