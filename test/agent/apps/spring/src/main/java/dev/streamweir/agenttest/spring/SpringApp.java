// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest.spring;

import dev.streamweir.agenttest.Client;
import dev.streamweir.agenttest.Commands;
import dev.streamweir.agenttest.Session;
import dev.streamweir.agenttest.Topologies;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.kafka.annotation.EnableKafkaStreams;
import org.springframework.kafka.config.StreamsBuilderFactoryBean;
import org.springframework.beans.factory.annotation.Autowired;

/** The application in a fat jar of Spring Boot. Its configuration is in arguments of Spring. */
@SpringBootApplication
@EnableKafkaStreams
public class SpringApp {
    private final AtomicLong records = new AtomicLong();

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(SpringApp.class, args).close();
    }

    @Autowired
    void topology(StreamsBuilder builder, Environment environment) {
        Properties configs = new Properties();
        configs.setProperty("app.topic", environment.getRequiredProperty("app.topic"));
        Topologies.add(builder, configs, records);
    }

    @Bean
    ApplicationRunner commands(StreamsBuilderFactoryBean factory) {
        return args -> Commands.run(new Session(new SpringClient(factory)));
    }

    private final class SpringClient extends Client {
        private final StreamsBuilderFactoryBean factory;

        SpringClient(StreamsBuilderFactoryBean factory) {
            super(new Properties(), null);
            this.factory = factory;
        }

        @Override
        public AtomicLong counter() {
            return records;
        }

        @Override
        public KafkaStreams streams() {
            return factory.getKafkaStreams();
        }

        @Override
        public void restart() throws Exception {
            close();
            factory.start();
            awaitRunning(0);
        }

        @Override
        public void close() {
            factory.stop();
        }
    }
}
