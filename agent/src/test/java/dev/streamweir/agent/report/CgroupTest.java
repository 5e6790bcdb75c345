// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Version 1 is a recording of Linux 5.10 with shortened paths; version 2 has the formats of the kernel's cgroup-v2.rst. */
class CgroupTest {
    private static final long MIB = 1 << 20;

    private static final String ROOT_MOUNT = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n";
    private static final String V1_PROC = "9:name=systemd:/\n4:memory:%s\n3:cpu,cpuacct:/other\n0::/\n";
    private static final String V1_MOUNT = ROOT_MOUNT
        + "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
        + "35 31 0:32 %s /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    private static final String V1_STAT = "cache 1\nrss 2\ntotal_cache 54038528\ntotal_rss 2035712\nhierarchical_memory_limit %s\n";
    private static final String V1_OOM = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
    private static final String V1_NONE = "9223372036854771712";

    private static final String V2_MOUNT = ROOT_MOUNT + "30 23 0:26 %s /sys/fs/cgroup ro,nosuid shared:4 master:9 - cgroup2 cgroup rw,nsdelegate\n";
    private static final String V2_STAT = "anon 400000\nfile 300000\nkernel 70000\nkernel_stack 1\nslab 2\nfile_mapped 5\n";
    private static final String V2_EVENTS = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n";

    @TempDir Path root;

    @Test
    void version2InItsOwnNamespace() throws IOException {
        proc("0::/\n", String.format(V2_MOUNT, "/"));
        v2("", "796917760");
        Cgroup c = Cgroup.read(root);
        assertEquals(Map.of("version", 2, "limit", 760 * MIB, "high", 0L, "usage", 800000L, "anon", 400000L, "file", 300000L,
            "kernel", 70000L, "peak", 900000L, "oomKills", 1L), c.toMap());
    }

