// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.concurrent.atomic.AtomicLong;

/** The sequence number of the report. */
final class Changes {
    /** Starts with the time, so that two processes of a pod never have the same number. */
    private final AtomicLong sequence = new AtomicLong(System.currentTimeMillis());

    private volatile Runnable listener = () -> {};

    /** Sets the listener of changes. */
    void setListener(Runnable listener) {
        this.listener = listener;
    }

    /** Increments the sequence number and notifies the listener. */
    void announce() {
        sequence.incrementAndGet();
        listener.run();
    }

    long sequence() {
        return sequence.get();
    }
}
