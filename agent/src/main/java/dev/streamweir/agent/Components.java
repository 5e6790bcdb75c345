// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

/** The components that all class loaders share: one set for each JVM. */
final class Components {
    final Findings findings;
    final PlanFiles planFiles;
    final ReportToken token;
    final StartPlan startPlan;
    final BoundsDecision decision;
    final Reporting reporting;
    final Changes changes = new Changes();
    final Loaders loaders = new Loaders();
    final CacheCapacities capacities = new CacheCapacities();

    Components(Options options, Findings findings) {
        this.findings = findings;
        findings.setListener(changes::announce);
        planFiles = new PlanFiles(options.plan, findings);
        token = new ReportToken(planFiles::token, System::nanoTime);
        startPlan = new StartPlan(planFiles);
        decision = new BoundsDecision(startPlan, findings, changes);
        reporting = new Reporting(options.port, new ReportSource(this));
    }
}
