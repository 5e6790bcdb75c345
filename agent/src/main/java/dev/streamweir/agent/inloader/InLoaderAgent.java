// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import dev.streamweir.agent.Messages;
import java.util.Map;
import java.util.function.BiFunction;
import org.rocksdb.RocksDB;

/** The entry point of this package: one object in each loader of Kafka Streams. It receives the messages of the agent. */
public final class InLoaderAgent implements BiFunction<String, Object[], Object> {
    /** The stores of this loader. Set before Kafka Streams can create a {@link BoundedSetter}. */
    static volatile BoundedStores stores;

    private final Clients clients = new Clients();

    /** Called by the agent with its adapter of this loader. */
    public InLoaderAgent(BiFunction<String, Object[], Object> agent) {
        stores = new BoundedStores(agent);
    }

    /** Handles a message of the agent and returns the reply. */
    @Override
    public Object apply(String message, Object[] arguments) {
        switch (message) {
            case Messages.SETTER_CLASS:
                return BoundedSetter.class;
            case Messages.CLIENT_CREATED:
                clients.created(arguments[0]);
                return null;
            case Messages.TASKS_ASSIGNED:
                clients.assigned((Map<?, ?>) arguments[0], (Map<?, ?>) arguments[1]);
                return null;
            case Messages.STORE_OPENED:
                stores.opened(arguments[0], (RocksDB) arguments[1]);
                return null;
            case Messages.CLIENTS:
                return clients.report();
            case Messages.CHANGES:
                return clients.changes();
            case Messages.ROCKSDB:
                return stores.figures();
            default:
                throw new IllegalArgumentException(message);
        }
    }
}
