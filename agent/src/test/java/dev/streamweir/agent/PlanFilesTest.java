// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlanFilesTest {
    private static final String VALID = "rocksdb.cache.bytes=300\nrocksdb.write.buffer.manager.bytes=100\n";

    @TempDir
    Path folder;

    private final Findings findings = new Findings();

    private void write(String name, String text) throws IOException {
        Files.writeString(folder.resolve(name), text);
    }

    private String reasons() {
        StringBuilder all = new StringBuilder();
        findings.report().forEach(finding -> all.append(finding.get("reason")).append(' '));
        return all.toString().trim();
    }

    @Test
    void readsEveryValue() throws IOException {
        write("generation", "abc\n");
        write("plan.v1.properties", VALID + "limit.bytes=1000\nheap.bytes=400\nrocksdb.arena.block.bytes=16384\nrocksdb.write.buffer.bytes=5\n"
                + "rocksdb.replace.caches=true\nstreams.main.consumer.fetch.max.bytes=6\nstreams.statestore.cache.max.bytes=0\nkey.of.a.newer.operator=x\n");
        Plan plan = new PlanFiles(folder, findings).read();
        assertEquals("abc", plan.revision);
        assertEquals(1000, plan.limit);
        assertEquals(400, plan.heap);
        assertEquals(300, plan.cache);
        assertEquals(100, plan.writeBufferManager);
        assertEquals(16384, plan.arenaBlock);
        assertEquals(5, plan.writeBuffer);
        assertTrue(plan.replaceCaches);
        assertEquals(Map.of("main.consumer.fetch.max.bytes", "6", "statestore.cache.max.bytes", "0"), plan.settings);
        assertEquals("", reasons());
    }

    @Test
    void aPlanCannotSetOtherConfigs() throws IOException {
        write("plan.v1.properties", VALID + "streams.interceptor.classes=evil.Interceptor\nstreams.bootstrap.servers=elsewhere:9092\n");
        assertEquals(Map.of(), new PlanFiles(folder, findings).read().settings);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", "garbage", "rocksdb.cache.bytes=300\n", "rocksdb.cache.bytes=-1\nrocksdb.write.buffer.manager.bytes=1\n",
        "rocksdb.cache.bytes=99999999999999999999\nrocksdb.write.buffer.manager.bytes=1\n",
        "rocksdb.cache.bytes=9223372036854775807\nrocksdb.write.buffer.manager.bytes=1\n",
        VALID + "rocksdb.arena.block.bytes=many\n", VALID + "streams.buffer.memory=-5\n", "\\u00zz"
    })
    void anInvalidPlanIsAFindingAndTheLastValidOneStaysActive(String invalid) throws IOException {
        PlanFiles files = new PlanFiles(folder, findings);
        write("plan.v1.properties", invalid);
        assertNull(files.read());
        assertEquals("PlanUnreadable", reasons());
        write("plan.v1.properties", VALID);
        assertEquals(300, files.read().cache);
        write("plan.v1.properties", invalid);
        assertEquals(300, files.read().cache);
    }

    @Test
    void aPlanOfAnotherSchemaIsAFinding() throws IOException {
        write("plan.v2.properties", VALID);
        assertNull(new PlanFiles(folder, findings).read());
        assertEquals("NoPlan", reasons());
    }

    @Test
    void doesNotReadAFileOfUnlimitedLength() throws IOException {
        write("plan.v1.properties", VALID + "#".repeat(1 << 20));
        assertNull(new PlanFiles(folder, findings).read());
    }

    @Test
    void followsAnUpdateOfTheKubelet() throws IOException {
        Path first = version("..first", "1", VALID);
        Path second = version("..second", "2", VALID.replace("300", "600"));
        Files.createSymbolicLink(folder.resolve("..data"), first.getFileName());
        Files.createSymbolicLink(folder.resolve("plan.v1.properties"), Path.of("..data/plan.v1.properties"));
        PlanFiles files = new PlanFiles(folder, findings);
        assertEquals(300, files.read().cache);
        assertFalse(files.checkForChange());
        Files.createSymbolicLink(folder.resolve("..data_tmp"), second.getFileName());
        Files.move(folder.resolve("..data_tmp"), folder.resolve("..data"), StandardCopyOption.ATOMIC_MOVE);
        assertTrue(files.checkForChange());
        assertEquals("2", files.onDisk());
        assertEquals("1", files.current().revision);
        assertEquals(600, files.read().cache);
        assertEquals("2", files.current().revision);
    }

    private Path version(String name, String revision, String properties) throws IOException {
        Path content = Files.createDirectory(folder.resolve(name));
        Files.writeString(content.resolve("generation"), revision);
        Files.writeString(content.resolve("plan.v1.properties"), properties);
        return content;
    }
}
