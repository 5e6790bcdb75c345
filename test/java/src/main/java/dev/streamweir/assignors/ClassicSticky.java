// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.DefaultKafkaStreamsState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;

/** The sticky assignor of the classic protocol (task.assignor.class). */
final class ClassicSticky implements Assignor {

  @Override
  public String name() {
    return "StickyTaskAssignor";
  }

  @Override
  public String protocol() {
    return "classic";
  }

  @Override
  public Outcome assign(Group group) {
    Map<ProcessId, Character> names = new HashMap<>();
    Outcome outcome = new Outcome(new TreeMap<>(), new TreeMap<>(), false);
    for (Instance i : group.running.values()) {
      names.put(i.id, i.name);
      outcome.active().put(i.name, new TreeSet<>());
      outcome.standby().put(i.name, new TreeSet<>());
    }
    for (KafkaStreamsAssignment assigned : new StickyTaskAssignor().assign(new State(group)).assignment()) {
      for (AssignedTask task : assigned.tasks().values()) {
        boolean isActive = task.type() == AssignedTask.Type.ACTIVE;
        (isActive ? outcome.active() : outcome.standby()).get(names.get(assigned.processId())).add(task.id());
      }
    }
    return outcome;
  }

  /** A group as the assignor's input. */
  private record State(Group group) implements ApplicationState {

    @Override
    public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
      Map<ProcessId, KafkaStreamsState> states = new HashMap<>();
      group.running.values().forEach(i -> states.put(i.id, state(i)));
      return states;
    }

    private KafkaStreamsState state(Instance i) {
      TreeSet<TaskId> previousActive = new TreeSet<>(i.active);
      previousActive.removeAll(i.dropped);
      TreeSet<TaskId> previousStandby = new TreeSet<>(i.onDisk());
      previousStandby.removeAll(previousActive);
      SortedMap<String, Set<TaskId>> consumers = new TreeMap<>();
      for (int t = 0; t < i.threads; t++) {
        consumers.put(i.name + "-" + t, Set.of());
      }
      return new DefaultKafkaStreamsState(
          i.id, i.threads, Map.of(), previousActive, previousStandby, consumers, Optional.empty(), Optional.empty(), Optional.empty());
    }

    @Override
    public AssignmentConfigs assignmentConfigs() {
      return HighAvailability.configs(group.app);
    }

    @Override
    public Map<TaskId, TaskInfo> allTasks() {
      Map<TaskId, TaskInfo> all = new HashMap<>();
      group.app.tasks().forEach(t -> all.put(t, info(t)));
      return all;
    }

    private TaskInfo info(TaskId task) {
      Set<TaskTopicPartition> partitions = new HashSet<>();
      partitions.add(partition("input-", task, true));
      if (group.app.stateful(task)) {
        partitions.add(partition("changelog-", task, false));
      }
      Set<String> stores = group.app.stateful(task) ? Set.of("store-" + task.subtopology()) : Set.of();
      return new Info(task, group.app.stateful(task), stores, partitions);
    }

    private static TaskTopicPartition partition(String prefix, TaskId task, boolean source) {
      TopicPartition partition = new TopicPartition(prefix + task.subtopology(), task.partition());
      return new DefaultTaskTopicPartition(partition, source, !source, () -> {});
    }
  }

  /** A task. The assignor uses hash sets of tasks, so its decisions are reproducible only if equal tasks have equal hashes. */
  private record Info(TaskId id, boolean isStateful, Set<String> stateStoreNames, Set<TaskTopicPartition> topicPartitions)
      implements TaskInfo {}
}
