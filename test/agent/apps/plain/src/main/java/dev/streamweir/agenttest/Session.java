// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * One or more KafkaStreams objects with the commands of a test. Commands and results are text, so that they can pass between class loaders.
 *
 * <p>Each argument is {@code key=value}: a config of Kafka Streams or its clients, or one of {@code app.topic} (the input topic),
 * {@code app.clients} (the number of KafkaStreams objects, 1 by default) and {@code app.retention.seconds} (of the window store).
 */
public final class Session implements Function<String, String> {
    private final List<Client> clients = new ArrayList<>();
    private final AtomicBoolean churning = new AtomicBoolean();
    private final AtomicInteger rebalances = new AtomicInteger();
    private Thread churn;

    /** Starts the clients. */
    public Session(String[] args) {
        Properties configs = new Properties();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            configs.setProperty(arg.substring(0, equals), arg.substring(equals + 1));
        }
        int count = Integer.parseInt((String) configs.getOrDefault("app.clients", "1"));
        String id = configs.getProperty("application.id");
        for (int i = 0; i < count; i++) {
            Properties own = new Properties();
            own.putAll(configs);
            own.setProperty("application.id", i == 0 ? id : id + "-" + i);
            clients.add(new Client(own));
        }
    }

    /** Wraps the client of a framework, which starts and stops it. */
    public Session(Client client) {
        clients.add(client);
    }

    /** Executes a command and returns its result, which begins with "error" after a failure. */
    @Override
    public String apply(String command) {
        try {
            return execute(command.split(" "));
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            return "error: " + e;
        }
    }

    private String execute(String[] words) throws Exception {
        switch (words[0]) {
            case "running": // waits until each client has processed a number of records
                for (Client client : clients) {
                    client.awaitRunning(Long.parseLong(words[1]));
                }
                return "running";
            case "restart": // closes and starts each client
                for (Client client : clients) {
                    client.restart();
                }
                return "restarted";
            case "thread": // adds and removes a stream thread: tasks close and open again
                for (Client client : clients) {
                    client.cycleThread();
                }
                return "cycled";
            case "beans":
                return Beans.read(clients);
            case "config":
                return ConfigProbe.get(words[1]);
            case "churn":
                return "on".equals(words[1]) ? startChurn(words[2]) : stopChurn();
            case "stop":
                stopChurn();
                for (Client client : clients) {
                    client.close();
                }
                return "stopped";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    /** Repeats a command without a pause until {@link #stopChurn}. */
    private String startChurn(String command) {
        churning.set(true);
        churn = new Thread(() -> {
            while (churning.get()) {
                String result = apply(command);
                if (result.startsWith("error")) {
                    System.out.println("@ churn ended: " + result);
                    return;
                }
                rebalances.incrementAndGet();
            }
        }, "churn");
        churn.start();
        return "churning";
    }

    private String stopChurn() throws InterruptedException {
        churning.set(false);
        if (churn != null) {
            churn.join();
        }
        return "rebalances " + rebalances.get();
    }
}
