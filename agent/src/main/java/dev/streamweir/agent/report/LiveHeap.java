// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.List;
import java.util.Locale;

/**
 * What the heap holds that is in use: what was left after collections of the old generation, or of all of a heap without generations. The
 * pools have the names of the JVMs: "Tenured Gen" (serial), "PS Old Gen", "G1 Old Gen", "ZGC Old Generation", "Shenandoah Old Gen", and
 * "tenured", "tenured-SOA", "tenured-LOA", "balanced-old" (OpenJ9). "ZHeap", "Shenandoah" and "JavaHeap" are the only pools of their heaps.
 * Young collections do not touch their figures.
 *
 * <p>G1 is different. It empties the old generation bit by bit: after each marking and each mixed collection much of what was marked as
 * garbage is still there, the more the larger the heap is. So of its last figures the least is taken. Measured with 89 MiB in use and
 * medium-lived garbage in 600 MiB: single figures of 133 to 301 MiB, the least of ten 133 (JDK 17); 92 to 239, and 92 (JDK 25).
 */
final class LiveHeap {
    /** A marking and the up to 8 mixed collections after it (G1MixedGCCountTarget), and one more. */
    private static final int KEPT = 10;

    private final long[] last = new long[KEPT];
    private int seen;

    /** Takes the figures of the pools as they are now, and gives the bytes in use; 0 before the first collection of that kind. */
    synchronized long observe(List<MemoryPoolMXBean> pools) {
        long old = 0;
        long all = 0;
        boolean generations = false;
        boolean bitByBit = false;
        for (MemoryPoolMXBean pool : pools) {
            MemoryUsage after = pool.getType() == MemoryType.HEAP ? pool.getCollectionUsage() : null;
            if (after == null) {
                continue;
            }
            String name = pool.getName().toLowerCase(Locale.ROOT);
            all += after.getUsed();
            if (name.contains("old") || name.contains("tenured")) {
                generations = true;
                bitByBit |= name.startsWith("g1");
                old += after.getUsed();
            }
        }
        return bitByBit ? least(old) : generations ? old : all;
    }

    /** The least of the last figures, this one included. */
    private long least(long figure) {
        if (figure > 0 && (seen == 0 || last[(seen - 1) % KEPT] != figure)) {
            last[seen++ % KEPT] = figure;
        }
        long least = figure;
        for (int i = 0; i < Math.min(seen, KEPT); i++) {
            least = Math.min(least, last[i]);
        }
        return least;
    }
}
