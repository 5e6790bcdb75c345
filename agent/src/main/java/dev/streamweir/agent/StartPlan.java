// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.Map;

/** The plan at the first use of Kafka Streams. Its settings and its cache apply until the process ends. */
final class StartPlan {
    private final PlanFiles files;
    private boolean read;
    private Plan plan;

    StartPlan(PlanFiles files) {
        this.files = files;
    }

    /** Returns the plan, read at the first call; null without a readable plan. */
    synchronized Plan get() {
        if (!read) {
            read = true;
            plan = files.read();
        }
        return plan;
    }

    /** Returns the settings of Kafka Streams and its clients. */
    Map<String, String> settings() {
        Plan start = get();
        return start == null ? Map.of() : start.settings;
    }

    /** Reports whether the plan replaces the application's own caches. */
    boolean replacesCaches() {
        Plan start = get();
        return start != null && start.replaceCaches;
    }
}
