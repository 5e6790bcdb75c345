// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.Task;

/** A process of the application and its state directory. */
final class Instance {

  /**
   * Records that a task restores per minute. It only determines the number of probing rebalances until a warm-up has caught up:
   * the tasks have up to 6,000,000 records, the probing interval is 10 minutes.
   */
  private static final long RESTORED_PER_MINUTE = 300_000;

  /** A task directory: its offset in the changelog, and the time since when no task uses it. */
  private static final class Directory {
    long position;
    long closedAt;
  }

  final char name;
  final int threads;
  final ProcessId id;
  /** Distinguishes the members of this start from those of earlier ones. */
  final long start;

  /** The assignment from the group. */
  TreeSet<TaskId> active = new TreeSet<>();

  TreeSet<TaskId> standby = new TreeSet<>();
  /** Active tasks of threads that were replaced: no thread owns them until the next rebalance. */
  final TreeSet<TaskId> dropped = new TreeSet<>();
  /** The assignments of its members, which are its threads; only the streams protocol has them. */
  final TreeMap<String, MemberAssignment> members = new TreeMap<>();

  private final TreeMap<TaskId, Directory> directories = new TreeMap<>();

  /** An instance on an empty state directory. */
  Instance(char name, int threads, SplittableRandom random) {
    this.name = name;
    this.threads = threads;
    this.id = new ProcessId(new UUID(random.nextLong(), random.nextLong()));
    this.start = random.nextLong() >>> 1;
  }

  /** An instance on the state directory of a stopped one: it also has its process id (StateDirectory). */
  Instance(Instance before, long minute, SplittableRandom random) {
    this.name = before.name;
    this.threads = before.threads;
    this.id = before.id;
    this.start = random.nextLong() >>> 1;
    directories.putAll(before.directories);
    directories.values().forEach(d -> d.closedAt = Math.min(d.closedAt, minute));
  }

  /** Applies an assignment: opens, creates and closes directories. */
  void take(Set<TaskId> newActive, Set<TaskId> newStandby, Application app, long minute) {
    TreeSet<TaskId> before = new TreeSet<>(active);
    before.addAll(standby);
    active = new TreeSet<>(newActive);
    standby = new TreeSet<>(newStandby);
    dropped.clear();
    for (TaskId task : app.statefulTasks()) {
      if (active.contains(task) || standby.contains(task)) {
        directories.computeIfAbsent(task, t -> new Directory()).closedAt = Long.MAX_VALUE;
      } else if (before.contains(task)) {
        directories.get(task).closedAt = minute;
      }
    }
  }

  /** Restores open tasks for some minutes. */
  void restore(Application app, long minute, long minutes) {
    directories.forEach(
        (task, d) -> {
          if (d.closedAt == Long.MAX_VALUE) {
            d.position = Math.min(d.position + RESTORED_PER_MINUTE * minutes, app.end(task, minute));
          }
        });
  }

  /** Deletes the directories that have been closed for some minutes (StateDirectory.cleanRemovedTasks). */
  void clean(long minute, long delay) {
    directories.values().removeIf(d -> d.closedAt != Long.MAX_VALUE && minute - d.closedAt > delay);
  }

  /** Whether it runs a task as active with its full state. */
  boolean running(TaskId task, Application app, long minute) {
    return owns(task) && (!app.stateful(task) || position(task) >= app.end(task, minute));
  }

  /** Whether one of its threads has a task as active. */
  boolean owns(TaskId task) {
    return active.contains(task) && !dropped.contains(task);
  }

  /** The lag of a task with state, as StreamsPartitionAssignor computes it from a subscription. */
  long lag(TaskId task, Application app, long minute) {
    return running(task, app, minute) ? Task.LATEST_OFFSET : app.end(task, minute) - position(task);
  }

  /** The tasks with a directory. */
  Set<TaskId> onDisk() {
    return directories.keySet();
  }

  long position(TaskId task) {
    Directory d = directories.get(task);
    return d == null ? 0 : d.position;
  }
}
