// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** The head of an HTTP/1.x request. */
final class Request {
    private static final String AUTHORIZATION = "authorization:";
    private static final String BEARER = "bearer ";

    final String method;
    final String path;
    /** The query; null without one. */
    final String query;
    /** The bearer token; empty without one. */
    final String token;

    private Request(String method, String target, String token) {
        this.method = method;
        int question = target.indexOf('?');
        path = question < 0 ? target : target.substring(0, question);
        query = question < 0 ? null : target.substring(question + 1);
        this.token = token;
    }

    /**
     * Returns the length of the head, which ends with an empty line; -1 if it is not complete.
     *
     * @param from the number of bytes without an end
     * @param to the number of bytes
     */
    static int end(byte[] bytes, int from, int to) {
        for (int i = Math.max(from, 1); i < to; i++) {
            boolean afterNewline = bytes[i - 1] == '\n' || (i > 1 && bytes[i - 1] == '\r' && bytes[i - 2] == '\n');
            if (bytes[i] == '\n' && afterNewline) {
                return i + 1;
            }
        }
        return -1;
    }

    /** Parses the head of a request. */
    static Request parse(byte[] bytes, int end) throws IOException {
        String[] lines = new String(bytes, 0, end, StandardCharsets.ISO_8859_1).split("\r?\n");
        String[] words = lines.length == 0 ? lines : lines[0].split(" ");
        if (words.length != 3 || !words[2].startsWith("HTTP/1.")) {
            throw new IOException("not a request of HTTP/1");
        }
        String token = "";
        for (int i = 1; i < lines.length; i++) {
            if (startsWith(lines[i], AUTHORIZATION)) {
                String credentials = lines[i].substring(AUTHORIZATION.length()).trim();
                token = startsWith(credentials, BEARER) ? credentials.substring(BEARER.length()).trim() : "";
            }
        }
        return new Request(words[0], words[1], token);
    }

    private static boolean startsWith(String text, String prefix) {
        return text.regionMatches(true, 0, prefix, 0, prefix.length());
    }
}
