// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.processor.TaskId;

/** One of Kafka's assignors. */
interface Assignor {

  /**
   * The decision of an assignor.
   *
   * @param active the active tasks of each instance
   * @param standby its standby tasks, including warm-ups
   * @param followUp whether a probing rebalance is scheduled
   */
  record Outcome(Map<Character, Set<TaskId>> active, Map<Character, Set<TaskId>> standby, boolean followUp) {}

  /** The simple name of the assignor's class. */
  String name();

  /** The group protocol (group.protocol). */
  String protocol();

  /** Assigns the tasks of a group. */
  Outcome assign(Group group);
}
