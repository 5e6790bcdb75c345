// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.streams.processor.TaskId;

/**
 * An application, the same for all its instances.
 *
 * @param subtopologies its subtopologies
 * @param standbys num.standby.replicas
 * @param warmUps max.warmup.replicas
 * @param persistent whether the state directory survives the instance
 */
record Application(List<Subtopology> subtopologies, int standbys, int warmUps, boolean persistent) {

  /**
   * A subtopology.
   *
   * @param tasks its number of tasks
   * @param records the records in the changelog of each task when the history begins; 0 if it has no state
   * @param recordsPerMinute the records written to the changelog of each task
   */
  record Subtopology(int tasks, long records, long recordsPerMinute) {
    boolean stateful() {
      return records > 0;
    }
  }

  /** All tasks, in order. */
  List<TaskId> tasks() {
    List<TaskId> all = new ArrayList<>();
    for (int s = 0; s < subtopologies.size(); s++) {
      for (int p = 0; p < subtopologies.get(s).tasks(); p++) {
        all.add(new TaskId(s, p));
      }
    }
    return all;
  }

  /** The tasks with state. */
  TreeSet<TaskId> statefulTasks() {
    return tasks().stream().filter(this::stateful).collect(Collectors.toCollection(TreeSet::new));
  }

  boolean stateful(TaskId task) {
    return of(task).stateful();
  }

  /** The end offset of a task's changelog after some minutes. */
  long end(TaskId task, long minutes) {
    return of(task).records() + minutes * of(task).recordsPerMinute();
  }

  private Subtopology of(TaskId task) {
    return subtopologies.get(task.subtopology());
  }
}
