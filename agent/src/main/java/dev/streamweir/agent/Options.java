// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.nio.file.Path;
import java.nio.file.Paths;

/** What the agent is told on the command line: {@code -javaagent:JAR[=key=value,...]}. In a pod it is told nothing. */
final class Options {
    /** Where the operator's policy mounts the plan: PlanMountPath in api/v1alpha1/names.go. */
    static final String PLAN_FOLDER = "/etc/streamweir/plan";
    /** Where the operator asks for the report: AgentPort in api/v1alpha1/names.go. */
    static final int PORT = 7907;

    /** The folder with the files of the plan. */
    final Path plan;
    /** The port of the report; 0: any free one. */
    final int port;

    private Options(Path plan, int port) {
        this.plan = plan;
        this.port = port;
    }

    /** Reads {@code plan=FOLDER,port=NUMBER}, in any order; what is wrong is told and left at its default. */
    static Options parse(String text, Findings findings) {
        Path plan = Paths.get(PLAN_FOLDER);
        int port = PORT;
        for (String part : text == null ? new String[0] : text.split(",")) {
            int at = part.indexOf('=');
            String name = at < 0 ? part : part.substring(0, at);
            String value = at < 0 ? "" : part.substring(at + 1);
            try {
                if (name.equals("plan") && !value.isEmpty()) {
                    plan = Paths.get(value);
                } else if (name.equals("port") && Integer.parseInt(value) >= 0 && Integer.parseInt(value) <= 65535) {
                    port = Integer.parseInt(value);
                } else if (!part.isEmpty()) {
                    throw new IllegalArgumentException();
                }
            } catch (IllegalArgumentException malformed) {
                findings.add("BadArgument", "argument \"" + part + "\" is ignored: it must be plan=FOLDER or port=NUMBER from 0 to 65535");
            }
        }
        return new Options(plan, port);
    }
}
