// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

/** What a report has room for. A report of 256 KiB holds fewer; this keeps one that is too large from being built at all. */
final class Room {
    private int tasks = 10_000;
    private int stores = 10_000;

    /** Takes the room for one more task, if there is some. */
    boolean forTask() {
        return tasks-- > 0;
    }

    /** Takes the room for one more store, if there is some. */
    boolean forStore() {
        return stores-- > 0;
    }

    /** Something was left out. */
    boolean exceeded() {
        return tasks < 0 || stores < 0;
    }
}
