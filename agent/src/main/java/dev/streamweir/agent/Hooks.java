// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.Set;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Inserts one call into each of five classes when the class is loaded:
 *
 * <ul>
 *   <li>{@code StreamsConfig(Map, boolean)}, at the start: passes the configs. All constructors of StreamsConfig, of its subclasses and of
 *       KafkaStreams end there (2.8 to 4.4).
 *   <li>the constructors of {@code KafkaStreams}, at the end: passes the new client.
 *   <li>{@code TaskManager.handleAssignment(Map, Map)}, at the end: passes the tasks of a stream thread.
 *   <li>{@code RocksDBStore.openDB(Map, File)}, at the end: passes a store that has opened without an exception, and its field
 *       {@code db}.
 *   <li>the constructors of {@code LRUCache}, at the end: passes the capacity, which RocksJava does not return later.
 * </ul>
 *
 * The calls go to the {@code Bridge} in the loader of the class. They have no branches, so no stack map changes.
 */
final class Hooks implements ClassFileTransformer {
    private static final String CONFIG = "org/apache/kafka/streams/StreamsConfig";
    private static final String CLIENT = "org/apache/kafka/streams/KafkaStreams";
    private static final String TASKS = "org/apache/kafka/streams/processor/internals/TaskManager";
    private static final String STORE = "org/apache/kafka/streams/state/internals/RocksDBStore";
    private static final String DATABASE = "org/rocksdb/RocksDB";
    private static final String CACHE = "org/rocksdb/LRUCache";
    private static final Set<String> CLASSES = Set.of(CONFIG, CLIENT, TASKS, STORE, CACHE);
    private static final String BRIDGE = "dev/streamweir/agent/inloader/Bridge";

    private final Components components;
    private final Definer definer;

    Hooks(Components components, Definer definer) {
        this.components = components;
        this.definer = definer;
    }

    @Override
    public byte[] transform(
            Module module, ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (name == null || redefined != null) {
            return null;
        }
        if (!CLASSES.contains(name)) {
            if (name.endsWith("/streams/StreamsConfig") && name.contains("kafka")) {
                turnOff("RelocatedStreams", "Kafka Streams is relocated to " + name.replace('/', '.')
                        + ", so its stores are not bounded; keep the original package name, org.apache.kafka.streams");
            }
            return null;
        }
        try {
            installBridge(module, loader, domain);
            ClassReader reader = new ClassReader(bytes);
            ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
            Inserter inserter = new Inserter(writer, name);
            reader.accept(inserter, 0);
            if (!inserter.found) {
                reportMissing(name, "this agent does not support its release");
            }
            return writer.toByteArray();
        } catch (Throwable failure) {
            reportMissing(name, failure.toString());
            return null;
        }
    }

    /** Makes sure that a loader has a bridge, connected with its adapter. */
    private void installBridge(Module module, ClassLoader loader, ProtectionDomain domain) throws ReflectiveOperationException, IOException {
        if (components.loaders.contains(loader)) {
            return;
        }
        Class<?> bridge = definer.defineBridge(module, loader, domain);
        LoaderAdapter adapter = components.loaders.adapterOf(loader, () -> new LoaderAdapter(components, definer, loader, domain));
        bridge.getField("agent").set(null, adapter);
    }

    /**
     * Reports a hook that could not be inserted. Without the hook in StreamsConfig nothing is bounded; without that in RocksDBStore, bounds never
     * become active in the report; without another, only a part of the report is missing.
     */
    private void reportMissing(String name, String cause) {
        String message = name.replace('/', '.') + " could not be instrumented: " + cause + "; use Kafka Streams 2.8 or later";
        if (name.equals(CONFIG)) {
            turnOff("HookMissing", message);
        } else {
            components.findings.add("HookMissing", message);
        }
    }

    private void turnOff(String reason, String message) {
        components.decision.turnOff(reason, message);
        components.reporting.start();
    }

    /** Copies a class with the call inserted. */
    private static final class Inserter extends ClassVisitor {
        private final String owner;
        private boolean hasDatabase;
        boolean found;

