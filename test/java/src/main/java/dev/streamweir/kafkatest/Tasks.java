// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.ThreadMetadata;

/** Reports the state of an instance and the tasks of its stream threads. */
final class Tasks implements App.Report {
    private final KafkaStreams streams;

    Tasks(KafkaStreams streams) {
        this.streams = streams;
    }

    @Override
    public String line(KafkaStreams.State state) {
        TreeSet<String> active = new TreeSet<>();
        TreeSet<String> standby = new TreeSet<>();
        int threads = 0;
        if (state == KafkaStreams.State.RUNNING) {
            for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                threads++;
                thread.activeTasks().forEach(task -> active.add(task.taskId().toString()));
                thread.standbyTasks().forEach(task -> standby.add(task.taskId().toString()));
            }
        }
        List<String> fields = new ArrayList<>();
        fields.add("\"state\":\"" + state + "\"");
        fields.add("\"threads\":" + threads);
        fields.add("\"active\":" + array(active));
        fields.add("\"standby\":" + array(standby));
        return "{" + String.join(",", fields) + "}";
    }

    private static String array(TreeSet<String> tasks) {
        return tasks.stream().map(task -> "\"" + task + "\"").collect(Collectors.joining(",", "[", "]"));
    }
}
