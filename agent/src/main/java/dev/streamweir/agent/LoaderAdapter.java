// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.security.ProtectionDomain;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

/**
 * Connects the agent with one class loader of Kafka Streams: it receives the messages of the bridge and of the agent's classes in the loader,
 * and sends messages to these classes. Neither side can rely on seeing the other's classes, so only types of the JDK pass.
 */
final class LoaderAdapter implements BiFunction<String, Object[], Object> {
    private final Components components;
    private final Definer definer;
    private final ClassLoader loader;
    private final ProtectionDomain domain;
    /** The agent's classes in the loader; null until the first configs. */
    private BiFunction<String, Object[], Object> inLoader;
    private boolean failed;
    private Bounds bounds;

    LoaderAdapter(Components components, Definer definer, ClassLoader loader, ProtectionDomain domain) {
        this.components = components;
        this.definer = definer;
        this.loader = loader;
        this.domain = domain;
    }

    /** Handles a message from the loader and returns the reply. */
    @Override
    public Object apply(String message, Object[] arguments) {
        switch (message) {
            case Messages.CONFIGS:
                return inject((Map<?, ?>) arguments[0]);
            case Messages.CLIENT_CREATED:
                send(message, arguments);
                components.reporting.start();
                components.changes.announce();
                return null;
            case Messages.TASKS_ASSIGNED:
                send(message, arguments);
                components.changes.announce();
                return null;
            case Messages.STORE_OPENED:
                send(message, arguments);
                return null;
            case Messages.CACHE_CREATED:
                components.capacities.record(arguments[0], (Long) arguments[1]);
                return null;
            case Messages.CAPACITY_OF:
                return components.capacities.of(arguments[0]);
            case Messages.BOUNDS:
                return cacheAndManager();
            case Messages.BOUNDS_ACTIVE:
                components.decision.activate();
                return null;
            case Messages.BOUNDS_FAILED:
                components.decision.turnOff("NotBounded", "RocksDB runs with the defaults of Kafka Streams: " + arguments[0]);
                return null;
            case Messages.STORE_NOT_BOUNDED:
                components.decision.turnOff("StoreNotBounded", arguments[0] + "; the process counts as one without bounds");
                return null;
            case Messages.STORE_SIZES:
                return storeSizes((Long) arguments[0]);
            case Messages.REPLACES_CACHES:
                return components.startPlan.replacesCaches();
            case Messages.FINDING:
                components.findings.add((String) arguments[0], (String) arguments[1]);
                return null;
            default:
                throw new IllegalArgumentException(message);
        }
    }

    /** Returns the configs of an application with the plan injected. */
    private Map<?, ?> inject(Map<?, ?> configs) {
        Map<Object, Object> own = Injection.withoutOurs(configs);
        Class<?> setter = null;
        Class<?> ownSetter = null;
        if (defineClasses() != null) {
            Object named = own.get(ConfigKeys.SETTER);
            try {
                ownSetter = named == null ? null : classOf(named);
                setter = (Class<?>) send(Messages.SETTER_CLASS);
            } catch (ClassNotFoundException wrong) {
                setter = null; // the error of Kafka Streams is clearer
                reportVariable(String.valueOf(named));
            }
        }
        return Injection.into(own, components.startPlan.settings(), setter, ownSetter);
    }

    /** Reports a setter that is named by a variable of a config provider, which Kafka Streams resolves later than the agent. */
    private void reportVariable(String named) {
        if (named.contains("${")) {
            components.findings.add("SetterVariable", ConfigKeys.SETTER + "=" + named + " is a variable of a config provider, so the agent cannot "
                    + "call the setter, and the stores of this client are not bounded; name the class itself");
        }
    }

    /** Returns the class of a config, found as Kafka finds it (ConfigDef.parseType, Utils.getContextOrKafkaClassLoader). */
    private Class<?> classOf(Object named) throws ClassNotFoundException {
        if (named instanceof Class) {
            return (Class<?>) named;
        }
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return Class.forName(named.toString().trim(), true, context != null ? context : loader);
    }

    private synchronized long[] cacheAndManager() {
        if (bounds == null) {
            bounds = components.decision.forNextLoader();
        }
        return bounds == null ? null : new long[] {bounds.cache, bounds.writeBufferManager};
    }

    /** Returns the bounds of this loader; null before they are decided, and if RocksDB stays unbounded. */
    synchronized Bounds bounds() {
        return bounds;
    }

    /** Returns arena block and write buffer of the next store. They follow the plan on disk. */
    private long[] storeSizes(long open) {
        Plan plan = components.planFiles.read();
        return new long[] {bounds().arenaBlock(plan, open), plan == null ? 0 : plan.writeBuffer};
    }

    /** Returns the KafkaStreams objects of this loader: see {@code inloader.Clients.report}. */
    @SuppressWarnings("unchecked")
    List<Map<String, Object>> clients() {
        Object clients = send(Messages.CLIENTS);
        return clients == null ? Collections.emptyList() : (List<Map<String, Object>>) clients;
    }

    /** Returns a number that grows with each change of clients without a message: see {@code inloader.Clients.changes}. */
    long changes() {
        Object changes = send(Messages.CHANGES);
        return changes == null ? 0 : (Long) changes;
    }

    /** Returns the RocksDB figures of this loader: see {@code inloader.BoundedStores.figures}. */
    @SuppressWarnings("unchecked")
    Map<String, Object> rocksdb() {
        Object figures = send(Messages.ROCKSDB);
        return figures == null ? Collections.emptyMap() : (Map<String, Object>) figures;
    }

    /**
     * Sends a message to the agent's classes in the loader and returns the reply; null without these classes. The first configs define them:
     * a loader may have RocksDB without Kafka Streams, or with a relocated one.
     */
    private Object send(String message, Object... arguments) {
        BiFunction<String, Object[], Object> receiver = inLoader();
        return receiver == null ? null : receiver.apply(message, arguments);
    }

    private synchronized BiFunction<String, Object[], Object> inLoader() {
        return inLoader;
    }

    /** Returns the agent's classes in the loader, defined at the first call; null if they could not be defined. */
    @SuppressWarnings("unchecked")
    private synchronized BiFunction<String, Object[], Object> defineClasses() {
        if (inLoader == null && !failed) {
            try {
                inLoader = (BiFunction<String, Object[], Object>)
                        definer.defineInLoader(loader, domain).getConstructor(BiFunction.class).newInstance(this);
            } catch (Throwable failure) {
                failed = true;
                components.decision.turnOff("NotBounded", "the agent's classes could not be defined in " + loader + ": " + failure);
                components.reporting.start();
            }
        }
        return inLoader;
    }
}
