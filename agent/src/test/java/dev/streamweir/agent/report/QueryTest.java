// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class QueryTest {
    @Test
    void allParametersAreOptional() {
        for (String query : new String[] {null, "", "&", "later=1"}) {
            assertTrue(new Query(query).valid, query);
        }
        Query both = new Query("wait=25s&after=1796013379235");
        assertEquals(1796013379235L, both.after);
        assertEquals(25_000, both.wait);
        assertEquals(0, new Query("after=5").wait);
        assertEquals(-1, new Query("wait=250ms").after);
        assertEquals(250, new Query("wait=250ms").wait);
    }

    @Test
    void rejectsInvalidParameters() {
        for (String query : List.of("after=", "wait=", "after=x", "after=-1", "after=99999999999999999999", "after=1.5", "wait=5", "wait=-1s", "wait=s", "wait=ms", "wait=1m",
                "wait=99999999999999999999s", "after=%31", "after=1&wait=soon")) {
            assertFalse(new Query(query).valid, query);
        }
    }

    @Test
    void longWaitsDoNotOverflow() {
        assertEquals(86_400_000, new Query("wait=9223372036854775807s").wait);
    }
}
