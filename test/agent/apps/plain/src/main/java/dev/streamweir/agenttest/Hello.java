// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.TreeSet;

/** A program without Kafka Streams. It prints its threads and system properties, then waits for the end of its input. */
public final class Hello {
    private Hello() {}

    /** Runs the program without arguments. */
    public static void main(String[] args) throws Exception {
        TreeSet<String> threads = new TreeSet<>();
        Thread.getAllStackTraces().keySet().forEach(thread -> threads.add(thread.getName()));
        System.out.println("threads " + threads);
        System.out.println("properties " + new TreeSet<>(System.getProperties().stringPropertyNames()));
        System.out.flush();
        while (System.in.read() >= 0) {
            continue;
        }
    }
}
