// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * The token of the mounted plan, which a client must present to read the report. Without one no client can. The file is read again at most once
 * a second. For a while the previous token is valid as well, because the operator and the kubelet see a change of the ConfigMap at different
 * times. Used by one thread.
 */
final class ReportToken {
    /** The shortest token, in characters. The operator writes 64. */
    private static final int SHORTEST = 32;
    private static final long REREAD = TimeUnit.SECONDS.toNanos(1);
    /** Longer than the kubelet's updates of mounted ConfigMaps: up to 85 s were measured. */
    private static final long PREVIOUS = TimeUnit.MINUTES.toNanos(2);

    private final Supplier<String> file;
    private final LongSupplier clock;
    private String current;
    private String previous = "";
    private long read;
    private long changed;

    /**
     * @param file reads the token on disk, empty without one
     * @param clock the time in nanoseconds
     */
    ReportToken(Supplier<String> file, LongSupplier clock) {
        this.file = file;
        this.clock = clock;
    }

    /** Reports whether a token is valid. The time does not depend on the content of the token. */
    boolean accepts(String token) {
        long now = clock.getAsLong();
        if (current == null || now - read >= REREAD) {
            refresh(now);
        }
        boolean isCurrent = equal(token, current);
        boolean isPrevious = equal(token, previous) && now - changed < PREVIOUS;
        return isCurrent || isPrevious;
    }

    private void refresh(long now) {
        String next = file.get();
        if (current != null && !next.equals(current)) {
            previous = current;
            changed = now;
        }
        current = next;
        read = now;
    }

    private static boolean equal(String presented, String valid) {
        boolean same = MessageDigest.isEqual(presented.getBytes(StandardCharsets.UTF_8), valid.getBytes(StandardCharsets.UTF_8));
        return same && valid.length() >= SHORTEST;
    }
}
