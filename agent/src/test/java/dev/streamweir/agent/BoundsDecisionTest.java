// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.report.Boundedness;
import dev.streamweir.agent.report.PlanSource;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BoundsDecisionTest {
    private static final long MIB = 1L << 20;

    @TempDir
    Path folder;

    private final Findings findings = new Findings();
    private final Changes changes = new Changes();

    private BoundsDecision decision() {
        return new BoundsDecision(new StartPlan(new PlanFiles(folder, findings)), findings, changes);
    }

    private void writePlan(long cache) throws IOException {
        Files.writeString(folder.resolve("plan.v1.properties"),
                "rocksdb.cache.bytes=" + cache + "\nrocksdb.write.buffer.manager.bytes=" + MIB + "\n");
    }

    private List<Object> reasons() {
        List<Object> reasons = new ArrayList<>();
        findings.report().forEach(finding -> reasons.add(finding.get("reason")));
        return reasons;
    }

    @Test
    void becomesActiveWithTheFirstSharedCache() throws IOException {
        writePlan(16 * MIB);
        BoundsDecision decision = decision();
        assertEquals(Boundedness.PENDING, decision.boundedness());
        assertEquals(16 * MIB, decision.forNextLoader().cache);
        assertEquals(Boundedness.PENDING, decision.boundedness());
        long before = changes.sequence();
        decision.activate();
        assertEquals(Boundedness.ACTIVE, decision.boundedness());
        assertTrue(changes.sequence() > before);
        assertEquals(PlanSource.PLAN, decision.source(null));
        assertEquals(List.of(), reasons());
    }

    @Test
    void staysOffOnceItIsOff() throws IOException {
        writePlan(16 * MIB);
        BoundsDecision decision = decision();
        assertNotNull(decision.forNextLoader());
        decision.activate();
        long before = changes.sequence();
        decision.turnOff("NotBounded", "no library");
        assertTrue(changes.sequence() > before);
        decision.activate();
        assertEquals(Boundedness.OFF, decision.boundedness());
        assertNull(decision.forNextLoader());
        assertEquals(List.of("NotBounded"), reasons());
    }

    @Test
    void aFurtherLoaderGetsItsOwnBoundsAndAFinding() throws IOException {
        writePlan(16 * MIB);
        BoundsDecision decision = decision();
        Bounds first = decision.forNextLoader();
        Bounds further = decision.forNextLoader();
        assertEquals(PlanSource.PLAN, first.source);
        assertEquals(PlanSource.BOOTSTRAP, further.source);
        assertEquals(PlanSource.PLAN, decision.source(null));
        assertEquals(List.of("SecondLoader"), reasons());
    }

    @Test
    void aPlanForALargerProcessIsClampedWithAFinding() throws IOException {
        writePlan(1L << 50);
        BoundsDecision decision = decision();
        assertEquals(PlanSource.CLAMPED, decision.forNextLoader().source);
        assertEquals(PlanSource.CLAMPED, decision.source(null));
        assertEquals(List.of("PlanClamped"), reasons());
    }

    @Test
    void usesBootstrapBoundsWithoutAPlan() {
        BoundsDecision decision = decision();
        assertEquals(PlanSource.BOOTSTRAP, decision.source(null));
        assertEquals(PlanSource.BOOTSTRAP, decision.forNextLoader().source);
        assertEquals(List.of("NoPlan"), reasons());
    }

    @Test
    void keepsTheStartPlan() throws IOException {
        writePlan(16 * MIB);
        PlanFiles files = new PlanFiles(folder, findings);
        StartPlan start = new StartPlan(files);
        assertEquals(16 * MIB, start.get().cache);
        writePlan(32 * MIB);
        assertEquals(32 * MIB, files.read().cache);
        assertEquals(16 * MIB, start.get().cache);
    }
}
