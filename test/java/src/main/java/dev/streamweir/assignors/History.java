// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Creates a history from a seed: an application, its instances, and the events. */
final class History {

  /** The kinds of histories, in turn by seed. */
  private static final List<String> STORIES =
      List.of("started one by one", "lost one by one", "rolling update", "scaled out, then a loss", "scaled in, then restarts", "anything");

  private static final int MAX_PODS = 6;

  final String name;
  final int[] threads;
  final Group group;

  private final SplittableRandom random;
  private final int pods;

  History(long seed, Assignor assignor) {
    random = new SplittableRandom(seed);
    pods = 2 + random.nextInt(MAX_PODS - 1);
    threads = threads();
    group = new Group(application(), assignor, random);
    name = seed + ": " + STORIES.get((int) (seed % STORIES.size()));
    switch ((int) (seed % STORIES.size())) {
      case 0 -> startedOneByOne();
      case 1 -> lostOneByOne();
      case 2 -> rollingUpdate();
      case 3 -> scaledOut();
      case 4 -> scaledIn();
      default -> anything();
    }
  }

  /** The threads of each pod: the same in half of the histories. */
  private int[] threads() {
    boolean uneven = random.nextBoolean();
    int all = 1 + random.nextInt(4);
    int[] threads = new int[MAX_PODS];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = uneven ? 1 + random.nextInt(5) : all;
    }
    return threads;
  }

  private Application application() {
    List<Application.Subtopology> subtopologies = new ArrayList<>();
    int n = 1 + random.nextInt(4);
    for (int s = 0; s < n; s++) {
      // Either within acceptable.recovery.lag even for an empty directory, or far beyond it.
      long records = random.nextInt(5) == 0 ? 0 : pick(2_000, 1_000_000, 1_000_000, 6_000_000);
      subtopologies.add(new Application.Subtopology(1 + random.nextInt(n > 2 ? 8 : 16), records, pick(0, 500, 5_000)));
    }
    return new Application(subtopologies, pick(0, 0, 1, 2), 1 + random.nextInt(4), random.nextBoolean());
  }

  private int pick(int... values) {
    return values[random.nextInt(values.length)];
  }

  private void startedOneByOne() {
    for (int i = 0; i < pods; i++) {
      group.start(letter(i), threads[i]);
      group.pass(pick(1, 3));
      probe(pick(0, 0, 1));
    }
    probe(3);
    loseOne();
    probe(1);
    loseOne();
  }

  private void lostOneByOne() {
    startAll(pods);
    while (group.running.size() > 1) {
      loseOne();
      group.pass(pick(1, 3));
      probe(pick(0, 1));
    }
  }

  private void rollingUpdate() {
    startAll(pods);
    for (int i = 0; i < pods; i++) {
      group.lose(String.valueOf(letter(i)));
      group.pass(pick(1, 2, 4));
      group.start(letter(i), threads[i]);
      group.pass(pick(1, 2, 4));
      probe(pick(0, 0, 1));
    }
  }

  private void scaledOut() {
    int first = Math.max(1, pods / 2);
    startAll(first);
    group.start(letters(first, pods), threads);
    probe(pick(0, 1, 2));
    group.pass(pick(1, 4, 8));
    loseOne();
    probe(1);
    loseOne();
    probe(1);
  }

  private void scaledIn() {
    startAll(pods);
    group.lose(letters(pods - (pods > 3 ? 2 : 1), pods));
    group.pass(pick(1, 4));
    probe(1);
    group.restart(any());
    group.pass(pick(1, 4));
    group.replaceThread(any());
    group.restart(any());
    loseOne();
    probe(1);
  }

  private void anything() {
    startAll(1 + random.nextInt(pods));
    for (int i = 0; i < 10; i++) {
      group.pass(pick(0, 1, 5, 15));
      String names = group.names();
      switch (random.nextInt(6)) {
        case 0, 1 -> startAnother(names);
        case 2 -> loseOne();
        case 3 -> group.restart(any());
        case 4 -> group.replaceThread(any());
        default -> group.probe(random.nextInt(3) == 0);
      }
    }
  }

  private void startAnother(String names) {
    for (int i = 0; i < MAX_PODS; i++) {
      if (names.indexOf(letter(i)) < 0) {
        group.start(letter(i), threads[i]);
        return;
      }
    }
  }

  /** Starts the first pods together and waits until the group is stable and old directories are deleted. */
  private void startAll(int n) {
    group.start(letters(0, n), threads);
    probe(2);
    group.pass(45);
  }

  /** Probing rebalances, as long as the assignor requests them. */
  private void probe(int times) {
    for (int i = 0; i < times && group.followUp; i++) {
      group.probe(false);
    }
  }

  private void loseOne() {
    if (group.running.size() > 1) {
      group.lose(String.valueOf(any()));
    }
  }

  private char any() {
    String names = group.names();
    return names.charAt(random.nextInt(names.length()));
  }

  private static char letter(int pod) {
    return (char) ('a' + pod);
  }

  private static String letters(int from, int to) {
    StringBuilder letters = new StringBuilder();
    for (int i = from; i < to; i++) {
      letters.append(letter(i));
    }
    return letters.toString();
  }
}