        Inserter(ClassVisitor next, String owner) {
            super(Opcodes.ASM9, next);
            this.owner = owner;
        }

        @Override
        public FieldVisitor visitField(int access, String name, String descriptor, String signature, Object value) {
            hasDatabase |= name.equals("db") && descriptor.equals("L" + DATABASE + ";");
            return super.visitField(access, name, descriptor, signature, value);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
            boolean constructor = name.equals("<init>");
            if (owner.equals(CONFIG) && constructor && descriptor.equals("(Ljava/util/Map;Z)V")) {
                found = true;
                return new AtStart(next);
            }
            if (owner.equals(CLIENT) && constructor) {
                found = true;
                return new AtEnd(next, Messages.CLIENT_CREATED, "(Ljava/lang/Object;)V", Opcodes.ALOAD, 0);
            }
            if (owner.equals(TASKS) && name.equals("handleAssignment") && descriptor.equals("(Ljava/util/Map;Ljava/util/Map;)V")) {
                found = true;
                return new AtEnd(next, Messages.TASKS_ASSIGNED, "(Ljava/util/Map;Ljava/util/Map;)V", Opcodes.ALOAD, 1, Opcodes.ALOAD, 2);
            }
            if (owner.equals(STORE) && name.equals("openDB") && descriptor.equals("(Ljava/util/Map;Ljava/io/File;)V") && hasDatabase) {
                found = true;
                return new AtEndOfOpen(next);
            }
            if (owner.equals(CACHE) && constructor && descriptor.startsWith("(J")) {
                found = true;
                return new AtEnd(next, Messages.CACHE_CREATED, "(Ljava/lang/Object;J)V", Opcodes.ALOAD, 0, Opcodes.LLOAD, 1);
            }
            return next;
        }
    }

    /** Inserts {@code configs = Bridge.configs(configs)} before the call of the super constructor. */
    private static final class AtStart extends MethodVisitor {
        AtStart(MethodVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public void visitCode() {
            super.visitCode();
            visitVarInsn(Opcodes.ALOAD, 1);
            visitMethodInsn(Opcodes.INVOKESTATIC, BRIDGE, Messages.CONFIGS, "(Ljava/util/Map;)Ljava/util/Map;", false);
            visitVarInsn(Opcodes.ASTORE, 1);
        }
    }

    /** Inserts {@code Bridge.storeOpened(this, db)} before each return. */
    private static final class AtEndOfOpen extends MethodVisitor {
        AtEndOfOpen(MethodVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public void visitInsn(int opcode) {
            if (opcode == Opcodes.RETURN) {
                visitVarInsn(Opcodes.ALOAD, 0);
                visitVarInsn(Opcodes.ALOAD, 0);
                visitFieldInsn(Opcodes.GETFIELD, STORE, "db", "L" + DATABASE + ";");
                visitMethodInsn(Opcodes.INVOKESTATIC, BRIDGE, Messages.STORE_OPENED, "(Ljava/lang/Object;Ljava/lang/Object;)V", false);
            }
            super.visitInsn(opcode);
        }
    }

    /** Inserts {@code Bridge.method(arguments)} before each return. */
    private static final class AtEnd extends MethodVisitor {
        private final String method;
        private final String descriptor;
        private final int[] loads; // pairs of an opcode and a variable

        AtEnd(MethodVisitor next, String method, String descriptor, int... loads) {
            super(Opcodes.ASM9, next);
            this.method = method;
            this.descriptor = descriptor;
            this.loads = loads;
        }

        @Override
        public void visitInsn(int opcode) {
            if (opcode == Opcodes.RETURN) {
                for (int i = 0; i < loads.length; i += 2) {
                    visitVarInsn(loads[i], loads[i + 1]);
                }
                visitMethodInsn(Opcodes.INVOKESTATIC, BRIDGE, method, descriptor, false);
            }
            super.visitInsn(opcode);
        }
    }
}
