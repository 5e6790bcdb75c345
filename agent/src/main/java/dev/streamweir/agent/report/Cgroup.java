// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The memory cgroup of this process at the time of reading. All amounts are bytes; an unreadable one is 0. Sources: the kernel's
 * Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst, proc_pid_mountinfo(5), cgroups(7).
 */
public final class Cgroup {
    /**
     * The smallest amount that means "no limit". Version 1 uses LONG_MAX rounded down to whole pages: 9223372036854771712 with pages of 4 KiB,
     * and less with larger pages.
     */
    private static final long UNLIMITED = 1L << 62;

    private final int version;
    private long limit;
    private long high;
    private long usage;
    private long anon;
    private long file;
    private long kernel;
    private long peak;
    private long oomKills;

    private Cgroup(int version) {
        this.version = version;
    }

    /** Reads the cgroup of this process. Never throws. */
    public static Cgroup read() {
        return read(Path.of("/"));
    }

    /** Reads the cgroup below a root of the file system. Never throws. */
    public static Cgroup read(Path root) {
        try {
            String memory = null;
            String unified = null;
            for (String line : lines(root.resolve("proc/self/cgroup"))) {
                String[] parts = line.split(":", 3); // hierarchy:controllers:path
                if (parts.length == 3 && has(parts[1], "memory")) {
                    memory = parts[2];
                } else if (parts.length == 3 && parts[0].equals("0") && parts[1].isEmpty()) {
                    unified = parts[2];
                }
            }
            // The memory controller is in one hierarchy only: with one of version 1, the unified hierarchy has no memory files.
            List<Path> found = memory == null ? List.of() : find(root, memory, 1);
            int version = found.isEmpty() ? 2 : 1;
            if (found.isEmpty() && unified != null) {
                found = find(root, unified, 2);
            }
            return found.isEmpty() ? new Cgroup(0) : new Cgroup(version).fill(found);
        } catch (IOException | RuntimeException e) {
            return new Cgroup(0);
        }
    }

    /** Returns 1 or 2; 0 without a memory cgroup. */
    public int version() {
        return version;
    }

    /** Returns the smallest limit of the cgroup and its visible ancestors; 0 without a limit. */
    public long limit() {
        return limit;
    }

    /** Returns the memory that counts against the limit, page cache included. */
    public long usage() {
        return usage;
    }

    /** Returns the part of the usage without a file behind it. */
    public long anon() {
        return anon;
    }

    /** Returns the part of the usage with a file behind it, files in memory included. */
    public long file() {
        return file;
    }

    /** Returns the kernel's part of the usage. */
    public long kernel() {
        return kernel;
    }

    /** Returns the largest usage so far. */
    public long peak() {
        return peak;
    }

    /** Returns the number of processes that the kernel has OOM-killed. */
    public long oomKills() {
        return oomKills;
    }

    /** Returns the map {@code cgroup} of the schema. */
    Map<String, Object> toMap() {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("version", version);
        map.put("limit", limit);
        map.put("high", high);
        map.put("usage", usage);
        map.put("anon", anon);
        map.put("file", file);
        map.put("kernel", kernel);
        map.put("peak", peak);
        map.put("oomKills", oomKills);
        return map;
    }

    /** Returns the folders of the cgroup and its ancestors, its own first; empty if there are none. */
    private static List<Path> find(Path root, String path, int version) throws IOException {
        for (String line : lines(root.resolve("proc/self/mountinfo"))) {
            int dash = line.indexOf(" - ");
            String[] mount = line.split(" ");
            String[] type = dash < 0 ? mount : line.substring(dash + 3).split(" ");
            if (dash < 0 || mount.length < 5 || type.length < 3) {
                continue;
            }
            boolean matches = version == 2 ? type[0].equals("cgroup2") : type[0].equals("cgroup") && has(type[2], "memory");
            if (!matches) {
                continue;
            }
            Path top = root.resolve(unescape(mount[4]).substring(1));
            List<Path> found = climb(top, own(top, unescape(mount[3]), path, version));
            if (!found.isEmpty()) {
                return found;
            }
        }
        return List.of();
    }

