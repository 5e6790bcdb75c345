// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

/** A cache of the application. */
final class OwnCache {
    /** In bytes. */
    final long capacity;
    /** The number of open stores that use it. */
    int stores;

    OwnCache(long capacity) {
        this.capacity = capacity;
    }
}