    @Test
    void version2HasTheSmallestLimitOfItsAncestors() throws IOException {
        proc("0::/kubepods.slice/pod1.slice/cri-1.scope\n", String.format(V2_MOUNT, "/"));
        write("sys/fs/cgroup/memory.stat", V2_STAT); // the root has neither limit nor usage
        v2("/kubepods.slice", "max");
        v2("/kubepods.slice/pod1.slice", "1073741824");
        v2("/kubepods.slice/pod1.slice/cri-1.scope", "2147483648");
        assertEquals(1024 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version2HasTheSmallestThrottleOfItsAncestors() throws IOException {
        proc("0::/kubepods.slice/pod1.slice\n", String.format(V2_MOUNT, "/"));
        v2("/kubepods.slice", "max");
        v2("/kubepods.slice/pod1.slice", "1073741824");
        write("sys/fs/cgroup/kubepods.slice/memory.high", "max\n");
        assertEquals(0L, Cgroup.read(root).toMap().get("high"));
        write("sys/fs/cgroup/kubepods.slice/pod1.slice/memory.high", "858992640\n");
        assertEquals(858992640L, Cgroup.read(root).toMap().get("high"));
        assertEquals(1024 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version2BindMountedWithoutANamespace() throws IOException {
        proc("0::/kubepods/pod1/c1\n", String.format(V2_MOUNT, "/kubepods/pod1/c1"));
        v2("", "536870912");
        assertEquals(512 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version2BelowTheMountedCgroup() throws IOException {
        proc("0::/kubepods/pod1/c1/worker\n", String.format(V2_MOUNT, "/kubepods/pod1/c1"));
        v2("", "536870912");
        v2("/worker", "max");
        assertEquals(512 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version2OutsideTheNamespace() throws IOException {
        proc("0::/../../system.slice/x.service\n", String.format(V2_MOUNT, "/"));
        v2("", "536870912");
        assertEquals(512 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version2WithAHostPathThatIsNotMounted() throws IOException {
        proc("0::/docker/0123/inner\n", String.format(V2_MOUNT, "/"));
        v2("/inner", "536870912");
        assertEquals(512 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version2WithoutALimitOnAnOldKernel() throws IOException {
        proc("0::/a\n", String.format(V2_MOUNT, "/"));
        v2("/a", "max");
        write("sys/fs/cgroup/a/memory.stat", "anon 5\nfile 6\nkernel_stack 10\npagetables 20\npercpu 30\nslab 40\nsock 1000\n");
        Files.delete(root.resolve("sys/fs/cgroup/a/memory.peak"));
        Cgroup c = Cgroup.read(root);
        assertEquals(0, c.limit());
        assertEquals(100, c.kernel());
        assertEquals(0, c.peak());
        assertEquals(2, c.version());
    }

    @Test
    void version1OfAHost() throws IOException {
        proc(String.format(V1_PROC, "/process/1"), String.format(V1_MOUNT, "/"));
        v1("", V1_NONE, V1_NONE);
        v1("/process", "1073741824", "1073741824");
        v1("/process/1", V1_NONE, "1073741824");
        assertEquals(Map.of("version", 1, "limit", 1024 * MIB, "high", 0L, "usage", 57925632L, "anon", 2035712L, "file", 54038528L,
            "kernel", 1380352L, "peak", 132956160L, "oomKills", 3L), Cgroup.read(root).toMap());
    }

    @Test
    void version1BindMounted() throws IOException {
        proc(String.format(V1_PROC, "/kubepods/pod1/c1"), String.format(V1_MOUNT, "/kubepods/pod1/c1"));
        v1("", "2147483648", "2147483648");
        assertEquals(2048 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version1WithALimitOfAnInvisibleAncestor() throws IOException {
        proc(String.format(V1_PROC, "/"), String.format(V1_MOUNT, "/kubepods/pod1/c1"));
        v1("", "2147483648", "1073741824");
        assertEquals(1024 * MIB, Cgroup.read(root).limit());
    }

    @Test
    void version1WithoutALimit() throws IOException {
        proc(String.format(V1_PROC, "/"), String.format(V1_MOUNT, "/"));
        v1("", "9223372036854710272", "18446744073709551615"); // pages of 64 KiB; beyond the range of a long
        assertEquals(0, Cgroup.read(root).limit());
        assertEquals(1, Cgroup.read(root).version());
    }

    @Test
    void readsAMountPointWithSpaces() throws IOException {
        proc("0::/\n", ROOT_MOUNT + "30 23 0:26 / /sys/c\\040group rw - cgroup2 cgroup rw\n");
        write("sys/c group/memory.stat", V2_STAT);
        write("sys/c group/memory.current", "800000\n");
        write("sys/c group/memory.max", "1048576\n");
        assertEquals(MIB, Cgroup.read(root).limit());
    }

    @Test
    void isEmptyWithoutFiles() throws IOException {
        assertEquals(0, Cgroup.read(root).version());
        proc("0::/a\n", ROOT_MOUNT);
        assertEquals(0, Cgroup.read(root).version());
    }

    @Test
    void ignoresInvalidFiles() throws IOException {
        proc("::::\n\n0\nmemory\n5:memory\n0::\n", "garbage\n - \n1 2 3\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n30 23 0:26 / x rw - cgroup2 c rw\n");
        assertEquals(0, Cgroup.read(root).limit());
        proc("0::/\n", String.format(V2_MOUNT, "/"));
        v2("", "many");
        write("sys/fs/cgroup/memory.stat", "anon\n\nfile x\nkernel -5\n");
        Cgroup c = Cgroup.read(root);
        assertEquals(0, c.limit() + c.anon() + c.file() + c.kernel());
        assertEquals(800000, c.usage());
    }

    private void proc(String cgroup, String mountinfo) throws IOException {
        write("proc/self/cgroup", cgroup);
        write("proc/self/mountinfo", mountinfo);
    }

    private void v1(String cgroup, String limit, String hierarchical) throws IOException {
        String folder = "sys/fs/cgroup/memory" + cgroup + "/memory.";
        write(folder + "stat", String.format(V1_STAT, hierarchical));
        write(folder + "limit_in_bytes", limit + "\n");
        write(folder + "usage_in_bytes", "57925632\n");
        write(folder + "max_usage_in_bytes", "132956160\n");
        write(folder + "kmem.usage_in_bytes", "1380352\n");
        write(folder + "oom_control", V1_OOM);
    }

    private void v2(String cgroup, String max) throws IOException {
        String folder = "sys/fs/cgroup" + cgroup + "/memory.";
        write(folder + "stat", V2_STAT);
        write(folder + "max", max + "\n");
        write(folder + "current", "800000\n");
        write(folder + "peak", "900000\n");
        write(folder + "events", V2_EVENTS);
    }

    private void write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }
}
