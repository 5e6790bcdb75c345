// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

/** What a request for the report asks. */
final class Query {
    /** No sequence: it begins with a time, and is never negative. */
    private static final long NONE = -1;

    /** What was asked can be understood. */
    final boolean valid;
    /** The sequence that the client knows. */
    final long after;
    /** Milliseconds that it will wait for another. */
    final long wait;

    /** Reads {@code after=SEQ&wait=25s}, each of which may be missing. Other parameters are for later agents. */
    Query(String query) {
        long seq = NONE;
        long millis = 0;
        boolean understood = true;
        try {
            for (String parameter : query == null ? new String[0] : query.split("&")) {
                if (parameter.startsWith("after=")) {
                    seq = Long.parseLong(parameter.substring("after=".length()));
                    understood &= seq >= 0;
                } else if (parameter.startsWith("wait=")) {
                    millis = millis(parameter.substring("wait=".length()));
                    understood &= millis >= 0;
                }
            }
        } catch (NumberFormatException e) {
            understood = false;
        }
        valid = understood;
        after = seq;
        wait = millis;
    }

    /** A time such as 25s or 250ms; a day stands for all that is longer. */
    private static long millis(String text) {
        boolean small = text.endsWith("ms");
        if (!text.endsWith("s")) {
            throw new NumberFormatException();
        }
        long number = Long.parseLong(text.substring(0, text.length() - (small ? 2 : 1)));
        return Math.min(number, 86_400) * (small ? 1 : 1_000);
    }
}
