// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"streamweir.dev/streamweir/agent/report"
)

const (
	partitions = 2
	// records is the number of records for each application.
	records = 200
	// ownPolls is consumer.max.poll.records of the applications. The plan sets it with a prefix that takes precedence and must not replace it.
	ownPolls = "77"
)

func (f *fixture) connect(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.broker.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatalf("client of the broker: %v", err)
	}
	f.client = client
	t.Cleanup(client.Close)
}

// topic creates a topic with the name of the test.
func (f *fixture) topic(t *testing.T) string {
	t.Helper()
	return f.topicOf(t, id(t))
}

// topicOf creates a topic.
func (f *fixture) topicOf(t *testing.T, name string) string {
	t.Helper()
	if _, err := kadm.NewClient(f.client).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	return name
}

// id returns the name of the test as a valid name of a topic.
func id(t testing.TB) string {
	return topicName(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
}

func topicName(name string) string {
	return strings.Map(func(r rune) rune {
		valid := (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || r == '.'
		if valid {
			return r
		}
		return '-'
	}, name)
}

// produce writes records with one timestamp to all partitions of a topic.
func (f *fixture) produce(t *testing.T, topic string, number int, at time.Time) {
	t.Helper()
	batch := make([]*kgo.Record, 0, number)
	for i := range number {
		batch = append(batch, &kgo.Record{
			Topic: topic, Partition: int32(i % partitions), Timestamp: at,
			Key: fmt.Appendf(nil, "customer-%d", i), Value: fmt.Appendf(nil, "order %d", i),
		})
	}
	if err := f.client.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
		t.Fatalf("produce %d records to %s: %v", number, topic, err)
	}
}

// firstTime returns the timestamp of an application's first records, at the beginning of a segment of its window store.
func firstTime() time.Time { return time.Now().Add(-10 * time.Minute).Truncate(time.Minute) }

// streamsConfigs returns the configs of an application that reads a topic, with the names of Kafka Streams.
func (f *fixture) streamsConfigs(t *testing.T, topic string) map[string]string {
	return map[string]string{
		"application.id": topic, "bootstrap.servers": f.broker.Bootstrap, "state.dir": t.TempDir(),
		"commit.interval.ms": "200", "num.stream.threads": "1", "consumer.auto.offset.reset": "earliest",
		// A restarted client waits for this timeout, since Kafka Streams does not leave its group when it closes. It is the broker's minimum.
		"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "1000",
		"consumer.max.poll.records": ownPolls, "buffer.memory": "4194304",
		"main.consumer.interceptor.classes": "dev.streamweir.agenttest.ConfigProbe",
	}
}

// arguments returns configs as arguments of the plain application.
func arguments(topic string, configs map[string]string) []string {
	list := []string{"app.topic=" + topic}
	for key, value := range configs {
		list = append(list, key+"="+value)
	}
	return list
}

// classPath returns the class path of the plain application with a version of Kafka Streams.
func (f *fixture) classPath(version string) string {
	return filepath.Join(f.built, "classes") + ":" + filepath.Join(f.built, "lib", version, "*")
}

// plain returns the application on a plain class path, with configs in addition to those of streamsConfigs.
func (f *fixture) plain(t *testing.T, java jvm, version, topic string, configs map[string]string) program {
	t.Helper()
	all := with(f.streamsConfigs(t, topic), configs)
	return program{
		jvm:     java,
		options: []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f.classPath(version)},
		run:     append([]string{"dev.streamweir.agenttest.Main"}, arguments(topic, all)...),
	}
}

// started starts an application with records in its topic, and waits until it has processed them.
func (f *fixture) started(t *testing.T, topic string, p program) *process {
	t.Helper()
	p.agent = f.agent
	f.produce(t, topic, records, firstTime())
	running := start(t, p)
	running.ready(t)
	running.send(t, fmt.Sprintf("running %d", records))
	return running
}

// want is the expected report of a running application.
type want struct {
	kafka   string
	bounded report.Boundedness
	// clients is the number of KafkaStreams objects. Zero means one.
	clients int
	// capacity is the capacity of the cache of every store. Zero means the plan's.
	capacity int64
	// findings are the reasons of all findings.
	findings []string
}

// capacities returns the capacities in RocksDB's metrics. Older releases count a cache once for each of the two column families of a store
// (measured: 2.8.2 and 3.4.1 do, 3.9.1 does not).
func (w want) capacities() string {
	capacity := w.capacity
	if capacity == 0 {
		capacity = planCache
	}
	if w.kafka == oldest || w.kafka == "3.4.1" {
		capacity *= 2
	}
	return fmt.Sprintf("capacities %d", capacity)
}

