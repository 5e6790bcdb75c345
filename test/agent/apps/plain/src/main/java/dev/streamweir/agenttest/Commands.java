// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

/**
 * Reads commands from standard input, one a line, and answers each with one line on standard output. Lines of answers begin with
 * "@ ", so that they are told apart from what frameworks print. The process ends, in order, with the command "stop" or at the end
 * of the input.
 */
public final class Commands {
    private Commands() {}

    /** Carries out commands until the end of the input. */
    public static void run(Function<String, String> session) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        answer("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answer(session.apply(line));
            if (line.equals("stop")) {
                return;
            }
        }
        session.apply("stop");
    }

    private static synchronized void answer(String text) {
        System.out.println("@ " + text.replace('\n', ' '));
        System.out.flush();
    }
}
