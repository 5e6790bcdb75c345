// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.Cgroup;
import dev.streamweir.agent.report.Jvm;

/** The memory that this process has, in bytes. */
final class Memory {
    private Memory() {}

    /** The limit of the container, or where it has none a quarter of the machine beside the heap: as much as the JVM takes for the heap. */
    static long limit() {
        long limit = Cgroup.read().limit();
        return limit > 0 ? limit : Jvm.machineMemory() / 4 + Jvm.maxHeap();
    }
}
