// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

/** The source of the bounds. */
public enum PlanSource {
    /** The mounted plan. */
    PLAN("Plan"),
    /** The mounted plan, reduced because the process has less memory than the plan assumes. */
    CLAMPED("Clamped"),
    /** The memory limit and the heap, without a valid plan. */
    BOOTSTRAP("Bootstrap");

    /** The name in the report. */
    public final String wireName;

    PlanSource(String wireName) {
        this.wireName = wireName;
    }
}
