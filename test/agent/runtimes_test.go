// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

// runtimes returns applications in JVMs without some modules, and in old JVMs.
func runtimes() map[string]scenario {
	return map[string]scenario{
		"image without java.instrument": {byDefault: true, run: withoutInstrument},
		"image without jdk.httpserver": {byDefault: true, run: func(t *testing.T, shared *fixture) {
			withoutHTTPServer(t, shared, image(t, "without-httpserver"))
		}},
		"Kafka Streams on JDK 11":   {run: func(t *testing.T, shared *fixture) { java11(t, shared, oldJava(t, 11)) }},
		"Java 8, JDK_JAVA_OPTIONS":  {run: java8WithJDKOptions},
		"Java 8, JAVA_TOOL_OPTIONS": {run: java8WithToolOptions},
		"image without java.management": {byDefault: true, run: func(t *testing.T, shared *fixture) {
			noStreams(t, shared, image(t, "without-management"))
		}},
	}
}

// withoutInstrument runs a JVM that cannot load any agent and ends before the application begins. The operator handles this case.
func withoutInstrument(t *testing.T, shared *fixture) {
	java := image(t, "without-instrument")
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	p := shared.started(t, topic, app)
	p.stop(t)

	app.plan, app.agent = newPlan(t, goodPlan()).path, shared.agent
	p = start(t, app)
	p.wait(t)
	if p.err == nil || strings.Contains(p.out.all(), "@ ready") {
		t.Errorf("the JVM starts without java.instrument: %v", p.err)
	}
	shared.table.add(t, "Kafka Streams "+newest, java, "does not start with any -javaagent; the operator stops the injection", "runs without it")
}

// withoutHTTPServer runs an application in a JVM with only the modules that Kafka Streams and the agent require.
func withoutHTTPServer(t *testing.T, shared *fixture, java jvm) {
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	shared.table.add(t, "Kafka Streams "+newest, java, "bounded", "")
}

// java11 runs an application on the oldest supported Java.
func java11(t *testing.T, shared *fixture, java jvm) {
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	shared.table.add(t, "Kafka Streams "+newest+", plain class path", java, "bounded", "")
}

// lastFor8 is a release of Kafka Streams that runs on Java 8.
const lastFor8 = "3.9.1"

// java8WithJDKOptions runs an application on Java 8, which does not read JDK_JAVA_OPTIONS and therefore does not load the agent.
func java8WithJDKOptions(t *testing.T, shared *fixture) {
	java := oldJava(t, 8)
	java.jdkJavaOptions = true
	topic := shared.topic(t)
	app := shared.plain(t, java, lastFor8, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	p := shared.started(t, topic, app)
	p.send(t, "thread")
	p.checkCapacities(t, fmt.Sprintf("capacities %d", defaultCache))
	if listening(t, p.port) {
		t.Error("a process listens on the agent's port")
	}
	p.stop(t)
	shared.table.add(t, "Kafka Streams "+lastFor8+", plain class path", java, "unaffected: JDK 8 does not read JDK_JAVA_OPTIONS", "")
}

// java8WithToolOptions runs Java 8 with the agent, which it cannot load. Therefore the operator uses JAVA_TOOL_OPTIONS only if the spec sets it.
func java8WithToolOptions(t *testing.T, shared *fixture) {
	java := oldJava(t, 8)
	topic := shared.topic(t)
	app := shared.plain(t, java, lastFor8, topic, nil)
	app.plan, app.agent = newPlan(t, goodPlan()).path, shared.agent
	p := start(t, app)
	p.wait(t)
	if p.err == nil || !strings.Contains(p.out.all(), "UnsupportedClassVersionError") {
		t.Errorf("Java 8 with the agent ended with %v, want UnsupportedClassVersionError", p.err)
	}
	shared.table.add(t, "Kafka Streams "+lastFor8+", JAVA_TOOL_OPTIONS", java,
		"does not start; the operator uses this variable only if the spec sets it, and stops the injection", "")
}
