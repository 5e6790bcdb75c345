// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/** The bytes of HTTP responses. Each ends its connection. */
final class Response {
    private static final byte[] EMPTY = {};

    private Response() {}

    static byte[] report(byte[] json) {
        return of("200 OK", "Content-Type: application/json\r\n", json);
    }

    /** Returns the response to a request that has waited without a change. It has no body and no length. */
    static byte[] unchanged() {
        return "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    }

    static byte[] invalid() {
        return of("400 Bad Request", "", EMPTY);
    }

    /** Returns the response without the token of the mounted plan: the agent runs. It contains nothing about the application. */
    static byte[] unauthorized() {
        byte[] json = Json.bytes(Map.of("schema", Report.SCHEMA));
        return of("401 Unauthorized", "WWW-Authenticate: Bearer\r\nContent-Type: application/json\r\n", json);
    }

    static byte[] notFound() {
        return of("404 Not Found", "", EMPTY);
    }

    static byte[] notAllowed() {
        return of("405 Method Not Allowed", "Allow: GET\r\n", EMPTY);
    }

    static byte[] busy() {
        return of("503 Service Unavailable", "Retry-After: 5\r\n", EMPTY);
    }

    private static byte[] of(String status, String headers, byte[] body) {
        byte[] head = ("HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + body.length + "\r\nConnection: close\r\n\r\n")
            .getBytes(StandardCharsets.US_ASCII);
        byte[] all = Arrays.copyOf(head, head.length + body.length);
        System.arraycopy(body, 0, all, head.length, body.length);
        return all;
    }
}
