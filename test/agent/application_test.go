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
	// records is how many each application is given.
	records = 200
	// ownPolls is consumer.max.poll.records as the applications set it: the plan's, with a prefix that would win, must not undo it.
	ownPolls = "77"
)

func (w *world) connect(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatalf("client of the broker: %v", err)
	}
	w.client = client
	t.Cleanup(client.Close)
}

// topic creates a topic of the test's name.
func (w *world) topic(t *testing.T) string {
	t.Helper()
	return w.topicOf(t, id(t))
}

// topicOf creates a topic of a name.
func (w *world) topicOf(t *testing.T, name string) string {
	t.Helper()
	if _, err := kadm.NewClient(w.client).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	return name
}

// id is the test's name as Kafka takes it for a topic.
func id(t testing.TB) string {
	return topicName(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
}

func topicName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, name)
}

// produce writes records of one time to all partitions of a topic.
func (w *world) produce(t *testing.T, topic string, number int, at time.Time) {
	t.Helper()
	batch := make([]*kgo.Record, 0, number)
	for i := range number {
		batch = append(batch, &kgo.Record{
			Topic: topic, Partition: int32(i % partitions), Timestamp: at,
			Key: fmt.Appendf(nil, "customer-%d", i), Value: fmt.Appendf(nil, "order %d", i),
		})
	}
	if err := w.client.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
		t.Fatalf("produce %d records to %s: %v", number, topic, err)
	}
}

// firstTime is the time of an application's first records, at the beginning of a segment of its window store.
func firstTime() time.Time { return time.Now().Add(-10 * time.Minute).Truncate(time.Minute) }

// streamsConfigs are the configs of an application that reads a topic, in Kafka Streams' own names. They have no secret but a false one.
func (w *world) streamsConfigs(t *testing.T, topic string) map[string]string {
	return map[string]string{
		"application.id": topic, "bootstrap.servers": w.broker.Bootstrap, "state.dir": t.TempDir(),
		"commit.interval.ms": "200", "num.stream.threads": "1", "consumer.auto.offset.reset": "earliest",
		// What a client that opens again waits for, since Kafka Streams does not leave its group when it closes; a broker takes no less.
		"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "1000",
		"consumer.max.poll.records": ownPolls, "buffer.memory": "4194304",
		"main.consumer.interceptor.classes": "dev.streamweir.agenttest.ConfigProbe",
	}
}

// arguments are configs as the plain application takes them.
func arguments(topic string, configs map[string]string) []string {
	list := []string{"app.topic=" + topic}
	for key, value := range configs {
		list = append(list, key+"="+value)
	}
	return list
}

// classPath is that of the plain application with a version of Kafka Streams.
func (w *world) classPath(version string) string {
	return filepath.Join(w.built, "classes") + ":" + filepath.Join(w.built, "lib", version, "*")
}

// plain is the application on a plain class path, with these configs beside the usual ones.
func (w *world) plain(t *testing.T, java jvm, version, topic string, configs map[string]string) program {
	t.Helper()
	all := with(w.streamsConfigs(t, topic), configs)
	return program{
		jvm:     java,
		options: []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", w.classPath(version)},
		run:     append([]string{"dev.streamweir.agenttest.Main"}, arguments(topic, all)...),
	}
}

// started starts an application on a topic with records, and waits until it has processed them.
func (w *world) started(t *testing.T, topic string, p program) *process {
	t.Helper()
	p.agent = w.agent
	w.produce(t, topic, records, firstTime())
	running := start(t, p)
	running.ready(t)
	running.ask(t, fmt.Sprintf("running %d", records))
	return running
}

// want is what is expected of the report of an application that runs.
type want struct {
	kafka   string
	bounded report.Boundedness
	// clients is the number of KafkaStreams objects; one if 0.
	clients int
	// capacity is that of every store's cache; the plan's if 0.
	capacity int64
	// findings are the reasons of all findings.
	findings []string
}

// capacities is what the application reads in RocksDB's metrics. Older releases count a cache once for each of the two column families of a
// store (measured: 2.8.2 and 3.4.1 do, 3.9.1 does not).
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

// checkRunning says what a report lacks of an application with all its tasks and stores.
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

// exercise takes an application with the good plan through its life: it processes records, its own monitoring reads all metrics, its tasks are
// closed and opened again, it ends in order; and all the time the agent tells the truth. It gives the last report.
func exercise(t *testing.T, p *process, w want, restarts ...string) report.Report {
	t.Helper()
	first := p.eventually(t, "the application as it runs", w.checkRunning)
	checkBounds(t, first)
	for _, client := range first.Clients {
		checkSettings(t, client)
	}
	checkReality(t, p, w)
	for _, restart := range restarts {
		p.ask(t, restart)
	}
	again := p.eventually(t, "the application after "+strings.Join(restarts, " and "), func(reported report.Report) error {
		if reported.RocksDB.Opened <= first.RocksDB.Opened || reported.RocksDB.Closed == 0 {
			return fmt.Errorf("opened %d, closed %d: the stores were not opened again", reported.RocksDB.Opened, reported.RocksDB.Closed)
		}
		return w.checkRunning(reported)
	})
	checkReality(t, p, w)
	p.stop(t)
	return again
}

// checkBounds checks that the plan of these tests is in force.
func checkBounds(t *testing.T, reported report.Report) {
	t.Helper()
	if got := reported.RocksDB; got.CacheCapacity != planCache || got.WriteBufferManager != planManager {
		t.Errorf("cache of %d and manager of %d, want %d and %d", got.CacheCapacity, got.WriteBufferManager, planCache, planManager)
	}
	if diff := cmp.Diff(report.Plan{OnDisk: "g1", Active: "g1", Source: report.PlanMounted}, reported.Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// checkSettings checks who set what.
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

// checkReality asks the application, not the agent: RocksDB's own figure for the capacity of each store's cache, and the configs with which the
// main consumer was made. To get the first, it evaluates all metrics and all MBeans of Kafka.
func checkReality(t *testing.T, p *process, w want) {
	t.Helper()
	p.checkCapacities(t, w.capacities())
	for name, want := range map[string]string{"fetch.max.bytes": "4194304", "max.poll.records": ownPolls} {
		if got := p.ask(t, "config "+name); got != want {
			t.Errorf("the main consumer has %s=%s, want %s", name, got, want)
		}
	}
}

// checkCapacities waits until RocksDB's metrics have the capacities: they show a store's some time after it has opened.
func (p *process) checkCapacities(t *testing.T, want ...string) {
	t.Helper()
	wait(t, "RocksDB's own metrics", func(context.Context) error {
		if got := p.ask(t, "beans"); !slices.Contains(want, got) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}
