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

/** The figures of the JVM. Without the modules java.management and jdk.management some are missing. */
public final class Jvm {
    /** The largest number of reported flags, beyond any command line written by hand. */
    private static final int MAX_FLAGS = 64;
    /** The longest reported flag, in characters. */
    private static final int MAX_FLAG_LENGTH = 256;

    /** The reported memory flags: those that the planner reads, and those that explain unexpected figures. */
    private static final String[] FLAG_PREFIXES = {"-Xmx", "-Xms", "-Xmn", "-Xss", "-Djdk.nio.maxCachedBufferSize="};

    private static final Set<String> OPTIONS = Set.of(("MaxHeapSize InitialHeapSize SoftMaxHeapSize MinHeapSize NewSize MaxNewSize NewRatio MaxRAM"
        + " MaxRAMPercentage MinRAMPercentage InitialRAMPercentage MaxDirectMemorySize MaxMetaspaceSize CompressedClassSpaceSize"
        + " ReservedCodeCacheSize ThreadStackSize CompilerThreadStackSize VMThreadStackSize ActiveProcessorCount UseSerialGC UseParallelGC"
        + " UseG1GC UseZGC UseShenandoahGC UseEpsilonGC ZGenerational UseContainerSupport UseCompressedOops UseCompactObjectHeaders"
        + " UseLargePages UseTransparentHugePages AlwaysPreTouch AOTMode UseStringDeduplication NativeMemoryTracking G1HeapRegionSize").split(" "));

    private static final LiveHeap LIVE = new LiveHeap();

    private Jvm() {}

    /** Returns the map {@code jvm} of the schema. Never throws. */
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
            addManaged(map);
        } catch (LinkageError e) {
            source.finding("NoManagement", "the JVM has no module java.management, so the report lacks most of its memory figures; "
                + "add the module to the runtime image, or set the missing values in the StreamApp");
        } catch (RuntimeException e) {
            return map; // the figures read so far
        }
        return map;
    }

    /** Adds the figures that require java.management. */
    private static void addManaged(Map<String, Object> map) {
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
     * Returns the largest heap, in bytes. Runtime.maxMemory omits a survivor space with the serial and the parallel collector; it is the fallback
     * without the module jdk.management and on other JVMs than HotSpot. Never throws.
     */
    public static long maxHeap() {
        try {
            HotSpotDiagnosticMXBean bean = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
            return Long.parseLong(bean.getVMOption("MaxHeapSize").getValue());
        } catch (LinkageError | RuntimeException e) {
            return Runtime.getRuntime().maxMemory();
        }
    }

    /** Returns the memory of the machine in bytes: MemTotal of proc_meminfo(5), or the largest heap if it is unreadable. Never throws. */
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

    /** Observes the heap, so that collections between two reports count. Never throws. */
    static void observe() {
        try {
            LIVE.observe(ManagementFactory.getMemoryPoolMXBeans());
        } catch (LinkageError | RuntimeException e) {
            return; // the report omits the figure
        }
    }

    /** Returns the committed memory of the pools with these name prefixes. "Metaspace" includes "Compressed Class Space". */
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

    /** Returns the arguments on the allow-list, in the order of the command line. */
    static List<String> flags(List<String> arguments) {
        List<String> flags = new ArrayList<>();
        for (String argument : arguments) {
            if (flags.size() < MAX_FLAGS && argument.length() <= MAX_FLAG_LENGTH && isReported(argument)) {
                flags.add(argument);
            }
        }
        return flags;
    }

    private static boolean isReported(String argument) {
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
