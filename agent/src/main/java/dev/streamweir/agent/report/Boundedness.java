// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

/** Whether one shared cache bounds RocksDB in this process. */
public enum Boundedness {
    /** No store is open yet. */
    PENDING("Pending"),
    /** All stores that have opened have the shared cache, or known ones of the application. */
    ACTIVE("Active"),
    /** The bounds could not be set in at least one store. A finding has the reason. */
    OFF("Off");

    /** The name in the report. */
    final String wireName;

    Boundedness(String wireName) {
        this.wireName = wireName;
    }
}
