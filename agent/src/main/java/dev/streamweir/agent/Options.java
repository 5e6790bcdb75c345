// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.nio.file.Path;
import java.nio.file.Paths;

/** The agent's arguments on the command line: {@code -javaagent:JAR[=key=value,...]}. A pod has none. */
final class Options {
    /** The folder in which the operator's policy mounts the plan: PlanMountPath in api/v1alpha1/names.go. */
    static final String PLAN_FOLDER = "/etc/streamweir/plan";
    /** The port from which the operator reads the report: Port in agent/report/report.go. */
    static final int PORT = 7907;
    private static final int LARGEST_PORT = 65_535;

    /** The folder with the files of the plan. */
    final Path plan;
    /** The port of the report; 0: any free port. */
    final int port;

    private Options(Path plan, int port) {
        this.plan = plan;
        this.port = port;
    }

    /** Parses {@code plan=FOLDER,port=NUMBER}, in any order. It reports invalid arguments as findings and uses the defaults instead. */
    static Options parse(String text, Findings findings) {
        Path plan = Paths.get(PLAN_FOLDER);
        int port = PORT;
        for (String part : text == null ? new String[0] : text.split(",")) {
            int equals = part.indexOf('=');
            String name = equals < 0 ? part : part.substring(0, equals);
            String value = equals < 0 ? "" : part.substring(equals + 1);
            try {
                if (name.equals("plan") && !value.isEmpty()) {
                    plan = Paths.get(value);
                } else if (name.equals("port")) {
                    port = parsePort(value);
                } else if (!part.isEmpty()) {
                    throw new IllegalArgumentException();
                }
            } catch (IllegalArgumentException malformed) {
                findings.add("BadArgument", "argument \"" + part + "\" is ignored; expected plan=FOLDER or port=NUMBER (0 to " + LARGEST_PORT + ")");
            }
        }
        return new Options(plan, port);
    }

    private static int parsePort(String text) {
        int port = Integer.parseInt(text);
        if (port < 0 || port > LARGEST_PORT) {
            throw new IllegalArgumentException();
        }
        return port;
    }
}
