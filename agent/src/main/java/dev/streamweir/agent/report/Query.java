// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

/** The parameters of a request for the report. */
final class Query {
    /** No sequence number: a real one starts with a time and is never negative. */
    private static final long NONE = -1;

    /** Whether all known parameters are valid. */
    final boolean valid;
    /** The sequence number of the client's last report. */
    final long after;
    /** The time to wait for another report, in milliseconds. */
    final long wait;

    /** Parses {@code after=SEQ&wait=25s}, both optional. Other parameters are ignored: a newer operator may send them. */
    Query(String query) {
        long seq = NONE;
        long millis = 0;
        boolean allValid = true;
        try {
            for (String parameter : query == null ? new String[0] : query.split("&")) {
                if (parameter.startsWith("after=")) {
                    seq = Long.parseLong(parameter.substring("after=".length()));
                    allValid &= seq >= 0;
                } else if (parameter.startsWith("wait=")) {
                    millis = millis(parameter.substring("wait=".length()));
                    allValid &= millis >= 0;
                }
            }
        } catch (NumberFormatException e) {
            allValid = false;
        }
        valid = allValid;
        after = seq;
        wait = millis;
    }

    /** Parses a time such as 25s or 250ms. The result is at most 86,400 of the unit, so that it cannot overflow. */
    private static long millis(String text) {
        boolean inMillis = text.endsWith("ms");
        if (!text.endsWith("s")) {
            throw new NumberFormatException();
        }
        long number = Long.parseLong(text.substring(0, text.length() - (inMillis ? 2 : 1)));
        return Math.min(number, 86_400) * (inMillis ? 1 : 1_000);
    }
}
