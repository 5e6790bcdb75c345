// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import java.util.Collection;
import java.util.TreeSet;

/** The last assignment of a stream thread, as task ids of the form {@code <subtopology>_<partition>}, the same in all versions. */
final class ThreadTasks {
    final String thread;
    final TreeSet<String> active = new TreeSet<>();
    final TreeSet<String> standby = new TreeSet<>();

    ThreadTasks(String thread) {
        this.thread = thread;
    }

    static ThreadTasks of(String thread, Collection<?> active, Collection<?> standby) {
        ThreadTasks tasks = new ThreadTasks(thread);
        for (Object id : active) {
            tasks.active.add(String.valueOf(id));
        }
        for (Object id : standby) {
            tasks.standby.add(String.valueOf(id));
        }
        return tasks;
    }
}
