// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.lang.reflect.Proxy;
import java.util.List;
import org.junit.jupiter.api.Test;

class LiveHeapTest {
    @Test
    void readsTheOldGenerationAfterItsCollection() {
        assertEquals(7, live(List.of(pool("Eden Space", 1), pool("Survivor Space", 2), pool("Tenured Gen", 7))));
        assertEquals(7, live(List.of(pool("PS Eden Space", 1), pool("PS Old Gen", 7))));
        assertEquals(7, live(List.of(pool("G1 Eden Space", 1), pool("G1 Survivor Space", 2), pool("G1 Old Gen", 7))));
        assertEquals(7, live(List.of(pool("ZGC Young Generation", 1), pool("ZGC Old Generation", 7))));
        assertEquals(7, live(List.of(pool("Shenandoah Young Gen", 1), pool("Shenandoah Old Gen", 7))));
        assertEquals(7, live(List.of(pool("nursery-allocate", 1), pool("tenured-SOA", 3), pool("tenured-LOA", 4))));
        assertEquals(7, live(List.of(pool("balanced-eden", 1), pool("balanced-old", 7))));
    }

    @Test
    void readsAHeapWithoutGenerations() {
        assertEquals(7, live(List.of(pool("ZHeap", 7))));
        assertEquals(7, live(List.of(pool("Shenandoah", 7))));
        assertEquals(0, live(List.of(pool("Epsilon Heap", -1))), "has no collections");
    }

    @Test
    void takesTheSmallestOfTheLastFiguresOfG1() {
        LiveHeap live = new LiveHeap();
        assertEquals(0, live.observe(List.of(pool("G1 Old Gen", 0))), "before the first collection");
        assertEquals(300, live.observe(List.of(pool("G1 Old Gen", 300))));
        assertEquals(90, live.observe(List.of(pool("G1 Old Gen", 90))));
        assertEquals(90, live.observe(List.of(pool("G1 Old Gen", 200))));
        for (int i = 0; i < 100; i++) {
            assertEquals(90, live.observe(List.of(pool("G1 Old Gen", 200))), "the same figure does not count as another collection");
        }
        for (int i = 0; i < 9; i++) {
            live.observe(List.of(pool("G1 Old Gen", 150 + i)));
        }
        assertEquals(150, live.observe(List.of(pool("G1 Old Gen", 170))), "the live heap has grown");
    }

    @Test
    void takesTheLastFigureOfOtherCollectors() {
        LiveHeap live = new LiveHeap();
        assertEquals(5, live.observe(List.of(pool("Tenured Gen", 5))));
        assertEquals(9, live.observe(List.of(pool("Tenured Gen", 9))));
    }

    private static long live(List<MemoryPoolMXBean> pools) {
        return new LiveHeap().observe(pools);
    }

    /** Returns a pool of the heap with its use after the last collection; -1: it has no collections. */
    private static MemoryPoolMXBean pool(String name, long after) {
        return (MemoryPoolMXBean) Proxy.newProxyInstance(LiveHeapTest.class.getClassLoader(), new Class<?>[] {MemoryPoolMXBean.class},
            (proxy, method, arguments) -> {
                switch (method.getName()) {
                    case "getName":
                        return name;
                    case "getType":
                        return MemoryType.HEAP;
                    case "getCollectionUsage":
                        return after < 0 ? null : new MemoryUsage(0, after, after, -1);
                    default:
                        throw new AssertionError(method);
                }
            });
    }
}
