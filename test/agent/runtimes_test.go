// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"streamweir.dev/streamweir/assignment"
)

// runtimes are JVMs that lack something.
func runtimes() map[string]scenario {
	return map[string]scenario{
		"image without java.instrument": {everywhere: true, run: withoutInstrument},
		"image without jdk.httpserver": {everywhere: true, run: func(t *testing.T, w *world) {
			withoutHTTPServer(t, w, image(t, "without-httpserver"), newest)
		}},
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
	w.table.add(t, "Kafka Streams "+newest, java, "does not start with any -javaagent: the operator stops injecting by itself", "runs without it")
}

// withoutHTTPServer runs an application in a JVM where the report cannot be served: it is bounded all the same.
func withoutHTTPServer(t *testing.T, w *world, java jvm, version string) {
	topic := w.topic(t)
	app := w.plain(t, java, version, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	p := w.started(t, topic, app)
	p.ask(t, "thread")
	p.ask(t, "restart")
	checkReality(t, p, want{kafka: version, bounded: assignment.BoundedInForce})
	if listening(t, p.port) {
		t.Error("somebody listens at the agent's port")
	}
	p.stop(t)
	p.checkFindings(t, "NoHttpServer")
	w.table.add(t, "Kafka Streams "+version, java, "bounded, but without a report", "NoHttpServer")
}
