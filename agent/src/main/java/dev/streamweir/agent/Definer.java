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
 * Defines the classes of the package {@code inloader} in the class loader of Kafka Streams. Only there can they see Kafka and RocksDB, which
 * are not on the class path, where the agent is, in a Spring Boot fat jar, in Quarkus and in containers of web applications.
 */
final class Definer {
    private static final String PACKAGE = "dev.streamweir.agent.inloader.";
    /** The target of the inserted calls. It depends on the JDK only. */
    private static final String BRIDGE = "Bridge";
    /** The other classes, each after its superclass, and the entry point last. */
    static final String[] IN_LOADER = {
        "SharedBounds", "InitialOptions", "Memtable", "StoreMemtable", "Memtables", "OpenStore", "OwnCache", "OwnCaches", "BoundedStores",
        "ReportLimits", "ThreadTasks", "ClientMetrics", "Client", "Clients", "BoundedSetter", "InLoaderAgent"
    };

    private final Instrumentation instrumentation;
    private Method defineClass;

    Definer(Instrumentation instrumentation) {
        this.instrumentation = instrumentation;
    }

    /**
     * Defines the bridge in a loader and returns it. The caller may hold the lock of the loader, so this method waits for no lock that another
     * thread could hold while it waits for that loader.
     *
     * @param module the module of the class that calls the bridge, null if it has none
     */
    Class<?> defineBridge(Module module, ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        if (module != null && module.isNamed()) { // the bridge is in the unnamed module of the loader, which the caller has to read
            instrumentation.redefineModule(module, Set.of(loader.getUnnamedModule()), Map.of(), Map.of(), Set.of(), Map.of());
        }
        return define(BRIDGE, loader, domain);
    }

    /** Defines the other classes in a loader and returns the entry point. */
    Class<?> defineInLoader(ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        Class<?> last = null;
        for (String name : IN_LOADER) {
            last = define(name, loader, domain);
        }
        return last;
    }

    private Class<?> define(String name, ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        byte[] bytes;
        try (InputStream in = Definer.class.getResourceAsStream("inloader/" + name + ".class")) {
            if (in == null) {
                throw new ClassNotFoundException(PACKAGE + name);
            }
            bytes = in.readAllBytes();
        }
        try {
            return (Class<?>) defineClass().invoke(loader, PACKAGE + name, bytes, 0, bytes.length, domain);
        } catch (InvocationTargetException failure) {
            if (failure.getCause() instanceof LinkageError) { // defined by another thread, or found on the class path
                Class<?> existing = Class.forName(PACKAGE + name, false, loader);
                if (existing.getClassLoader() == loader) {
                    return existing;
                }
            }
            throw failure;
        }
    }

    /** Returns ClassLoader.defineClass. An agent may open the package java.lang to itself. */
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