    /**
     * Returns the folder of the cgroup below the mount point {@code top}, where the cgroup {@code mounted} is mounted. A container without a cgroup
     * namespace sees the host's path of its cgroup, but has its own cgroup (or an ancestor) at the mount point; in a namespace the path can begin
     * with "/..". Therefore leading elements are removed until the rest exists.
     */
    private static Path own(Path top, String mounted, String path, int version) {
        String rest = path;
        if (mounted.length() > 1 && (path + "/").startsWith(mounted + "/")) {
            rest = path.substring(mounted.length());
        }
        while (!rest.isEmpty() && !rest.equals("/")) {
            Path folder = top.resolve(rest.substring(1)).normalize();
            if (folder.startsWith(top) && Files.exists(folder.resolve(usageFile(version)))) {
                return folder;
            }
            int next = rest.indexOf('/', 1);
            rest = next < 0 ? "" : rest.substring(next);
        }
        return top;
    }

    private static String usageFile(int version) {
        return version == 1 ? "memory.usage_in_bytes" : "memory.current";
    }

    /** Returns the folders with accounting from {@code own} up to {@code top}. The root of version 2 has no files of its own. */
    private static List<Path> climb(Path top, Path own) {
        List<Path> folders = new ArrayList<>();
        for (Path folder = own; folder != null && folder.startsWith(top); folder = folder.getParent()) {
            if (Files.exists(folder.resolve("memory.stat"))) {
                folders.add(folder);
            }
        }
        return folders;
    }

    private Cgroup fill(List<Path> folders) {
        Path own = folders.get(0);
        Map<String, Long> stat = keyed(own.resolve("memory.stat"));
        if (version == 1) {
            // hierarchical_memory_limit includes the ancestors that are not visible here.
            limit = lower(limit, stat.getOrDefault("hierarchical_memory_limit", 0L));
            anon = stat.getOrDefault("total_rss", 0L);
            file = stat.getOrDefault("total_cache", 0L);
            kernel = amount(own.resolve("memory.kmem.usage_in_bytes"));
            peak = amount(own.resolve("memory.max_usage_in_bytes"));
            oomKills = keyed(own.resolve("memory.oom_control")).getOrDefault("oom_kill", 0L);
        } else {
            anon = stat.getOrDefault("anon", 0L);
            file = stat.getOrDefault("file", 0L);
            kernel = stat.containsKey("kernel") ? stat.get("kernel") : sumOfParts(stat);
            peak = amount(own.resolve("memory.peak"));
            oomKills = keyed(own.resolve("memory.events")).getOrDefault("oom_kill", 0L);
        }
        usage = amount(own.resolve(usageFile(version)));
        for (Path folder : folders) {
            limit = lower(limit, amount(folder.resolve(version == 1 ? "memory.limit_in_bytes" : "memory.max")));
            high = lower(high, version == 1 ? 0 : amount(folder.resolve("memory.high")));
        }
        return this;
    }

    /** Returns the kernel's memory on Linux before 5.18, which does not report the sum. */
    private static long sumOfParts(Map<String, Long> stat) {
        long sum = 0;
        for (String name : new String[] {"kernel_stack", "pagetables", "percpu", "vmalloc", "slab"}) {
            sum += stat.getOrDefault(name, 0L);
        }
        return sum;
    }

    /** Returns the lower of two limits; 0 is none. */
    private static long lower(long limit, long candidate) {
        boolean isLimit = candidate > 0 && candidate < UNLIMITED;
        return isLimit && (limit == 0 || candidate < limit) ? candidate : limit;
    }

    /** Returns the number in a file; 0 for "max" and without a number. */
    private static long amount(Path file) {
        try {
            return number(Files.readString(file, StandardCharsets.ISO_8859_1).trim());
        } catch (IOException | RuntimeException e) {
            return 0;
        }
    }

    /** Returns the numbers of a file with a name and a number on each line. */
    private static Map<String, Long> keyed(Path file) {
        Map<String, Long> numbers = new LinkedHashMap<>();
        try {
            for (String line : lines(file)) {
                int space = line.indexOf(' ');
                if (space > 0) {
                    numbers.put(line.substring(0, space), number(line.substring(space + 1).trim()));
                }
            }
        } catch (IOException | RuntimeException e) {
            return numbers; // those read so far
        }
        return numbers;
    }

    private static long number(String text) {
        try {
            return Math.max(0, Long.parseLong(text));
        } catch (NumberFormatException e) {
            return 0; // "max", or a number beyond the range of a long, which is no limit either
        }
    }

    private static List<String> lines(Path file) throws IOException {
        return Files.readAllLines(file, StandardCharsets.ISO_8859_1);
    }

    private static boolean has(String list, String word) {
        return ("," + list + ",").contains("," + word + ",");
    }

    /** Replaces the escapes of mountinfo: \040, \011, \012 and \134 for space, tab, newline and backslash. */
    private static String unescape(String text) {
        return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
    }
}
