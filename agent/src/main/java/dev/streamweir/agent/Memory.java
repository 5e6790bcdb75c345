// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.Cgroup;
import dev.streamweir.agent.report.Jvm;

/** The memory of this process, in bytes. */
final class Memory {
    private Memory() {}

    /**
     * Returns the limit of the container. Without one it returns the heap plus a quarter of the machine's memory, the share that the JVM takes
     * for its heap by default.
     */
    static long limit() {
        long limit = Cgroup.read().limit();
        return limit > 0 ? limit : Jvm.machineMemory() / 4 + Jvm.maxHeap();
    }
}
