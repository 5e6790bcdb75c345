// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.FallbackPriorTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/** The default assignor of the classic protocol. */
final class HighAvailability implements Assignor {

  private static final long ACCEPTABLE_RECOVERY_LAG = 10_000; // the default
  private static final long PROBING_REBALANCE_INTERVAL_MS = 600_000; // the default

  static AssignmentConfigs configs(Application app) {
    return new AssignmentConfigs(
        ACCEPTABLE_RECOVERY_LAG, app.warmUps(), app.standbys(), PROBING_REBALANCE_INTERVAL_MS, List.of(),
        OptionalInt.empty(), OptionalInt.empty(), StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_NONE);
  }

  @Override
  public String name() {
    return "HighAvailabilityTaskAssignor";
  }

  @Override
  public String protocol() {
    return "classic";
  }

  @Override
  public Outcome assign(Group group) {
    Application app = group.app;
    Map<ProcessId, ClientState> clients = new HashMap<>();
    group.running.values().forEach(i -> clients.put(i.id, state(i, group)));
    AssignmentConfigs configs = configs(app);
    RackAwareTaskAssignor racks =
        new RackAwareTaskAssignor(Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(), null, configs, Time.SYSTEM);
    // StreamsPartitionAssignor takes the other if it cannot list the end offsets of the changelogs.
    LegacyTaskAssignor assignor = group.lagsUnknown ? new FallbackPriorTaskAssignor() : new HighAvailabilityTaskAssignor();
    boolean followUp = assignor.assign(clients, new TreeSet<>(app.tasks()), app.statefulTasks(), racks, configs);
    Outcome outcome = new Outcome(new TreeMap<>(), new TreeMap<>(), followUp);
    for (Instance i : group.running.values()) {
      outcome.active().put(i.name, Set.copyOf(clients.get(i.id).activeTasks()));
      outcome.standby().put(i.name, Set.copyOf(clients.get(i.id).standbyTasks()));
    }
    return outcome;
  }

  private static ClientState state(Instance i, Group group) {
    Set<TaskId> previousActive = new TreeSet<>(i.active);
    previousActive.removeAll(i.dropped);
    Set<TaskId> previousStandby = new TreeSet<>(i.onDisk());
    previousStandby.removeAll(previousActive);
    Map<TaskId, Long> lags = new TreeMap<>();
    for (TaskId task : group.app.statefulTasks()) {
      lags.put(task, i.lag(task, group.app, group.minute));
    }
    return new ClientState(previousActive, previousStandby, lags, Map.of(), i.threads, i.id);
  }
}
