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

/** The mounted plan. The agent reads it at the start and at each store that opens, and keeps the last valid one. */
final class PlanFiles {
    private static final String PROPERTIES = "plan.v1.properties";
    private static final String REVISION = "revision";
    private static final String TOKEN = "token";
    /** In bytes. A plan has a few dozen lines. */
    private static final int LARGEST = 64 * 1024;

    private final Path folder;
    private final Findings findings;
    /** The content from which {@link #plan} was parsed. */
    private byte[] parsed = {};
    private String onDisk = "";
    private Plan plan;

    PlanFiles(Path folder, Findings findings) {
        this.folder = folder;
        this.findings = findings;
    }

    /** Returns the active plan: the last valid one that was read; null if there was none. */
    synchronized Plan current() {
        return plan;
    }

    /** Returns the revision on disk at the last check; empty without a plan. */
    synchronized String onDisk() {
        return onDisk;
    }

    /** Returns the token on disk; empty without one. */
    String token() {
        try {
            return text(content().resolve(TOKEN));
        } catch (IOException | RuntimeException unreadable) {
            return "";
        }
    }

    /** Checks the revision on disk without reading the plan, and reports whether it has changed since the last check. */
    synchronized boolean checkForChange() {
        String before = onDisk;
        try {
            onDisk = revision(content());
        } catch (IOException | RuntimeException unreadable) {
            onDisk = "";
        }
        return !onDisk.equals(before);
    }

    /** Reads the plan if it has changed, and returns the active one. An invalid plan becomes a finding, and the last valid one stays active. */
    synchronized Plan read() {
        try {
            Path content = content();
            byte[] bytes = readLimited(content.resolve(PROPERTIES));
            onDisk = revision(content);
            if (plan == null || !onDisk.equals(plan.revision) || !Arrays.equals(bytes, parsed)) {
                Properties properties = new Properties();
                properties.load(new StringReader(new String(bytes, StandardCharsets.UTF_8)));
                plan = Plan.of(properties, onDisk);
                parsed = bytes;
            }
        } catch (NoSuchFileException missing) {
            findings.add("NoPlan", PROPERTIES + " is missing in " + folder + "; " + consequence());
        } catch (IOException | RuntimeException invalid) {
            findings.add("PlanUnreadable", "invalid " + PROPERTIES + " in " + folder + ": " + invalid.getMessage() + "; " + consequence());
        }
        return plan;
    }

    private String consequence() {
        return plan == null ? "the bounds are derived from the memory limit and the heap" : "the last valid plan stays active";
    }

    /** Returns the target of ..data, which the kubelet replaces as a whole, so that all files are of one revision. */
    private Path content() throws IOException {
        Path data = folder.resolve("..data");
        return Files.exists(data) ? data.toRealPath() : folder;
    }

    private static String revision(Path content) throws IOException {
        Path file = content.resolve(REVISION);
        return Files.exists(file) ? text(file) : "";
    }

    private static String text(Path file) throws IOException {
        return new String(readLimited(file), StandardCharsets.UTF_8).trim();
    }

    private static byte[] readLimited(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] bytes = in.readNBytes(LARGEST + 1);
            if (bytes.length > LARGEST) {
                throw new IOException(file + " is larger than " + LARGEST + " bytes");
            }
            return bytes;
        }
    }
}
