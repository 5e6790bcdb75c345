// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JvmTest {
    @Test
    void readsThisJvm() {
        System.gc();
        FakeSource source = new FakeSource();
        Map<String, Object> jvm = Jvm.read(source);
        assertEquals(Runtime.version().feature(), jvm.get("version"));
        assertTrue((long) jvm.get("heapMax") >= Runtime.getRuntime().maxMemory(), "includes the survivor space");
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
    void reportsOnlyFlagsOnTheAllowList() {
        List<String> arguments = Arrays.asList("-Xmx512m", "-Xss1m", "-XX:+UseG1GC", "-XX:-UseZGC", "-XX:MaxRAMPercentage=33.0", "-Dpassword=x",
            "-XX:OnOutOfMemoryError=curl secret", "-XX:", "-XX:+", "-XX:=", "-XX:+=secret", "-XX:MaxRAM UseZGC=secret", "-javaagent:/a.jar=token", "-Djdk.nio.maxCachedBufferSize=1", "-XX:MaxRAM=800m",
            "-XX:MaxRAMPercentage", "-Xlog:gc");
        assertEquals(List.of("-Xmx512m", "-Xss1m", "-XX:+UseG1GC", "-XX:-UseZGC", "-XX:MaxRAMPercentage=33.0",
            "-Djdk.nio.maxCachedBufferSize=1", "-XX:MaxRAM=800m", "-XX:MaxRAMPercentage"), Jvm.flags(arguments));
    }

    @Test
    void limitsFlags() {
        String[] many = new String[1000];
        Arrays.fill(many, "-Xmx1g");
        assertEquals(64, Jvm.flags(Arrays.asList(many)).size());
        assertEquals(List.of(), Jvm.flags(List.of("-Xmx" + "1".repeat(300))));
    }
}
