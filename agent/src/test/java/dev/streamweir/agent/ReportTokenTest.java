// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ReportTokenTest {
    private static final String FIRST = "1".repeat(64);
    private static final String SECOND = "2".repeat(64);

    private String file = FIRST;
    private int reads;
    private long now;
    private final ReportToken token = new ReportToken(() -> {
        reads++;
        return file;
    }, () -> now);

    private void pass(long seconds) {
        now += TimeUnit.SECONDS.toNanos(seconds);
    }

    @Test
    void acceptsOnlyTheMountedToken() {
        assertTrue(token.accepts(FIRST));
        assertFalse(token.accepts(SECOND));
        assertFalse(token.accepts(""));
        assertFalse(token.accepts(FIRST.substring(1)));
    }

    @Test
    void acceptsNothingWithoutAMountedToken() {
        file = "";
        assertFalse(token.accepts(""));
        assertFalse(token.accepts(FIRST));
    }

    @Test
    void acceptsNoShortToken() {
        file = "guess";
        assertFalse(token.accepts("guess"));
    }

    @Test
    void acceptsThePreviousTokenForAWhile() {
        token.accepts(FIRST);
        file = SECOND;
        assertFalse(token.accepts(SECOND), "not read again yet");
        pass(1);
        assertTrue(token.accepts(SECOND));
        assertTrue(token.accepts(FIRST));
        pass(119);
        assertTrue(token.accepts(FIRST));
        pass(1);
        assertFalse(token.accepts(FIRST));
        assertTrue(token.accepts(SECOND));
    }

    @Test
    void readsTheFileAtMostOnceASecond() {
        for (int i = 0; i < 1000; i++) {
            token.accepts(SECOND);
        }
        assertEquals(1, reads);
        pass(1);
        token.accepts(SECOND);
        assertEquals(2, reads);
    }
}
