// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** The virtual machine's own figures. Works without the modules java.management and jdk.management, and then tells less. */
public final class Jvm {
    /** More flags, or longer ones, than anybody writes by hand. */
    private static final int FLAGS = 64;

    private static final int FLAG_LENGTH = 256;

    /** The memory flags that are told: what the planner reads, and what explains a figure that it does not expect. */
    private static final String[] FLAG_PREFIXES = {"-Xmx", "-Xms", "-Xmn", "-Xss", "-Djdk.nio.maxCachedBufferSize="};

    private static final Set<String> OPTIONS = Set.of(("MaxHeapSize InitialHeapSize SoftMaxHeapSize MinHeapSize NewSize MaxNewSize NewRatio MaxRAM"
        + " MaxRAMPercentage MinRAMPercentage InitialRAMPercentage MaxDirectMemorySize MaxMetaspaceSize CompressedClassSpaceSize"
        + " ReservedCodeCacheSize ThreadStackSize CompilerThreadStackSize VMThreadStackSize ActiveProcessorCount UseSerialGC UseParallelGC"
        + " UseG1GC UseZGC UseShenandoahGC UseEpsilonGC ZGenerational UseContainerSupport UseCompressedOops UseCompactObjectHeaders"
        + " UseLargePages UseTransparentHugePages AlwaysPreTouch UseStringDeduplication NativeMemoryTracking G1HeapRegionSize").split(" "));

    private static final LiveHeap LIVE = new LiveHeap();

    private Jvm() {}

    /** ReportedJVM of the schema. Never throws. */
    static Map<String, Object> read(Source source) {
        Map<String, Object> map = new LinkedHashMap<>();
        Runtime runtime = Runtime.getRuntime();
        map.put("version", Runtime.version().feature());
        map.put("vendor", System.getProperty("java.vm.vendor", ""));
        map.put("name", System.getProperty("java.vm.name", ""));
        map.put("collectors", List.of());
        map.put("heapMax", runtime.maxMemory());
        map.put("heapUsed", runtime.totalMemory() - runtime.freeMemory());
        map.put("flags", List.of());
        try {
            manage(map);
        } catch (LinkageError e) {
            source.finding("NoManagement", "The JVM has no module java.management, so the report says little of its memory; "
                + "add the module to the runtime image, or set what is not measured in the StreamApp.");
        } catch (RuntimeException e) {
            return map; // what was read so far
        }
        return map;
    }

    /** What takes java.management. */
    private static void manage(Map<String, Object> map) {
        List<String> collectors = new ArrayList<>();
        for (GarbageCollectorMXBean gc : ManagementFactory.getGarbageCollectorMXBeans()) {
            collectors.add(gc.getName());
        }
        map.put("collectors", collectors);
        map.put("heapMax", maxHeap());
        List<MemoryPoolMXBean> pools = ManagementFactory.getMemoryPoolMXBeans();
        map.put("heapLive", LIVE.observe(pools));
        map.put("metaspace", committed(pools, "metaspace", "class storage"));
        map.put("codeCache", committed(pools, "codeheap", "codecache", "code cache", "jit code cache"));
        long direct = 0;
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals("direct")) {
                direct = pool.getMemoryUsed();
            }
        }
        map.put("direct", direct);
        map.put("threads", ManagementFactory.getThreadMXBean().getThreadCount());
        map.put("threadsPeak", ManagementFactory.getThreadMXBean().getPeakThreadCount());
        map.put("flags", flags(ManagementFactory.getRuntimeMXBean().getInputArguments()));
    }

    /**
     * The heap that the JVM may use, in bytes. Runtime.maxMemory leaves a survivor space out with the serial and the parallel collector; it
     * has to do where the module jdk.management is missing, or the JVM is not HotSpot. Never throws.
     */
    public static long maxHeap() {
        try {
            HotSpotDiagnosticMXBean bean = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
            return Long.parseLong(bean.getVMOption("MaxHeapSize").getValue());
        } catch (LinkageError | RuntimeException e) {
            return Runtime.getRuntime().maxMemory();
        }
    }

    /** The memory of the machine in bytes: MemTotal of proc_meminfo(5). The heap where it cannot be read. Never throws. */
    public static long machineMemory() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/meminfo"), StandardCharsets.ISO_8859_1)) {
                if (line.startsWith("MemTotal:")) {
                    return Long.parseLong(line.substring(line.indexOf(':') + 1, line.lastIndexOf(' ')).trim()) * 1024; // given in KiB
                }
            }
        } catch (IOException | RuntimeException e) {
            return maxHeap();
        }
        return maxHeap();
    }

    /** Takes a look at the heap, so that the figures of collections between two reports are seen. Never throws. */
    static void observe() {
        try {
            LIVE.observe(ManagementFactory.getMemoryPoolMXBeans());
        } catch (LinkageError | RuntimeException e) {
            return; // the report says that there is nothing
        }
    }

    /** What is committed of the pools whose names begin so. "Compressed Class Space" is a part of "Metaspace", and is not counted twice. */
    private static long committed(List<MemoryPoolMXBean> pools, String... names) {
        long sum = 0;
        for (MemoryPoolMXBean pool : pools) {
            for (String name : names) {
                MemoryUsage usage = pool.getType() == MemoryType.NON_HEAP ? pool.getUsage() : null;
                if (usage != null && pool.getName().toLowerCase(Locale.ROOT).startsWith(name)) {
                    sum += usage.getCommitted();
                }
            }
        }
        return sum;
    }

    /** Those of an allow-list, in the order in which the JVM reads them. */
    static List<String> flags(List<String> arguments) {
        List<String> flags = new ArrayList<>();
        for (String argument : arguments) {
            if (flags.size() < FLAGS && argument.length() <= FLAG_LENGTH && told(argument)) {
                flags.add(argument);
            }
        }
        return flags;
    }

    private static boolean told(String argument) {
        if (argument.startsWith("-XX:")) {
            int from = argument.startsWith("+", 4) || argument.startsWith("-", 4) ? 5 : 4;
            int to = argument.indexOf('=');
            return OPTIONS.contains(argument.substring(from, to < 0 ? argument.length() : Math.max(from, to)));
        }
        for (String prefix : FLAG_PREFIXES) {
            if (argument.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }
}
