// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

/**
 * The remaining tasks and stores of one report. A report of 256 KiB holds fewer than these limits, which only keep a report that is too large
 * from being built at all.
 */
final class ReportLimits {
    private int tasks = 10_000;
    private int stores = 10_000;

    /** Takes one task from the limit, and reports whether it was available. */
    boolean takeTask() {
        tasks--;
        return tasks >= 0;
    }

    /** Takes one store from the limit, and reports whether it was available. */
    boolean takeStore() {
        stores--;
        return stores >= 0;
    }

    /** Reports whether a task or a store was refused. */
    boolean exceeded() {
        return tasks < 0 || stores < 0;
    }
}
