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

// sharedJVMs returns applications that share their JVM: with other agents, or among several KafkaStreams objects.
func sharedJVMs() map[string]scenario {
	return map[string]scenario{
		"OpenTelemetry's agent before ours": {run: func(t *testing.T, shared *fixture) { openTelemetry(t, shared, true) }},
		"OpenTelemetry's agent after ours":  {byDefault: true, run: func(t *testing.T, shared *fixture) { openTelemetry(t, shared, false) }},
		"Prometheus' agent":                 {run: prometheus},
		"three KafkaStreams in one JVM":     {byDefault: true, run: severalClients},
		"all metrics recorded":              {run: debugMetrics},
	}
}

// openTelemetry runs an agent that rewrites many classes, some of Kafka Streams among them.
func openTelemetry(t *testing.T, shared *fixture, first bool) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	app.env = []string{"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"}
	option := "-javaagent:" + filepath.Join(shared.built, "agents", "opentelemetry-javaagent.jar")
	order := "after ours"
	if first {
		app.before, order = []string{option}, "before ours"
	} else {
		app.after = []string{option}
	}
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	shared.table.add(t, "with OpenTelemetry's agent 2.33.1 "+order+"; Kafka Streams "+newest, java, "bounded", "")
}

// prometheus runs an agent that serves all MBeans, and reads them from it.
func prometheus(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules: [{pattern: \".*\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	app.before = []string{fmt.Sprintf("-javaagent:%s=%d:%s", filepath.Join(shared.built, "agents", "jmx_prometheus_javaagent.jar"), port, rules)}
	p := shared.started(t, topic, app)
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
	shared.table.add(t, "with Prometheus' JMX agent 1.0.1; Kafka Streams "+newest, java, "bounded", "")
}

// severalClients runs several applications in one process with one shared cache.
func severalClients(t *testing.T, shared *fixture) {
	java := needJVM(t, 25)
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, map[string]string{"app.clients": "3"})
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive, clients: 3}, "thread", "restart")
	shared.table.add(t, "three KafkaStreams in one JVM; Kafka Streams "+newest, java, "bounded, one cache", "")
}

// debugMetrics runs an application that records all metrics. Kafka Streams then checks the caches of a store's segments itself.
func debugMetrics(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, map[string]string{"metrics.recording.level": "TRACE"})
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	shared.table.add(t, "metrics.recording.level=TRACE; Kafka Streams "+newest, java, "bounded", "")
}
