// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ReportServerTest {
    static final String TOKEN = "0123456789abcdef0123456789abcdef";

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
    void theOldestOfTooManyWaitingRequestsEndsAtOnce() throws Exception {
        CompletableFuture<HttpResponse<String>> oldest = getLater("/v1/report?after=1000&wait=60s");
        while (source.checks.get() == 0) {
            Thread.sleep(10);
        }
        List<CompletableFuture<HttpResponse<String>>> further = new ArrayList<>();
        for (int i = 0; i < Responder.WAITING; i++) {
            further.add(getLater("/v1/report?after=1000&wait=60s"));
        }
        assertEquals(204, oldest.get(30, TimeUnit.SECONDS).statusCode());
        source.change();
        for (CompletableFuture<HttpResponse<String>> one : further) {
            assertEquals(200, one.get(30, TimeUnit.SECONDS).statusCode());
        }
    }

    @Test
    void servesNoReportWithoutTheToken() throws Exception {
        String[] wrong = {null, "", "Bearer", "Bearer ", "Bearer " + TOKEN.substring(1), "Bearer " + TOKEN + "0", "Basic " + TOKEN, TOKEN};
        for (String authorization : wrong) {
            for (String query : List.of("", "?after=1000&wait=60s", "?after=x")) {
                HttpRequest.Builder request = HttpRequest.newBuilder(uri("/v1/report" + query)).timeout(Duration.ofSeconds(30));
                if (authorization != null) {
                    request.header("Authorization", authorization);
                }
                HttpResponse<String> response = client.send(request.build(), BodyHandlers.ofString());
                assertEquals(401, response.statusCode(), authorization);
                assertEquals("{\"schema\":1}", response.body());
            }
        }
        source.token = "";
        HttpRequest emptyToken = HttpRequest.newBuilder(uri("/v1/report")).header("Authorization", "Bearer other").build();
        assertEquals(401, client.send(emptyToken, BodyHandlers.ofString()).statusCode());
    }

    @Test
    void halfOpenConnectionsDoNotDelayARequest() throws Exception {
        List<Socket> halfOpen = new ArrayList<>();
        for (int i = 0; i < 3 * ReportServer.CONNECTIONS; i++) {
            Socket socket = new Socket("127.0.0.1", port);
            halfOpen.add(socket);
            if (i % 2 == 0) {
                socket.getOutputStream().write('G');
            }
        }
        long from = System.nanoTime();
        assertEquals(200, get("/v1/report").statusCode());
        assertEquals(204, get("/v1/report?after=1000&wait=1100ms").statusCode());
        assertTrue(System.nanoTime() - from < TimeUnit.SECONDS.toNanos(8), "before the half-open connections expire");
        for (Socket socket : halfOpen) {
            socket.setSoTimeout(30_000);
            assertTrue(isClosed(socket), "the server closes a connection without a request");
            socket.close();
        }
    }

    private static boolean isClosed(Socket socket) {
        try {
            return socket.getInputStream().read() < 0;
        } catch (SocketException reset) {
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    @Test
    void aWaitingRequestLeavesWithItsClient() throws Exception {
        for (int i = 0; i < 5 * Responder.REQUESTS; i++) {
            try (Socket socket = new Socket("127.0.0.1", port)) {
                socket.getOutputStream().write(rawRequest("?after=1000&wait=60s"));
            }
        }
        assertEquals(200, get("/v1/report").statusCode());
        assertEquals(204, get("/v1/report?after=1000").statusCode());
    }

    @Test
    void readsARequestInPieces() throws Exception {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            String request = "GET /v1/report HTTP/1.0\r\nauthorization:bearer " + TOKEN + "\r\nX: y\r\n\r\n";
            for (byte one : request.getBytes(StandardCharsets.US_ASCII)) {
                socket.getOutputStream().write(one);
                socket.getOutputStream().flush();
            }
            String response = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            assertTrue(response.startsWith("HTTP/1.1 200 OK\r\n"), response);
        }
    }

    @Test
    void closesConnectionsThatDoNotSpeakHttp() throws Exception {
        List<String> texts = List.of("\u0016\u0003\u0001 hello\n\n", "\n\n", "GET /v1/report\r\n\r\n", "GET " + "/".repeat(9000), "GET / HTTP/3\r\n\r\n");
        for (String text : texts) {
            try (Socket socket = new Socket("127.0.0.1", port)) {
                socket.setSoTimeout(30_000);
                socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
                assertTrue(isClosed(socket), text.substring(0, 2));
            }
        }
        assertEquals(200, get("/v1/report").statusCode());
    }

    @Test
    void aClientThatReadsSlowlyDelaysNobody() throws Exception {
        source.clients = () -> List.of(Map.of("topology", "x".repeat(200_000), "threads", List.of(), "globalStores", List.of()));
        List<Socket> slow = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Socket socket = new Socket();
            socket.setReceiveBufferSize(1024);
            socket.connect(new InetSocketAddress("127.0.0.1", port));
            socket.getOutputStream().write(rawRequest(""));
            slow.add(socket);
        }
        assertTrue(get("/v1/report").body().length() > 200_000);
        for (Socket socket : slow) {
            String all = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            int body = all.length() - all.indexOf("\r\n\r\n") - 4;
            assertTrue(body > 200_000 && all.contains("Content-Length: " + body + "\r\n"), "the whole response");
            socket.close();
        }
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
            if (t.getName().startsWith("streamweir-")) {
                assertTrue(t.isDaemon(), t.getName());
                threads++;
            }
        }
        assertFalse(threads < 2, "the threads of connections and of reports");
    }

    private static byte[] rawRequest(String query) {
        String request = "GET /v1/report" + query + " HTTP/1.1\r\nAuthorization: Bearer " + TOKEN + "\r\n\r\n";
        return request.getBytes(StandardCharsets.US_ASCII);
    }

    private HttpResponse<String> get(String path) throws Exception {
        return client.send(request(path).build(), BodyHandlers.ofString());
    }

    private CompletableFuture<HttpResponse<String>> getLater(String path) {
        return client.sendAsync(request(path).build(), BodyHandlers.ofString());
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(uri(path)).header("Authorization", "Bearer " + TOKEN).timeout(Duration.ofSeconds(90));
    }

    private URI uri(String path) {
        return URI.create("http://127.0.0.1:" + port + path);
    }
}
