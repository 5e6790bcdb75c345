// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

// runtimes are JVMs that lack something.
func runtimes() map[string]scenario {
	return map[string]scenario{
		"image without java.instrument": {everywhere: true, run: withoutInstrument},
		"image without jdk.httpserver": {everywhere: true, run: func(t *testing.T, w *world) {
			withoutHTTPServer(t, w, image(t, "without-httpserver"), newest)
		}},
		"Kafka Streams on JDK 11": {run: func(t *testing.T, w *world) { eleven(t, w, oldJava(t, 11)) }},
		"Java 8 ignores us":       {run: eightIgnores},
		"Java 8 told to load us":  {run: eightTold},
		"image without java.management": {everywhere: true, run: func(t *testing.T, w *world) {
			noStreams(t, w, image(t, "without-management"))
		}},
	}
}

// withoutInstrument shows what the operator is prepared for: no agent at all can be in this image, and the JVM ends before the application
// begins.
func withoutInstrument(t *testing.T, w *world) {
	java := image(t, "without-instrument")
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, nil)
	p := w.started(t, topic, app)
	p.stop(t)

	app.plan, app.agent = newPlan(t, goodPlan()).path, w.agent
	p = start(t, app)
	p.wait(t)
	if p.err == nil || strings.Contains(p.out.all(), "@ ready") {
		t.Errorf("the JVM starts without java.instrument: %v", p.err)
	}
	w.table.add(t, "Kafka Streams "+newest, java, "does not start with any -javaagent; the operator stops the injection", "runs without it")
}

// withoutHTTPServer runs an application in a JVM where the report cannot be served: it is bounded all the same.
func withoutHTTPServer(t *testing.T, w *world, java jvm, version string) {
	topic := w.topic(t)
	app := w.plain(t, java, version, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	p := w.started(t, topic, app)
	p.ask(t, "thread")
	p.ask(t, "restart")
	checkReality(t, p, want{kafka: version, bounded: report.BoundedActive})
	if listening(t, p.port) {
		t.Error("somebody listens at the agent's port")
	}
	p.stop(t)
	p.checkFindings(t, "NoHttpServer")
	w.table.add(t, "Kafka Streams "+version, java, "bounded, without a report", "NoHttpServer")
}

// eleven runs an application on the oldest Java that the agent is made for.
func eleven(t *testing.T, w *world, java jvm) {
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, w.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	w.table.add(t, "Kafka Streams "+newest+", plain class path", java, "bounded", "")
}

// lastFor8 is a release of Kafka Streams that still runs on Java 8.
const lastFor8 = "3.9.1"

// eightIgnores runs an application on Java 8, which does not know JDK_JAVA_OPTIONS: the agent is not there.
func eightIgnores(t *testing.T, w *world) {
	java := oldJava(t, 8)
	java.jdkJavaOptions = true
	topic := w.topic(t)
	app := w.plain(t, java, lastFor8, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	p := w.started(t, topic, app)
	p.ask(t, "thread")
	p.checkCapacities(t, fmt.Sprintf("capacities %d", shippedCache))
	if listening(t, p.port) {
		t.Error("somebody listens at the agent's port")
	}
	p.stop(t)
	w.table.add(t, "Kafka Streams "+lastFor8+", plain class path", java, "unaffected: JDK 8 does not read JDK_JAVA_OPTIONS", "")
}

// eightTold shows why the operator takes JAVA_TOOL_OPTIONS only where the spec asks for it.
func eightTold(t *testing.T, w *world) {
	java := oldJava(t, 8)
	topic := w.topic(t)
	app := w.plain(t, java, lastFor8, topic, nil)
	app.plan, app.agent = newPlan(t, goodPlan()).path, w.agent
	p := start(t, app)
	p.wait(t)
	if p.err == nil || !strings.Contains(p.out.all(), "UnsupportedClassVersionError") {
		t.Errorf("Java 8 with the agent ended with %v, want UnsupportedClassVersionError", p.err)
	}
	w.table.add(t, "Kafka Streams "+lastFor8+", JAVA_TOOL_OPTIONS", java,
		"does not start; the operator uses this variable only if the spec sets it, and stops the injection", "")
}
