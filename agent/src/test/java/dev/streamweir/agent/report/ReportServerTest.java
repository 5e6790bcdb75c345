// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ReportServerTest {
    private final FakeSource source = new FakeSource();
    private final HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(20)).version(HttpClient.Version.HTTP_1_1).build();
    private int port;

    @BeforeEach
    void start() {
        port = ReportServer.start(0, source);
        assertTrue(port > 0, source.findings().toString());
    }

    @Test
    void returnsThePresentReport() throws Exception {
        HttpResponse<String> response = get("/v1/report");
        assertEquals(200, response.statusCode());
        assertEquals("application/json", response.headers().firstValue("Content-Type").orElse(""));
        assertTrue(response.body().contains("\"seq\":1000"), response.body());
        assertEquals(200, get("/v1/report?after=999&wait=25s").statusCode(), "it has already changed");
    }

    @Test
    void returnsNoContentWithoutAChange() throws Exception {
        HttpResponse<String> response = get("/v1/report?after=1000&wait=1200ms");
        assertEquals(204, response.statusCode());
        assertEquals("", response.body());
        assertTrue(source.checks.get() >= 2, "checks for changes while a request waits");
        assertEquals(204, get("/v1/report?after=1000").statusCode());
    }

    @Test
    void aChangeEndsTheWait() throws Exception {
        CountDownLatch waiting = new CountDownLatch(1);
        source.check = waiting::countDown;
        CompletableFuture<HttpResponse<String>> response = getLater("/v1/report?after=1000&wait=60s");
        waiting.await();
        long from = System.nanoTime();
        source.change();
        assertTrue(response.get().body().contains("\"seq\":1001"));
        assertTrue(System.nanoTime() - from < TimeUnit.SECONDS.toNanos(30), "before the end of the wait");
    }

    @Test
    void aChangeFoundByACheckEndsTheWait() throws Exception {
        source.check = () -> {
            if (source.checks.get() == 2) {
                source.change();
            }
        };
        assertTrue(get("/v1/report?after=1000&wait=60s").body().contains("\"seq\":1001"));
    }

    @Test
    void servesOnlyGetOfOnePath() throws Exception {
        assertEquals(404, get("/").statusCode());
        assertEquals(404, get("/v1/report/").statusCode());
        assertEquals(404, get("/v1/../v1/report").statusCode());
        for (String method : List.of("POST", "PUT", "DELETE", "HEAD", "OPTIONS")) {
            HttpRequest request = request("/v1/report").method(method, BodyPublishers.noBody()).build();
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            assertEquals(405, response.statusCode(), method);
            assertEquals("GET", response.headers().firstValue("Allow").orElse(""));
        }
    }

    @Test
    void rejectsInvalidParameters() throws Exception {
        for (String query : List.of("?after=x", "?wait=soon", "?after=-1&wait=1s", "?after=1000&wait=1", "?after=99999999999999999999")) {
            assertEquals(400, get("/v1/report" + query).statusCode(), query);
        }
        assertEquals(200, get("/v1/report?" + "x".repeat(5000)).statusCode(), "parameters of newer operators");
    }

    @Test
    void atMostEightRequestsWait() throws Exception {
        List<CompletableFuture<HttpResponse<String>>> waiting = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            waiting.add(getLater("/v1/report?after=1000&wait=60s"));
        }
        HttpResponse<String> refused = CompletableFuture.anyOf(waiting.toArray(new CompletableFuture<?>[0])).thenApply(first -> {
            for (CompletableFuture<HttpResponse<String>> one : waiting) {
                if (one.isDone()) {
                    return one.join();
                }
            }
            throw new AssertionError();
        }).get(30, TimeUnit.SECONDS);
        assertEquals(503, refused.statusCode());
        assertEquals("5", refused.headers().firstValue("Retry-After").orElse(""));
        assertEquals(200, get("/v1/report").statusCode(), "serves a request that does not wait");
        source.change();
        int served = 0;
        for (CompletableFuture<HttpResponse<String>> one : waiting) {
            served += one.get(30, TimeUnit.SECONDS).statusCode() == 200 ? 1 : 0;
        }
        assertEquals(8, served);
    }

    @Test
    void survivesAFailureOfTheSource() throws Exception {
        source.check = () -> {
            throw new OutOfMemoryError("simulated");
        };
        HttpResponse<String> response = get("/v1/report");
        assertEquals(200, response.statusCode());
        assertTrue(response.body().contains("ReportIncomplete"), response.body());
    }

    @Test
    void reportsAPortInUse() throws IOException {
        try (ServerSocket other = new ServerSocket(0)) {
            assertEquals(0, ReportServer.start(other.getLocalPort(), source));
        }
        assertEquals(List.of("PortTaken"), source.reasons());
    }

    @Test
    void reportsAnInvalidPort() {
        assertEquals(0, ReportServer.start(70_000, source));
        assertEquals(List.of("NoReport"), source.reasons());
    }

    @Test
    void allThreadsAreDaemons() throws Exception {
        get("/v1/report");
        int threads = 0;
        for (Thread t : Thread.getAllStackTraces().keySet()) {
            if (t.getName().startsWith("streamweir-") || t.getName().startsWith("HTTP-Dispatcher")) {
                assertTrue(t.isDaemon(), t.getName());
                threads++;
            }
        }
        assertFalse(threads < 2, "the server's own thread and one that served a request");
    }

    private HttpResponse<String> get(String path) throws Exception {
        return client.send(request(path).build(), BodyHandlers.ofString());
    }

    private CompletableFuture<HttpResponse<String>> getLater(String path) {
        return client.sendAsync(request(path).build(), BodyHandlers.ofString());
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).timeout(Duration.ofSeconds(90));
    }
}
