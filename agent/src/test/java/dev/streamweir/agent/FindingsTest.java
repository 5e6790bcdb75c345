// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class FindingsTest {
    @Test
    void keepsEachFindingOnceUpToTheLimitOfTheReport() {
        Findings findings = new Findings();
        AtomicInteger notified = new AtomicInteger();
        findings.setListener(notified::incrementAndGet);
        for (int i = 0; i < 1000; i++) {
            findings.add("Same", "the same");
            findings.add("Other", "number " + i);
        }
        assertEquals(50, notified.get());
        assertEquals(50, findings.report().size());
        assertEquals("the same", findings.report().get(0).get("message"));
    }
}
