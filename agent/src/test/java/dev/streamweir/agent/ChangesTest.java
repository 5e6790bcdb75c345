// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ChangesTest {
    private final Changes changes = new Changes();

    @Test
    void notifiesTheListenerOfEachChange() {
        long before = changes.sequence();
        changes.announce();
        List<Long> seen = new ArrayList<>();
        changes.setListener(() -> seen.add(changes.sequence()));
        changes.announce();
        changes.announce();
        assertEquals(List.of(before + 2, before + 3), seen);
    }
}
