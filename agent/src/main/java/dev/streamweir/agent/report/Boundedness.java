// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

/** Whether one shared cache bounds RocksDB in this process. */
public enum Boundedness {
    /** No store has opened yet. */
    PENDING("Pending"),
    /** The shared cache is active. */
    ACTIVE("Active"),
    /** The bounds could not be set. A finding has the reason. */
    OFF("Off");

    /** The name in the report. */
    final String wireName;

    Boundedness(String wireName) {
        this.wireName = wireName;
    }
}
