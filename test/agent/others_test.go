// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

// others are applications that do not have a JVM to themselves: other agents, or several KafkaStreams objects.
func others() map[string]scenario {
	return map[string]scenario{
		"OpenTelemetry's agent before ours": {run: func(t *testing.T, w *world) { openTelemetry(t, w, true) }},
		"OpenTelemetry's agent after ours":  {everywhere: true, run: func(t *testing.T, w *world) { openTelemetry(t, w, false) }},
		"Prometheus' agent":                 {run: prometheus},
		"three KafkaStreams in one JVM":     {everywhere: true, run: severalClients},
		"all metrics recorded":              {run: debugMetrics},
	}
}

// openTelemetry runs the agent that rewrites most classes, among them some of Kafka Streams.
func openTelemetry(t *testing.T, w *world, first bool) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	app.env = []string{"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"}
	option := "-javaagent:" + filepath.Join(w.built, "agents", "opentelemetry-javaagent.jar")
	order := "after ours"
	if first {
		app.before, order = []string{option}, "before ours"
	} else {
		app.after = []string{option}
	}
	exercise(t, w.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	w.table.add(t, "with OpenTelemetry's agent 2.33.1 "+order+"; Kafka Streams "+newest, java, "bounded", "")
}

// prometheus runs the agent that serves all MBeans, and reads them through it.
func prometheus(t *testing.T, w *world) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules: [{pattern: \".*\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	app := w.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	app.before = []string{fmt.Sprintf("-javaagent:%s=%d:%s", filepath.Join(w.built, "agents", "jmx_prometheus_javaagent.jar"), port, rules)}
	p := w.started(t, topic, app)
	wait(t, "Prometheus' agent serves the metrics of RocksDB", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(body), "block_cache_capacity") {
			err = fmt.Errorf("%d bytes without block_cache_capacity", len(body))
		}
		return err
	})
	exercise(t, p, want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	w.table.add(t, "with Prometheus' JMX agent 1.0.1; Kafka Streams "+newest, java, "bounded", "")
}

// severalClients runs several applications in one process, which share the one cache.
func severalClients(t *testing.T, w *world) {
	java := needJVM(t, 25)
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, map[string]string{"app.clients": "3"})
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, w.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive, clients: 3}, "thread", "restart")
	w.table.add(t, "three KafkaStreams in one JVM; Kafka Streams "+newest, java, "bounded, one cache", "")
}

// debugMetrics runs an application that records all metrics, so that Kafka Streams itself checks the caches of a store's segments.
func debugMetrics(t *testing.T, w *world) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, map[string]string{"metrics.recording.level": "TRACE"})
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, w.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	w.table.add(t, "metrics.recording.level=TRACE; Kafka Streams "+newest, java, "bounded", "")
}
