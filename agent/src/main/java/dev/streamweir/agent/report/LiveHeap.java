// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.List;
import java.util.Locale;

/**
 * The live part of the heap: the memory in use after collections of the old generation, or of a whole heap without generations. The pools
 * have the names of the JVMs: "Tenured Gen" (serial), "PS Old Gen", "G1 Old Gen", "ZGC Old Generation", "Shenandoah Old Gen", and "tenured",
 * "tenured-SOA", "tenured-LOA", "balanced-old" (OpenJ9). "ZHeap", "Shenandoah" and "JavaHeap" are the only pools of their heaps. Young
 * collections do not change these figures.
 *
 * <p>G1 empties the old generation gradually: after each marking and each mixed collection much garbage remains, and more in a larger heap.
 * Therefore the smallest of its last figures counts. Measured with 89 MiB of live objects and medium-lived garbage in a heap of 600 MiB: single
 * figures of 133 to 301 MiB, the smallest of ten 133 (JDK 17); 92 to 239, and 92 (JDK 25).
 */
final class LiveHeap {
    /** One marking, the up to 8 mixed collections after it (G1MixedGCCountTarget), and one more. */
    private static final int FIGURES = 10;

    private final long[] last = new long[FIGURES];
    private int seen;

    /** Takes the present figures of the pools and returns the live bytes; 0 before the first such collection. */
    synchronized long observe(List<MemoryPoolMXBean> pools) {
        long old = 0;
        long all = 0;
        boolean generations = false;
        boolean gradual = false;
        for (MemoryPoolMXBean pool : pools) {
            MemoryUsage after = pool.getType() == MemoryType.HEAP ? pool.getCollectionUsage() : null;
            if (after == null) {
                continue;
            }
            String name = pool.getName().toLowerCase(Locale.ROOT);
            all += after.getUsed();
            if (name.contains("old") || name.contains("tenured")) {
                generations = true;
                gradual |= name.startsWith("g1");
                old += after.getUsed();
            }
        }
        if (gradual) {
            return smallest(old);
        }
        return generations ? old : all;
    }

    /** Returns the smallest of the last figures, this one included. */
    private long smallest(long figure) {
        if (figure > 0 && (seen == 0 || last[(seen - 1) % FIGURES] != figure)) {
            last[seen % FIGURES] = figure;
            seen++;
        }
        long smallest = figure;
        for (int i = 0; i < Math.min(seen, FIGURES); i++) {
            smallest = Math.min(smallest, last[i]);
        }
        return smallest;
    }
}
