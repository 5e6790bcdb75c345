// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.assignors;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** Writes the decisions of Kafka's assignors in many histories: one file for each assignor. */
public final class Main {

  private Main() {}

  /** Arguments: the folder of the files, and the number of histories for each assignor. */
  public static void main(String[] args) throws IOException {
    Path folder = Path.of(args[0]);
    int histories = Integer.parseInt(args[1]);
    Files.createDirectories(folder);
    Map<String, Assignor> assignors =
        new TreeMap<>(Map.of(
            "classic-high-availability", new HighAvailability(),
            "classic-sticky", new ClassicSticky(),
            "streams-sticky", new BrokerSticky()));
    assignors.forEach((name, assignor) -> write(folder.resolve(name + ".json"), assignor, histories));
  }

  private static void write(Path file, Assignor assignor, int histories) {
    String all = LongStream.range(0, histories)
        .mapToObj(seed -> history(new History(seed, assignor)))
        .collect(Collectors.joining(",\n"));
    try {
      Files.writeString(file, "{\"kafka\": \"" + AppInfoParser.getVersion() + "\", \"assignor\": \"" + assignor.name()
          + "\", \"protocol\": \"" + assignor.protocol() + "\", \"histories\": [\n" + all + "\n]}\n");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String history(History history) {
    Application app = history.group.app;
    String subtopologies = app.subtopologies().stream()
        .map(s -> "{\"tasks\": " + s.tasks() + ", \"stateful\": " + s.stateful() + "}")
        .collect(Collectors.joining(", "));
    String steps = history.group.steps.stream().map(Main::step).collect(Collectors.joining(",\n"));
    return "{\"name\": \"" + history.name + "\", \"standbys\": " + app.standbys() + ", \"warmUps\": " + app.warmUps()
        + ", \"persistent\": " + app.persistent() + ", \"threads\": " + Arrays.toString(history.threads)
        + ", \"subtopologies\": [" + subtopologies + "], \"steps\": [\n" + steps + "]}";
  }

  private static String step(Group.Step step) {
    return " {\"event\": \"" + step.event() + "\", \"pods\": \"" + step.pods() + "\", \"restarted\": \"" + step.restarted()
        + "\", \"tasks\": \"" + step.tasks() + "\"}";
  }
}
