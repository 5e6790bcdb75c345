// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.inloader.Bridge;
import dev.streamweir.agent.report.Boundedness;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** With the classes of the oldest release. A loader that has its bridge already needs no instrumentation. */
class HooksTest {
    private final ClassLoader loader = HooksTest.class.getClassLoader();
    private final Components components = new Components(Options.parse("port=0", new Findings()), new Findings());
    private final Hooks hooks = new Hooks(components, new Definer(null));

    @BeforeEach
    void installBridge() {
        components.loaders.adapterOf(loader, () -> new LoaderAdapter(components, new Definer(null), loader, null));
    }

    @ParameterizedTest
    @CsvSource({
        "org/apache/kafka/streams/StreamsConfig, configs",
        "org/apache/kafka/streams/KafkaStreams, clientCreated",
        "org/apache/kafka/streams/processor/internals/TaskManager, tasksAssigned",
        "org/apache/kafka/streams/state/internals/RocksDBStore, storeOpened",
        "org/rocksdb/LRUCache, cacheCreated",
    })
    void insertsCallsOfMethodsThatTheBridgeHas(String name, String method) throws IOException {
        byte[] transformed = hooks.transform(null, loader, name, null, null, bytesOf(name));
        assertNotNull(transformed);
        Set<String> calls = callsOfTheBridge(transformed);
        assertEquals(1, calls.size(), calls.toString());
        assertTrue(calls.stream().allMatch(call -> call.startsWith(method + "(")), calls.toString());
        assertTrue(bridgeMethods().containsAll(calls), calls + " not in " + bridgeMethods());
        assertEquals(List.of(), components.findings.report());
    }

    @Test
    void leavesOtherClassesUnchanged() throws IOException {
        String other = "org/apache/kafka/streams/Topology";
        assertNull(hooks.transform(null, loader, other, null, null, bytesOf(other)));
        assertEquals(Boundedness.PENDING, components.decision.boundedness());
    }

    @Test
    void anUnknownReleaseIsNotBounded() throws IOException {
        byte[] unrelated = bytesOf("org/apache/kafka/streams/Topology");
        hooks.transform(null, loader, "org/rocksdb/LRUCache", null, null, unrelated);
        hooks.transform(null, loader, "org/apache/kafka/streams/state/internals/RocksDBStore", null, null, unrelated);
        assertEquals(Boundedness.PENDING, components.decision.boundedness());
        hooks.transform(null, loader, "org/apache/kafka/streams/StreamsConfig", null, null, unrelated);
        assertEquals(Boundedness.OFF, components.decision.boundedness());
        assertEquals(3, components.findings.report().size());
    }

    private byte[] bytesOf(String name) throws IOException {
        try (InputStream in = loader.getResourceAsStream(name + ".class")) {
            return in.readAllBytes();
        }
    }

    private static Set<String> bridgeMethods() {
        Set<String> methods = new TreeSet<>();
        for (Method method : Bridge.class.getMethods()) {
            methods.add(method.getName() + Type.getMethodDescriptor(method));
        }
        return methods;
    }

    private static Set<String> callsOfTheBridge(byte[] classFile) {
        Set<String> calls = new TreeSet<>();
        new ClassReader(classFile).accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                return new MethodVisitor(Opcodes.ASM9) {
                    @Override
                    public void visitMethodInsn(int opcode, String owner, String called, String calledDescriptor, boolean isInterface) {
                        if (owner.equals(Type.getInternalName(Bridge.class))) {
                            calls.add(called + calledDescriptor);
                        }
                    }
                };
            }
        }, 0);
        return calls;
    }
}
