// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.Boundedness;
import dev.streamweir.agent.report.Jvm;
import dev.streamweir.agent.report.PlanSource;

/** Decides once whether RocksDB is bounded in this JVM, and which bounds each class loader has. */
final class BoundsDecision {
    private final StartPlan startPlan;
    private final Findings findings;
    private final Changes changes;
    private Boundedness boundedness = Boundedness.PENDING;
    /** The bounds of the first class loader. */
    private Bounds first;

    BoundsDecision(StartPlan startPlan, Findings findings, Changes changes) {
        this.startPlan = startPlan;
        this.findings = findings;
        this.changes = changes;
    }

    synchronized Boundedness boundedness() {
        return boundedness;
    }

    /** Returns the source of the bounds. Before any bounds exist, {@code plan} is the plan that was read last, null without one. */
    synchronized PlanSource source(Plan plan) {
        if (first != null) {
            return first.source;
        }
        return plan == null ? PlanSource.BOOTSTRAP : PlanSource.PLAN;
    }

    /** Returns the bounds of one more class loader; null if RocksDB stays unbounded. */
    synchronized Bounds forNextLoader() {
        Plan plan = startPlan.get();
        if (boundedness == Boundedness.OFF) {
            return null;
        }
        long limit = Memory.limit();
        long heap = Jvm.maxHeap();
        if (first == null) {
            first = Bounds.of(plan, limit, heap);
            reportClamped(plan, limit, heap);
            return first;
        }
        Bounds further = Bounds.further(first.cache, limit, heap);
        findings.add("SecondLoader", "more than one class loader loads Kafka Streams, and each requires its own cache: this one has "
                + further.cache + " bytes; put Kafka Streams into a class loader that the applications share");
        return further;
    }

    private void reportClamped(Plan plan, long limit, long heap) {
        if (first.source == PlanSource.CLAMPED) {
            findings.add("PlanClamped", "the plan assumes a limit of " + plan.limit + " and a heap of " + plan.heap + " bytes, but this process has "
                    + limit + " and " + heap + ": the shared cache is " + first.cache + " instead of " + plan.cache);
        }
    }

    /** Records that a store of a class loader is bounded. A decision against bounds is final. */
    void activate() {
        decide(Boundedness.ACTIVE);
        changes.announce();
    }

    /** Decides against bounds for the rest of the process, and adds the reason as a finding. */
    void turnOff(String reason, String message) {
        decide(Boundedness.OFF);
        findings.add(reason, message);
        changes.announce();
    }

    private synchronized void decide(Boundedness decided) {
        if (boundedness != Boundedness.OFF) {
            boundedness = decided;
        }
    }
}
