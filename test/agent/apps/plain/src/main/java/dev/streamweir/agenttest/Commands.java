// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

/**
 * Reads commands from standard input, one on each line, and writes one line with the result of each to standard output. These lines begin with
 * "@ " to distinguish them from the output of frameworks. The process shuts down after the command "stop" or at the end of the input.
 */
public final class Commands {
    private Commands() {}

    /** Executes commands until the end of the input. */
    public static void run(Function<String, String> session) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        respond("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            respond(session.apply(line));
            if (line.equals("stop")) {
                return;
            }
        }
        session.apply("stop");
    }

    private static synchronized void respond(String text) {
        System.out.println("@ " + text.replace('\n', ' '));
        System.out.flush();
    }
}
