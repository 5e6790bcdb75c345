// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Inserts one call each into four classes, when they are loaded:
 *
 * <ul>
 *   <li>{@code StreamsConfig(Map, boolean)}, before anything else: the configs. All constructors of StreamsConfig, of its subclasses and of
 *       KafkaStreams end there (2.8 to 4.4).
 *   <li>the constructors of {@code KafkaStreams}, at their end: there is a new client.
 *   <li>{@code TaskManager.handleAssignment(Map, Map)}, at its end: a stream thread was assigned tasks.
 *   <li>the constructors of {@code LRUCache}, at their end: its capacity, which cannot be asked for later.
 * </ul>
 *
 * The calls go to the {@code Bridge} of the class's own loader. They have no branches, so no stack map changes.
 */
final class Hooks implements ClassFileTransformer {
    private static final String CONFIG = "org/apache/kafka/streams/StreamsConfig";
    private static final String CLIENT = "org/apache/kafka/streams/KafkaStreams";
    private static final String TASKS = "org/apache/kafka/streams/processor/internals/TaskManager";
    private static final String CACHE = "org/rocksdb/LRUCache";
    private static final String BRIDGE = "dev/streamweir/agent/inside/Bridge";

    private final Core core;
    private final Definer definer;

    Hooks(Core core, Definer definer) {
        this.core = core;
        this.definer = definer;
    }

    @Override
    public byte[] transform(
            Module module, ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (name == null || redefined != null) {
            return null;
        }
        if (!name.equals(CONFIG) && !name.equals(CLIENT) && !name.equals(TASKS) && !name.equals(CACHE)) {
            if (name.endsWith("/streams/StreamsConfig") && name.contains("kafka")) {
                core.cannotBound("RelocatedStreams", "Kafka Streams is relocated to " + name.replace('/', '.')
                        + ": its stores are as it ships them; keep its own package name, org.apache.kafka.streams");
            }
            return null;
        }
        try {
            definer.bridge(core, module, loader, domain);
            ClassReader reader = new ClassReader(bytes);
            ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
            Inserter inserter = new Inserter(writer, name);
            reader.accept(inserter, 0);
            if (!inserter.found) {
                missing(name, "it is of a release that this agent does not know");
            }
            return writer.toByteArray();
        } catch (Throwable failure) {
            missing(name, failure.toString());
            return null;
        }
    }

    /** Without the first hook nothing is bounded; without another, only part of the report is missing. */
    private void missing(String name, String why) {
        String message = name.replace('/', '.') + " could not be prepared: " + why + "; use a release of Kafka Streams from 2.8 on";
        if (name.equals(CONFIG)) {
            core.cannotBound("HookMissing", message);
        } else {
            core.findings.add("HookMissing", message);
        }
    }

    /** Copies a class and inserts the call. */
    private static final class Inserter extends ClassVisitor {
        private final String owner;
        boolean found;

        Inserter(ClassVisitor next, String owner) {
            super(Opcodes.ASM9, next);
            this.owner = owner;
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
                return new AtEnd(next, "created", "(Ljava/lang/Object;)V", Opcodes.ALOAD, 0);
            }
            if (owner.equals(TASKS) && name.equals("handleAssignment") && descriptor.equals("(Ljava/util/Map;Ljava/util/Map;)V")) {
                found = true;
                return new AtEnd(next, "assigned", "(Ljava/util/Map;Ljava/util/Map;)V", Opcodes.ALOAD, 1, Opcodes.ALOAD, 2);
            }
            if (owner.equals(CACHE) && constructor && descriptor.startsWith("(J")) {
                found = true;
                return new AtEnd(next, "cacheMade", "(Ljava/lang/Object;J)V", Opcodes.ALOAD, 0, Opcodes.LLOAD, 1);
            }
            return next;
        }
    }

    /** configs = Bridge.configs(configs), before the call of the super constructor. */
    private static final class AtStart extends MethodVisitor {
        AtStart(MethodVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public void visitCode() {
            super.visitCode();
            visitVarInsn(Opcodes.ALOAD, 1);
            visitMethodInsn(Opcodes.INVOKESTATIC, BRIDGE, "configs", "(Ljava/util/Map;)Ljava/util/Map;", false);
            visitVarInsn(Opcodes.ASTORE, 1);
        }
    }

    /** Bridge.method(arguments), before each return. */
    private static final class AtEnd extends MethodVisitor {
        private final String method;
        private final String descriptor;
        private final int[] loads; // opcode and variable in turn

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
