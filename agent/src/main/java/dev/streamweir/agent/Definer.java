// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.security.ProtectionDomain;
import java.util.Map;
import java.util.Set;

/**
 * Defines the classes of the package {@code inside} in the class loader that has Kafka Streams. Only there they see Kafka and RocksDB: in
 * a Spring Boot fat jar, in Quarkus and in containers of web applications these are not on the class path, where the agent is.
 */
final class Definer {
    private static final String PACKAGE = "dev.streamweir.agent.inside.";
    /** What the inserted calls go to; it knows the JDK only. */
    private static final String BRIDGE = "Bridge";
    /** The rest, each after the classes that it extends. */
    static final String[] REST = {
        "SharedBounds", "Sizes", "OwnCaches", "Room", "ThreadTasks", "ClientMetrics", "Client", "Clients", "BoundedSetter", "Inside"
    };

    private final Instrumentation instrumentation;
    private Method defineClass;

    Definer(Instrumentation instrumentation) {
        this.instrumentation = instrumentation;
    }

    /**
     * Makes sure that a loader has its bridge, with a door to the agent. No lock is held: the caller may hold that of its loader, for which
     * another thread may wait.
     */
    void bridge(Core core, Module module, ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        if (core.knows(loader)) {
            return;
        }
        if (module != null && module.isNamed()) { // it must see the loader's unnamed module, where the bridge is
            instrumentation.redefineModule(module, Set.of(loader.getUnnamedModule()), Map.of(), Map.of(), Set.of(), Map.of());
        }
        Class<?> bridge = define(BRIDGE, loader, domain);
        bridge.getField("door").set(null, core.sideOf(loader, () -> new LoaderSide(core, this, loader, domain)));
    }

    /** Defines the rest in a loader, and gives the class of its entry. */
    Class<?> rest(ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        Class<?> last = null;
        for (String name : REST) {
            last = define(name, loader, domain);
        }
        return last;
    }

    private Class<?> define(String name, ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        byte[] bytes;
        try (InputStream in = Definer.class.getResourceAsStream("inside/" + name + ".class")) {
            if (in == null) {
                throw new ClassNotFoundException(PACKAGE + name);
            }
            bytes = in.readAllBytes();
        }
        try {
            return (Class<?>) defineClass().invoke(loader, PACKAGE + name, bytes, 0, bytes.length, domain);
        } catch (InvocationTargetException failure) {
            if (failure.getCause() instanceof LinkageError) { // another thread was first, or it was found on the class path
                Class<?> there = Class.forName(PACKAGE + name, false, loader);
                if (there.getClassLoader() == loader) {
                    return there;
                }
            }
            throw failure;
        }
    }

    /** ClassLoader.defineClass, which an agent may open for itself. */
    private synchronized Method defineClass() throws NoSuchMethodException {
        if (defineClass == null) {
            Module ours = Definer.class.getModule();
            instrumentation.redefineModule(
                    Object.class.getModule(), Set.of(), Map.of(), Map.of("java.lang", Set.of(ours)), Set.of(), Map.of());
            defineClass = ClassLoader.class.getDeclaredMethod(
                    "defineClass", String.class, byte[].class, int.class, int.class, ProtectionDomain.class);
            defineClass.setAccessible(true);
        }
        return defineClass;
    }
}
