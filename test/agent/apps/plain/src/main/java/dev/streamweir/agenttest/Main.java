// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

/** The application on a plain class path. Its arguments are those of {@link Session}. */
public final class Main {
    private Main() {}

    /** Starts the session and executes the commands on standard input. */
    public static void main(String[] args) throws Exception {
        Commands.run(new Session(args));
    }
}
