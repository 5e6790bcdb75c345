// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.security.ProtectionDomain;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

/**
 * The agent's side of one class loader that has Kafka Streams: the door through which the classes inside it speak to the agent, and the
 * agent to them. Both ways only types of the JDK pass, since neither side is sure to see the other's classes.
 */
final class LoaderSide implements BiFunction<String, Object[], Object> {
    private final Core core;
    private final Definer definer;
    private final ClassLoader loader;
    private final ProtectionDomain domain;
    /** The classes inside, once Kafka Streams is used; they know the same words. */
    private BiFunction<String, Object[], Object> inside;
    private boolean failed;
    private Bounds bounds;

    LoaderSide(Core core, Definer definer, ClassLoader loader, ProtectionDomain domain) {
        this.core = core;
        this.definer = definer;
        this.loader = loader;
        this.domain = domain;
    }

    /** What comes from inside. */
    @Override
    public Object apply(String word, Object[] arguments) {
        switch (word) {
            case "configs":
                return configs((Map<?, ?>) arguments[0]);
            case "created":
                tell(word, arguments);
                core.clientCreated();
                return null;
            case "assigned":
                tell(word, arguments);
                core.changed();
                return null;
            case "cacheMade":
                core.cacheMade(arguments[0], (Long) arguments[1]);
                return null;
            case "capacity":
                return core.capacityOf(arguments[0]);
            case "bounds":
                return boundsInForce();
            case "bounded":
                core.bounded(arguments[0] == null, String.valueOf(arguments[0]));
                return null;
            case "sizes":
                return core.sizes(bounds, (Long) arguments[0]);
            case "replaces":
                return core.replacesCaches();
            case "finding":
                core.finding((String) arguments[0], (String) arguments[1]);
                return null;
            default:
                throw new IllegalArgumentException(word);
        }
    }

    /** Injects the plan into the configs of an application. */
    private Map<?, ?> configs(Map<?, ?> configs) {
        Map<Object, Object> own = Injection.withoutOurs(configs);
        Class<?> setter = null;
        Class<?> ownSetter = null;
        if (inside() != null) {
            Object named = own.get(Injection.SETTER);
            try {
                ownSetter = named == null ? null : classOf(named);
                setter = (Class<?>) inside().apply("setter", new Object[0]);
            } catch (ClassNotFoundException wrong) {
                setter = null; // Kafka Streams says so better
            }
        }
        return Injection.into(own, core.settings(), setter, ownSetter);
    }

    /** The class of a config, found as Kafka finds it (ConfigDef.parseType, Utils.getContextOrKafkaClassLoader). */
    private Class<?> classOf(Object named) throws ClassNotFoundException {
        if (named instanceof Class) {
            return (Class<?>) named;
        }
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return Class.forName(named.toString().trim(), true, context != null ? context : loader);
    }

    /** Cache, write buffer manager: the first loader has the plan's, a further one what they leave. Null: nothing is bounded. */
    private synchronized long[] boundsInForce() {
        if (bounds == null) {
            bounds = core.boundsFor();
        }
        return bounds == null ? null : new long[] {bounds.cache, bounds.writeBufferManager};
    }

    synchronized Bounds bounds() {
        return bounds;
    }

    /** The KafkaStreams objects of this loader, as inside.Clients tells them. */
    @SuppressWarnings("unchecked")
    List<Map<String, Object>> clients() {
        Object clients = tell("clients");
        return clients == null ? Collections.emptyList() : (List<Map<String, Object>>) clients;
    }

    /** Grows with what changes of the clients without anybody saying so: see inside.Clients. */
    long changes() {
        Object changes = tell("changes");
        return changes == null ? 0 : (Long) changes;
    }

    /** The figures of this loader's stores: see inside.Inside. */
    @SuppressWarnings("unchecked")
    Map<String, Object> rocksdb() {
        Object figures = tell("rocksdb");
        return figures == null ? Collections.emptyMap() : (Map<String, Object>) figures;
    }

    /**
     * Speaks to the classes inside where there are some: the first configs bring them in. A loader may have RocksDB without Kafka Streams,
     * or with one under another name.
     */
    private Object tell(String word, Object... arguments) {
        BiFunction<String, Object[], Object> to;
        synchronized (this) {
            to = inside;
        }
        return to == null ? null : to.apply(word, arguments);
    }

    /** The classes inside; null where they could not be defined. */
    @SuppressWarnings("unchecked")
    private synchronized BiFunction<String, Object[], Object> inside() {
        if (inside == null && !failed) {
            try {
                inside = (BiFunction<String, Object[], Object>)
                        definer.rest(loader, domain).getConstructor(BiFunction.class).newInstance(this);
            } catch (Throwable failure) {
                failed = true;
                core.cannotBound("NotBounded", "the bounds could not be brought into " + loader + ": " + failure);
            }
        }
        return inside;
    }
}
