// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

/** The sequence number of the report, and the threads that wait for the next one. */
final class Changes {
    /** Starts with the time, so that two processes of a pod never have the same number. */
    private long sequence = System.currentTimeMillis();

    /** Increments the sequence number and wakes all waiting threads. */
    synchronized void announce() {
        sequence++;
        notifyAll();
    }

    synchronized long sequence() {
        return sequence;
    }

    /** Waits until the sequence number differs from {@code known}, at most {@code millis} milliseconds. */
    synchronized void await(long known, long millis) throws InterruptedException {
        long end = System.nanoTime() + millis * 1_000_000;
        for (long left = millis; sequence == known && left > 0; left = (end - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
    }
}
