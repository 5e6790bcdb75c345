// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.time.Instant;
import java.util.Optional;

/** When this process started. */
final class Started {
    private Started() {}

    /** Milliseconds since 1970, as the operating system tells it; the present where it does not. */
    static long millis() {
        try {
            Optional<Instant> start = ProcessHandle.current().info().startInstant();
            return start.isPresent() ? start.get().toEpochMilli() : System.currentTimeMillis();
        } catch (RuntimeException e) {
            return System.currentTimeMillis();
        }
    }
}
