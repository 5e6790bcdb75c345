// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kafkatest runs a real Kafka broker and real Kafka Streams instances for tests.
//
// The broker (Kafka 4.4.0, one node, KRaft) and an application with a key-value, a windowed and a join store are built
// by test/java/build.sh with Maven. Each instance is a Java process in a network namespace of its own, connected to the broker
// by a bridge, so that each instance has its own address, like the pods of a cluster:
//
//	test process ── 127.0.0.1 ── broker ── bridge 10.231.N.1 ─┬─ 10.231.N.2  instance
//	                                                          └─ 10.231.N.3  instance
//
// The namespaces have no other routes. Everything ends with the test; if the test's process is killed, the kernel ends the
// Java processes and their namespaces.
//
// It needs Linux, root, iproute2, bash, Java 17 and, for the first build, Maven. If something is missing the test is skipped,
// or fails if the environment has CI=true.
package kafkatest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// KafkaVersion is the version of the broker and of the Kafka Streams instances (test/java/pom.xml).
const KafkaVersion = "4.4.0"

// require skips the test, or fails it in CI, unless this machine can run the broker and the instances.
func require(tb testing.TB) {
	tb.Helper()
	var missing []string
	if runtime.GOOS != "linux" {
		missing = append(missing, "Linux (network namespaces)")
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "root (to create network namespaces)")
	}
	for _, tool := range []struct{ command, name string }{{"java", "Java 17"}, {"ip", "iproute2"}, {"bash", "bash"}} {
		if _, err := exec.LookPath(tool.command); err != nil {
			missing = append(missing, tool.name+" (no \""+tool.command+"\" on the PATH)")
		}
	}
	if len(missing) > 0 {
		Unavailable(tb, strings.Join(missing, ", "))
	}
}

// Unavailable skips the test, or fails it in CI, because the machine lacks something.
func Unavailable(tb testing.TB, what string) {
	tb.Helper()
	const text = "this test needs a real Kafka broker; missing: %s"
	if os.Getenv("CI") == "true" {
		tb.Fatalf(text, what)
	}
	tb.Skipf(text, what)
}

// classPath builds the Java programs if they are not in the cache, and returns their class path.
func classPath(tb testing.TB) string {
	tb.Helper()
	path, err := localkafka.ClassPath()
	if failure, ok := errors.AsType[*localkafka.BuildError](err); ok && failure.ToolMissing() {
		Unavailable(tb, failure.Output)
	}
	if err != nil {
		tb.Fatalf("build the Kafka Streams application and the broker: %v", err)
	}
	return path
}
