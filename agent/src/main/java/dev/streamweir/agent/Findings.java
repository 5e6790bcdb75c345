// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a person should know: each thing once, on standard error and in the report. */
final class Findings {
    /** The report holds no more: see assignment/report.go. */
    private static final int MOST = 50;

    private final Map<String, String> messages = new LinkedHashMap<>(); // by reason and message, to the reason
    private Runnable listener = () -> {};

    /** Calls back for each new finding. */
    synchronized void listen(Runnable changed) {
        listener = changed;
    }

    /** Adds a finding, unless it was told before. */
    void add(String reason, String message) {
        Runnable tell;
        synchronized (this) {
            if (messages.size() >= MOST || messages.putIfAbsent(message, reason) != null) {
                return;
            }
            tell = listener;
        }
        System.err.println("streamweir: " + reason + ": " + message);
        tell.run();
    }

    /** The findings as the report's schema has them. */
    synchronized List<Map<String, Object>> report() {
        List<Map<String, Object>> all = new ArrayList<>();
        messages.forEach((message, reason) -> {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("reason", reason);
            one.put("message", message);
            all.add(one);
        });
        return all;
    }
}