// checkRunning returns an error unless the report is that of an application with all its tasks and stores.
func (w want) checkRunning(reported report.Report) error {
	if reported.Bounded != w.bounded {
		return fmt.Errorf("bounded %s, want %s", reported.Bounded, w.bounded)
	}
	if len(reported.Clients) != max(1, w.clients) {
		return fmt.Errorf("%d clients, want %d", len(reported.Clients), max(1, w.clients))
	}
	for _, client := range reported.Clients {
		if client.State != "RUNNING" || client.Version != w.kafka {
			return fmt.Errorf("client of Kafka Streams %s is %s, want %s RUNNING", client.Version, client.State, w.kafka)
		}
		if diff := cmp.Diff([]string{"0_0", "0_1"}, tasks(client)); diff != "" {
			return fmt.Errorf("tasks (-want +got):\n%s", diff)
		}
		wantStores := []string{"counts rocksdb-state", "windows rocksdb-window-state"}
		if diff := cmp.Diff(wantStores, stores(client)); diff != "" {
			return fmt.Errorf("stores (-want +got):\n%s", diff)
		}
		if !strings.Contains(client.Topology, "counts") {
			return errors.New("the topology does not name the store")
		}
	}
	if diff := cmp.Diff(append([]string{}, w.findings...), reasons(reported)); diff != "" {
		return fmt.Errorf("findings (-want +got):\n%s", diff)
	}
	return nil
}

// exercise runs an application with the valid plan from start to end and checks each report: it processes records, its own monitoring reads all
// metrics, its tasks close and open again, and it shuts down. It returns the last report.
func exercise(t *testing.T, p *process, expected want, restarts ...string) report.Report {
	t.Helper()
	first := p.eventually(t, "the running application", expected.checkRunning)
	checkBounds(t, first)
	for _, client := range first.Clients {
		checkSettings(t, client)
	}
	checkApplication(t, p, expected)
	for _, restart := range restarts {
		p.send(t, restart)
	}
	again := p.eventually(t, "the application after "+strings.Join(restarts, " and "), func(reported report.Report) error {
		if reported.RocksDB.Opened <= first.RocksDB.Opened || reported.RocksDB.Closed == 0 {
			return fmt.Errorf("opened %d, closed %d: the stores were not opened again", reported.RocksDB.Opened, reported.RocksDB.Closed)
		}
		return expected.checkRunning(reported)
	})
	checkApplication(t, p, expected)
	p.stop(t)
	return again
}

// checkBounds checks that the plan of these tests is active.
func checkBounds(t *testing.T, reported report.Report) {
	t.Helper()
	if got := reported.RocksDB; got.CacheCapacity != planCache || got.WriteBufferManager != planManager {
		t.Errorf("cache of %d and manager of %d, want %d and %d", got.CacheCapacity, got.WriteBufferManager, planCache, planManager)
	}
	if diff := cmp.Diff(report.Plan{OnDisk: "g1", Active: "g1", Source: report.PlanMounted}, reported.Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// checkSettings checks the values and the origins of settings.
func checkSettings(t *testing.T, client report.Client) {
	t.Helper()
	for name, want := range map[string]string{
		"consumer.max.poll.records":      ownPolls + " by App",
		"main.consumer.max.poll.records": "",
		"fetch.max.bytes":                "4194304 by Plan",
		"buffered.records.per.partition": "500 by Plan",
		"buffer.memory":                  "4194304 by App",
	} {
		if got := setting(client, name); got != want {
			t.Errorf("setting %s is %q, want %q", name, got, want)
		}
	}
}

// checkApplication checks figures of the application itself, independent of the agent: the capacity of each store's cache in RocksDB's metrics, and
// the configs of the main consumer. To read the former, the application evaluates all metrics and all MBeans of Kafka.
func checkApplication(t *testing.T, p *process, expected want) {
	t.Helper()
	p.checkCapacities(t, expected.capacities())
	for name, want := range map[string]string{"fetch.max.bytes": "4194304", "max.poll.records": ownPolls} {
		if got := p.send(t, "config "+name); got != want {
			t.Errorf("the main consumer has %s=%s, want %s", name, got, want)
		}
	}
}

// checkCapacities waits until RocksDB's metrics contain the capacities. They include a store some time after it has opened.
func (p *process) checkCapacities(t *testing.T, want ...string) {
	t.Helper()
	wait(t, "RocksDB's own metrics", func(context.Context) error {
		if got := p.send(t, "beans"); !slices.Contains(want, got) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}
