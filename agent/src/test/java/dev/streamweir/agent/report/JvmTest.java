// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JvmTest {
    @Test
    void thisJvm() {
        System.gc();
        FakeSource source = new FakeSource();
        Map<String, Object> jvm = Jvm.read(source);
        assertEquals(Runtime.version().feature(), jvm.get("version"));
        assertTrue((long) jvm.get("heapMax") >= Runtime.getRuntime().maxMemory(), "the survivor space counts");
        for (String name : List.of("heapUsed", "heapLive", "metaspace", "codeCache")) {
            assertTrue((long) jvm.get(name) > 0, name);
        }
        assertTrue((long) jvm.get("heapLive") < (long) jvm.get("heapMax"));
        assertTrue((int) jvm.get("threads") > 0);
        assertFalse(((List<?>) jvm.get("collectors")).isEmpty());
        assertEquals(List.of(), source.findings());
        assertTrue(Jvm.machineMemory() >= Jvm.maxHeap());
    }

    @Test
    void liveIsWhatTheOldGenerationHeldAfterItsCollection() {
        assertEquals(7, Jvm.live(List.of(pool("Eden Space", 1), pool("Survivor Space", 2), pool("Tenured Gen", 7))));
        assertEquals(7, Jvm.live(List.of(pool("PS Eden Space", 1), pool("PS Old Gen", 7))));
        assertEquals(7, Jvm.live(List.of(pool("G1 Eden Space", 1), pool("G1 Survivor Space", 2), pool("G1 Old Gen", 7))));
        assertEquals(7, Jvm.live(List.of(pool("ZGC Young Generation", 1), pool("ZGC Old Generation", 7))));
        assertEquals(7, Jvm.live(List.of(pool("Shenandoah Young Gen", 1), pool("Shenandoah Old Gen", 7))));
        assertEquals(7, Jvm.live(List.of(pool("nursery-allocate", 1), pool("tenured-SOA", 3), pool("tenured-LOA", 4))));
        assertEquals(7, Jvm.live(List.of(pool("balanced-eden", 1), pool("balanced-old", 7))));
    }

    @Test
    void aHeapWithoutGenerationsCountsAsAWhole() {
        assertEquals(7, Jvm.live(List.of(pool("ZHeap", 7))));
        assertEquals(7, Jvm.live(List.of(pool("Shenandoah", 7))));
        assertEquals(0, Jvm.live(List.of(pool("Epsilon Heap", -1))), "it has no collections");
    }

    @Test
    void flagsAreThoseOfAnAllowList() {
        List<String> given = Arrays.asList("-Xmx512m", "-Xss1m", "-XX:+UseG1GC", "-XX:-UseZGC", "-XX:MaxRAMPercentage=33.0", "-Dpassword=x",
            "-XX:OnOutOfMemoryError=curl secret", "-XX:", "-XX:+", "-XX:=", "-XX:+=secret", "-XX:MaxRAM UseZGC=secret", "-javaagent:/a.jar=token", "-Djdk.nio.maxCachedBufferSize=1", "-XX:MaxRAM=800m",
            "-XX:MaxRAMPercentage", "-Xlog:gc");
        assertEquals(List.of("-Xmx512m", "-Xss1m", "-XX:+UseG1GC", "-XX:-UseZGC", "-XX:MaxRAMPercentage=33.0",
            "-Djdk.nio.maxCachedBufferSize=1", "-XX:MaxRAM=800m", "-XX:MaxRAMPercentage"), Jvm.flags(given));
    }

    @Test
    void flagsAreBounded() {
        String[] many = new String[1000];
        Arrays.fill(many, "-Xmx1g");
        assertEquals(64, Jvm.flags(Arrays.asList(many)).size());
        assertEquals(List.of(), Jvm.flags(List.of("-Xmx" + "1".repeat(300))));
    }

    /** A pool of the heap that held so much after its last collection; -1: it has none. */
    private static MemoryPoolMXBean pool(String name, long after) {
        return (MemoryPoolMXBean) Proxy.newProxyInstance(JvmTest.class.getClassLoader(), new Class<?>[] {MemoryPoolMXBean.class},
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
