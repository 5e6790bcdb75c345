// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

/** An application on a plain class path: its arguments are those of {@link Session}. */
public final class Main {
    private Main() {}

    /** Opens the session and carries out the commands on standard input. */
    public static void main(String[] args) throws Exception {
        Commands.run(new Session(args));
    }
}
