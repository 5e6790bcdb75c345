// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.lang.instrument.Instrumentation;

/**
 * The part of Streamweir inside an application's JVM. It applies the mounted plan to Kafka Streams, and reports what runs.
 *
 * <p>Nothing is started here but a transformer: a health check or a tool in the same container may start a JVM of its own.
 * Whatever goes wrong, the application runs as it would without an agent, or with the bounds that were in force.
 */
public final class Agent {
    private Agent() {}

    /** Called by the JVM before the application's main method. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        Findings findings = new Findings();
        try {
            Core core = new Core(Options.parse(arguments, findings), findings);
            instrumentation.addTransformer(new Hooks(core, new Definer(instrumentation)));
        } catch (Throwable failure) {
            findings.add("AgentNotStarted", "the application runs as without an agent: " + failure);
        }
    }
}
