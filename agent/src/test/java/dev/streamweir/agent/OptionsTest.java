// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
    @ParameterizedTest
    @CsvSource(nullValues = "none", value = {
        "none, /etc/streamweir/plan, 7907, 0",
        "'', /etc/streamweir/plan, 7907, 0",
        "'plan=/p,port=1', /p, 1, 0",
        "port=0, /etc/streamweir/plan, 0, 0",
        "port=65536, /etc/streamweir/plan, 7907, 1",
        "port=x, /etc/streamweir/plan, 7907, 1",
        "'plan=,color=red', /etc/streamweir/plan, 7907, 2",
    })
    void parsesArguments(String text, String plan, int port, int invalid) {
        Findings findings = new Findings();
        Options options = Options.parse(text, findings);
        assertEquals(Path.of(plan), options.plan);
        assertEquals(port, options.port);
        assertEquals(invalid, findings.report().size());
    }
}
