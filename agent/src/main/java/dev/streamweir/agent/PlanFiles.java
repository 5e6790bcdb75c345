// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;

/** The mounted plan: read at the start, again when a store opens, and the last good one kept whatever is there then. */
final class PlanFiles {
    private static final String PROPERTIES = "plan.v1.properties";
    private static final String GENERATION = "generation";
    /** A plan has a few dozen lines. */
    private static final int LARGEST = 64 * 1024;

    private final Path folder;
    private final Findings findings;
    private byte[] seen = {};
    private String onDisk = "";
    private Plan plan;

    PlanFiles(Path folder, Findings findings) {
        this.folder = folder;
        this.findings = findings;
    }

    /** The plan in force: the newest that could be read; null if there never was one. */
    synchronized Plan current() {
        return plan;
    }

    /** The generation on disk at the last look; empty where there is none. */
    synchronized String onDisk() {
        return onDisk;
    }

    /** Looks which generation is on disk, without reading the plan. Tells whether it has changed since the last look. */
    synchronized boolean look() {
        String before = onDisk;
        try {
            onDisk = generation(content());
        } catch (IOException | RuntimeException gone) {
            onDisk = "";
        }
        return !onDisk.equals(before);
    }

    /** Reads the plan if it has changed. A plan that cannot be read is told, and the last good one stays. */
    synchronized Plan read() {
        try {
            Path content = content();
            byte[] bytes = limited(content.resolve(PROPERTIES));
            onDisk = generation(content);
            if (plan == null || !onDisk.equals(plan.generation) || !Arrays.equals(bytes, seen)) {
                Properties properties = new Properties();
                properties.load(new StringReader(new String(bytes, StandardCharsets.UTF_8)));
                plan = Plan.of(properties, onDisk);
                seen = bytes;
            }
        } catch (NoSuchFileException missing) {
            findings.add("NoPlan", "there is no " + PROPERTIES + " in " + folder + ": " + inForce());
        } catch (IOException | RuntimeException bad) {
            findings.add("PlanUnreadable", PROPERTIES + " in " + folder + " is not as the operator writes it: " + bad.getMessage() + "; " + inForce());
        }
        return plan;
    }

    private String inForce() {
        return plan == null ? "bounds from the memory limit and the heap are in force" : "the last plan stays in force";
    }

    /** The folder behind ..data, which the kubelet swaps as a whole: so all files are of one version. */
    private Path content() throws IOException {
        Path data = folder.resolve("..data");
        return Files.exists(data) ? data.toRealPath() : folder;
    }

    private static String generation(Path content) throws IOException {
        Path file = content.resolve(GENERATION);
        return Files.exists(file) ? new String(limited(file), StandardCharsets.UTF_8).trim() : "";
    }

    private static byte[] limited(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] bytes = in.readNBytes(LARGEST + 1);
            if (bytes.length > LARGEST) {
                throw new IOException(file + " is larger than " + LARGEST + " bytes");
            }
            return bytes;
        }
    }
}
