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
    private static final long MIB = 1L << 20;
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

    /** The files are those of a ConfigMap that the operator writes. */
    @Test
    void readsEveryValueOfTheSharedFixture() throws IOException {
        PlanFiles files = new PlanFiles(Fixture.path("plan"), findings);
        Plan plan = files.read();
        assertEquals(Files.readString(Fixture.path("plan/revision")), plan.revision);
        assertEquals(plan.revision, files.onDisk());
        assertEquals(1024 * MIB, plan.limit);
        assertEquals(384 * MIB, plan.heap);
        assertEquals(128 * MIB, plan.cache);
        assertEquals(51 * MIB, plan.writeBufferManager);
        assertEquals(65536, plan.arenaBlock);
        assertEquals(12 * MIB, plan.writeBuffer);
        assertTrue(plan.replaceCaches);
        assertEquals(Map.of("restore.consumer.fetch.max.bytes", "4194304", "main.consumer.max.poll.records", "200", "buffer.memory", "8388608",
                "statestore.cache.max.bytes", "0"), plan.settings);
        assertEquals("", reasons());
    }

    @Test
    void ignoresUnknownKeysAndWhitespace() throws IOException {
        write("revision", "abc\n");
        write("plan.v1.properties", VALID + "key.of.a.newer.operator=x\nlimit.bytes = 1000 \n");
        Plan plan = new PlanFiles(folder, findings).read();
        assertEquals("abc", plan.revision);
        assertEquals(1000, plan.limit);
        assertFalse(plan.replaceCaches);
        assertEquals(Map.of(), plan.settings);
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
        Files.writeString(content.resolve("revision"), revision);
        Files.writeString(content.resolve("plan.v1.properties"), properties);
        return content;
    }
}
