// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.lang.instrument.Instrumentation;

/**
 * The part of Streamweir inside an application's JVM. It applies the mounted plan to Kafka Streams and reports the state of the process.
 *
 * <p>{@link #premain} only registers a transformer and starts nothing else, because a health check or a tool in the same container may start
 * its own JVM. No failure of the agent reaches the application: it continues without the agent, or with the bounds that are already active.
 */
public final class Agent {
    private Agent() {}

    /** Registers the transformer. The JVM calls this method before the application's main method. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        Findings findings = new Findings();
        try {
            Components components = new Components(Options.parse(arguments, findings), findings);
            instrumentation.addTransformer(new Hooks(components, new Definer(instrumentation)));
        } catch (Throwable failure) {
            findings.add("AgentNotStarted", "agent startup failed; the application continues without it: " + failure);
        }
    }
}
