// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.net.URISyntaxException;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class DefinerTest {
    /** A class inside that is not defined in the application's loader would be looked for on the class path, where it sees no Kafka. */
    @Test
    void allClassesInsideAreDefined() throws URISyntaxException {
        Set<String> defined = new TreeSet<>(Arrays.asList(Definer.REST));
        defined.add("Bridge");
        Set<String> compiled = new TreeSet<>();
        File folder = new File(Definer.class.getResource("inside/Bridge.class").toURI()).getParentFile();
        for (String file : folder.list()) {
            compiled.add(file.replace(".class", ""));
        }
        assertEquals(compiled, defined);
    }
}
