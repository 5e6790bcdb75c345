// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.time.Instant;
import java.util.Optional;

/** The start time of this process. */
final class Started {
    private Started() {}

    /** Returns milliseconds since 1970 from the operating system; the present time if it is unavailable. */
    static long millis() {
        try {
            Optional<Instant> start = ProcessHandle.current().info().startInstant();
            return start.isPresent() ? start.get().toEpochMilli() : System.currentTimeMillis();
        } catch (RuntimeException e) {
            return System.currentTimeMillis();
        }
    }
}
