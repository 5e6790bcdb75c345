// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.ReportServer;
import dev.streamweir.agent.report.Source;

/** Starts the report server, once, when the first fact can be reported. */
final class Reporting {
    private final int port;
    private final Source source;
    private boolean started;

    Reporting(int port, Source source) {
        this.port = port;
        this.source = source;
    }

    /** Starts the server unless it was started before. Never throws. */
    void start() {
        if (isFirst()) {
            ReportServer.start(port, source);
        }
    }

    private synchronized boolean isFirst() {
        boolean first = !started;
        started = true;
        return first;
    }
}
