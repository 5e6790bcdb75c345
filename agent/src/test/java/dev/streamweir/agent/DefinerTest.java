// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;

class DefinerTest {
    private static final String PACKAGE = "dev/streamweir/agent/inloader/";

    /** A class that is not defined in the application's loader would be found on the class path, where it does not see Kafka. */
    @Test
    void definesAllClassesOfThePackage() throws URISyntaxException {
        Set<String> defined = new TreeSet<>(Arrays.asList(Definer.IN_LOADER));
        defined.add("Bridge");
        assertEquals(compiledClasses(), defined);
    }

    /** The loader of Kafka Streams may not see the agent's other classes. The compiler copies their constants. */
    @Test
    void theClassesUseNoMemberOfOtherClassesOfTheAgent() throws URISyntaxException, IOException {
        for (String name : compiledClasses()) {
            try (InputStream in = Definer.class.getResourceAsStream("inloader/" + name + ".class")) {
                Set<String> owners = ownersOfMembers(new ClassReader(in));
                assertFalse(owners.isEmpty(), name);
                owners.removeIf(owner -> owner.startsWith(PACKAGE) || !owner.startsWith("dev/streamweir/"));
                assertEquals(Set.of(), owners, name);
            }
        }
    }

    private static Set<String> compiledClasses() throws URISyntaxException {
        Set<String> compiled = new TreeSet<>();
        File folder = new File(Definer.class.getResource("inloader/Bridge.class").toURI()).getParentFile();
        for (String file : folder.list()) {
            compiled.add(file.replace(".class", ""));
        }
        return compiled;
    }

    /** Returns the classes of all fields and methods in the constant pool: CONSTANT_Fieldref, Methodref and InterfaceMethodref (JVMS 4.4.2). */
    private static Set<String> ownersOfMembers(ClassReader reader) {
        Set<Integer> memberTags = Set.of(9, 10, 11);
        Set<String> owners = new TreeSet<>();
        char[] buffer = new char[reader.getMaxStringLength()];
        for (int i = 1; i < reader.getItemCount(); i++) {
            int offset = reader.getItem(i); // of the bytes after the tag; 0 for the second half of a long or double
            if (offset > 0 && memberTags.contains(reader.readByte(offset - 1))) {
                owners.add(reader.readClass(offset, buffer));
            }
        }
        return owners;
    }
}
