// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ChangesTest {
    private static final long LONG_WAIT_MILLIS = 60_000;

    private final Changes changes = new Changes();

    @Test
    void anAnnouncementEndsTheWait() throws InterruptedException {
        long known = changes.sequence();
        Thread waiting = new Thread(() -> {
            try {
                changes.await(known, LONG_WAIT_MILLIS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        });
        waiting.start();
        changes.announce();
        waiting.join(LONG_WAIT_MILLIS / 2);
        assertTrue(!waiting.isAlive());
        assertEquals(known + 1, changes.sequence());
    }

    @Test
    void doesNotWaitIfTheSequenceNumberHasChanged() throws InterruptedException {
        long from = System.nanoTime();
        changes.await(changes.sequence() - 1, LONG_WAIT_MILLIS);
        assertTrue(System.nanoTime() - from < TimeUnit.MILLISECONDS.toNanos(LONG_WAIT_MILLIS / 2));
    }

    @Test
    void theWaitEndsWithoutAChange() throws InterruptedException {
        long known = changes.sequence();
        changes.await(known, 20);
        assertEquals(known, changes.sequence());
    }
}
