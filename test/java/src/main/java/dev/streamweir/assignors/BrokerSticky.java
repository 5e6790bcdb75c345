// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.streams.processor.TaskId;

/** The broker's assignor for the streams protocol: its members are threads. */
final class BrokerSticky implements Assignor {

  static final MemberAssignment NOTHING = new MemberAssignment(Map.of(), Map.of());

  @Override
  public String name() {
    return "StickyTaskAssignor";
  }

  @Override
  public String protocol() {
    return "streams";
  }

  @Override
  public Outcome assign(Group group) {
    for (Instance i : group.running.values()) {
      if (i.members.isEmpty()) {
        IntStream.range(0, i.threads).forEach(t -> i.members.put(member(i, t), NOTHING));
      }
    }
    // Threads join one by one, and the broker may assign after each or after all of them.
    List<String> late = group.threadsMoveOneByOne ? withoutTasks(group) : List.of();
    for (int missing = late.size() - 1; missing > 0; missing--) {
      assign(group, Set.copyOf(late.subList(0, missing)));
    }
    assign(group, Set.of());
    return outcome(group);
  }

  private static List<String> withoutTasks(Group group) {
    return group.running.values().stream()
        .flatMap(i -> i.members.entrySet().stream())
        .filter(m -> m.getValue().activeTasks().isEmpty() && m.getValue().standbyTasks().isEmpty())
        .map(Map.Entry::getKey)
        .toList();
  }

  private static String member(Instance i, int thread) {
    return i.name + "-" + i.start + "-" + thread;
  }

  /** Assigns once; members that have not joined yet get nothing. */
  private static void assign(Group group, Set<String> missing) {
    Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
    for (Instance i : group.running.values()) {
      i.members.forEach(
          (id, assignment) -> {
            if (!missing.contains(id)) {
              members.put(id, state(i, assignment, group, id.equals(i.members.firstKey())));
            }
          });
    }
    AssignmentConfigsImpl configs = new AssignmentConfigsImpl(group.app.standbys(), List.of());
    GroupAssignment result = new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), new Topology(group.app));
    for (Instance i : group.running.values()) {
      i.members.replaceAll((id, before) -> result.members().getOrDefault(id, NOTHING));
    }
  }

  /** A member; the first of an instance reports the offsets of all its task directories. */
  private static MemberMetadataAndStateImpl state(Instance i, MemberAssignment assignment, Group group, boolean reports) {
    Map<String, Map<Integer, Long>> offsets = new HashMap<>();
    Map<String, Map<Integer, Long>> ends = new HashMap<>();
    for (TaskId task : reports ? i.onDisk() : Set.<TaskId>of()) {
      String subtopology = Integer.toString(task.subtopology());
      offsets.computeIfAbsent(subtopology, s -> new HashMap<>()).put(task.partition(), i.position(task));
      ends.computeIfAbsent(subtopology, s -> new HashMap<>()).put(task.partition(), group.app.end(task, group.minute));
    }
    return new MemberMetadataAndStateImpl(
        Optional.empty(), Optional.empty(), i.id.toString(), Map.of(),
        assignment.activeTasks(), assignment.standbyTasks(), Map.of(), offsets, ends);
  }

  private static Outcome outcome(Group group) {
    Outcome outcome = new Outcome(new TreeMap<>(), new TreeMap<>(), false);
    for (Instance i : group.running.values()) {
      Set<TaskId> active = new TreeSet<>();
      Set<TaskId> standby = new TreeSet<>();
      i.members.values().forEach(m -> {
        addTo(active, m.activeTasks());
        addTo(standby, m.standbyTasks());
      });
      outcome.active().put(i.name, active);
      outcome.standby().put(i.name, standby);
    }
    return outcome;
  }

  private static void addTo(Set<TaskId> tasks, Map<String, Set<Integer>> bySubtopology) {
    bySubtopology.forEach((s, partitions) -> partitions.forEach(p -> tasks.add(new TaskId(Integer.parseInt(s), p))));
  }

  /** The topology on the broker. */
  private record Topology(Application app) implements TopologyDescriber {

    @Override
    public List<String> subtopologies() {
      return IntStream.range(0, app.subtopologies().size()).mapToObj(Integer::toString).toList();
    }

    @Override
    public int maxNumInputPartitions(String subtopology) {
      return app.subtopologies().get(Integer.parseInt(subtopology)).tasks();
    }

    @Override
    public boolean isStateful(String subtopology) {
      return app.subtopologies().get(Integer.parseInt(subtopology)).stateful();
    }
  }
}
