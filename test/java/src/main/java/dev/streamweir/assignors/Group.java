// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.kafka.streams.processor.TaskId;

/** A group over time: instances start and stop, time passes, and after each event the assignor decides. */
final class Group {

  /** probing.rebalance.interval.ms in minutes. */
  static final long PROBING_INTERVAL = 10;

  /** state.cleanup.delay.ms in minutes: the age of a directory at its deletion and the interval of the check. */
  private static final long CLEANUP_DELAY = 10;

  /**
   * The group after an event.
   *
   * @param event the event
   * @param pods the running instances, a letter each
   * @param restarted the instances that stopped and started again in this event
   * @param tasks the instances of each task: the active one, then standbys and warm-ups; subtopologies are separated by "|"
   */
  record Step(String event, String pods, String restarted, String tasks) {}

  final Application app;
  final TreeMap<Character, Instance> running = new TreeMap<>();
  final List<Step> steps = new ArrayList<>();
  final boolean threadsMoveOneByOne;
  long minute;
  /** Whether the lags cannot be computed in the current rebalance. */
  boolean lagsUnknown;
  /** Whether the last assignment requested a probing rebalance. */
  boolean followUp;

  private final Assignor assignor;
  private final SplittableRandom random;
  private final TreeMap<Character, Instance> stopped = new TreeMap<>();

  Group(Application app, Assignor assignor, SplittableRandom random) {
    this.app = app;
    this.assignor = assignor;
    this.random = random;
    this.threadsMoveOneByOne = random.nextBoolean();
  }

  /** Starts an instance, on its former directory if that still exists. */
  void start(char name, int threads) {
    add(name, threads);
    rebalance("start " + name, "");
  }

  /** Starts several instances at once. */
  void start(String names, int[] threads) {
    for (char name : names.toCharArray()) {
      add(name, threads[name - 'a']);
    }
    rebalance("start " + names, "");
  }

  /** Stops instances without a restart. */
  void lose(String names) {
    names.chars().forEach(name -> remove((char) name));
    rebalance("lose " + names, "");
  }

  /** Restarts an instance before the group detects its absence. */
  void restart(char name) {
    int threads = running.get(name).threads;
    remove(name);
    add(name, threads);
    rebalance("restart " + name, String.valueOf(name));
  }

  /** Replaces a stream thread: its tasks have no owner, but their directories remain. */
  void replaceThread(char name) {
    Instance i = running.get(name);
    int n = 0;
    for (TaskId task : i.active) {
      if (n++ % i.threads == 0) {
        i.dropped.add(task);
      }
    }
    if (!i.members.isEmpty()) {
      i.members.pollFirstEntry();
      i.members.put(name + "-" + (random.nextLong() >>> 1), BrokerSticky.NOTHING);
    }
    rebalance("replace a thread of " + name, "");
  }

  /** Waits for the probing interval and rebalances. */
  void probe(boolean unknown) {
    pass(PROBING_INTERVAL);
    lagsUnknown = unknown;
    rebalance(unknown ? "probe, lags unknown" : "probe", "");
    lagsUnknown = false;
  }

  /** Lets time pass. */
  void pass(long minutes) {
    for (long end = minute + minutes; minute < end; ) {
      minute++;
      running.values().forEach(i -> i.restore(app, minute, 1));
      if (minute % CLEANUP_DELAY == 0) {
        running.values().forEach(i -> i.clean(minute, CLEANUP_DELAY));
      }
    }
  }

  private void add(char name, int threads) {
    Instance before = stopped.remove(name);
    boolean kept = before != null && app.persistent();
    running.put(name, kept ? new Instance(before, minute, random) : new Instance(name, threads, random));
  }

  private void remove(char name) {
    Instance i = running.get(name);
    while (threadsMoveOneByOne && running.size() > 1 && i.members.size() > 1) {
      i.members.pollFirstEntry();
      assignor.assign(this);
    }
    stopped.put(name, running.remove(name));
  }

  private void rebalance(String event, String restarted) {
    Assignor.Outcome outcome = assignor.assign(this);
    followUp = outcome.followUp();
    running.values().forEach(i -> i.take(outcome.active().get(i.name), outcome.standby().get(i.name), app, minute));
    steps.add(new Step(event, names(), restarted, tasks()));
  }

  String names() {
    StringBuilder names = new StringBuilder();
    running.keySet().forEach(names::append);
    return names.toString();
  }

  private String tasks() {
    StringJoiner all = new StringJoiner("|");
    for (int s = 0; s < app.subtopologies().size(); s++) {
      StringJoiner tasks = new StringJoiner(" ");
      for (int p = 0; p < app.subtopologies().get(s).tasks(); p++) {
        tasks.add(holders(new TaskId(s, p)));
      }
      all.merge(tasks);
    }
    return all.toString();
  }

  private String holders(TaskId task) {
    StringBuilder holders = new StringBuilder();
    running.values().stream().filter(i -> i.active.contains(task)).forEach(i -> holders.append(i.name));
    running.values().stream().filter(i -> i.standby.contains(task)).forEach(i -> holders.append(i.name));
    return holders.toString();
  }
}
