// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Problems that require the attention of a person. Each is written once, to standard error and to the report. */
final class Findings {
    /** The limit of the report: see agent/report in the operator. */
    private static final int LIMIT = 50;

    private final Map<String, String> reasons = new LinkedHashMap<>(); // by message
    private Runnable listener = () -> {};

    /** Sets the listener of new findings. */
    synchronized void setListener(Runnable listener) {
        this.listener = listener;
    }

    /** Adds a finding unless its message was added before. */
    void add(String reason, String message) {
        Runnable notify = addIfNew(reason, message);
        if (notify != null) {
            System.err.println("streamweir: " + reason + ": " + message);
            notify.run();
        }
    }

    /** Returns the listener to notify; null if the finding is not new. */
    private synchronized Runnable addIfNew(String reason, String message) {
        boolean isNew = reasons.size() < LIMIT && reasons.putIfAbsent(message, reason) == null;
        return isNew ? listener : null;
    }

    /** Returns the findings in the form of the report. */
    synchronized List<Map<String, Object>> report() {
        List<Map<String, Object>> all = new ArrayList<>();
        reasons.forEach((message, reason) -> {
            Map<String, Object> finding = new LinkedHashMap<>();
            finding.put("reason", reason);
            finding.put("message", message);
            all.add(finding);
        });
        return all;
    }
}
