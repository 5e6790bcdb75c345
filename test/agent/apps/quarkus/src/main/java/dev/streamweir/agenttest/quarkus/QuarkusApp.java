// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest.quarkus;

import dev.streamweir.agenttest.Client;
import dev.streamweir.agenttest.Commands;
import dev.streamweir.agenttest.Session;
import dev.streamweir.agenttest.Topologies;
import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.runtime.annotations.QuarkusMain;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import jakarta.inject.Inject;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** The application in a fast-jar of Quarkus. Quarkus starts and closes Kafka Streams. */
@QuarkusMain
public class QuarkusApp implements QuarkusApplication {
    private static final AtomicLong RECORDS = new AtomicLong();

    @Inject
    KafkaStreams streams;

    @Override
    public int run(String... args) throws Exception {
        Commands.run(new Session(new QuarkusClient()));
        return 0;
    }

    /** Produces the topology for Quarkus. */
    @ApplicationScoped
    public static class Producer {
        @ConfigProperty(name = "app.topic")
        String topic;

        @Produces
        Topology topology() {
            Properties configs = new Properties();
            configs.setProperty("app.topic", topic);
            return Topologies.build(configs, RECORDS);
        }
    }

    private final class QuarkusClient extends Client {
        QuarkusClient() {
            super(new Properties(), null);
        }

        @Override
        public AtomicLong counter() {
            return RECORDS;
        }

        @Override
        public KafkaStreams streams() {
            return streams;
        }
    }
}
