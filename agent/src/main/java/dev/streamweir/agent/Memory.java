// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.Cgroup;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;

/** The memory that this process has, in bytes. */
final class Memory {
    private Memory() {}

    /** The limit of the container, or where it has none a quarter of the machine beside the heap: as much as the JVM takes for the heap. */
    static long limit() {
        long limit = Cgroup.read().limit();
        return limit > 0 ? limit : machine() / 4 + heap();
    }

    /** The largest heap that the JVM can have. */
    static long heap() {
        return Runtime.getRuntime().maxMemory();
    }

    /** MemTotal of /proc/meminfo; 0 where there is none. */
    private static long machine() {
        try {
            for (String line : Files.readAllLines(Paths.get("/proc/meminfo"))) {
                if (line.startsWith("MemTotal:")) {
                    return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
                }
            }
        } catch (IOException | NumberFormatException unknown) {
            // No Linux: no container either.
        }
        return 0;
    }
}
