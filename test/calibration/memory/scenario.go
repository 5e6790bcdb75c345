// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"streamweir.dev/streamweir/memplan"
)

// scenario is an application with its data and its load.
type scenario struct {
	// Name is short, Title is for the tables.
	Name, Title string
	// Topology is the application's argument; Stores is the number of stores of a key-value task; Joined is set if it reads two topics.
	Topology string
	Stores   int
	Joined   bool
	// Output is set if it also writes its input to a topic.
	Output bool
	// Instances, each with that many stream Threads. If there are several, one of them fails.
	Instances, Threads int
	// Tasks is the number of partitions of each input topic.
	Tasks int
	// Keys is the number of keys of each input topic, with values of ValueBytes. Updates go to the first Hot of them; 0: to all.
	Keys, Hot, ValueBytes int
	// Rate is the number of updates per second; timestamps advance Speed times faster than the clock.
	Rate  int
	Speed float64
	// Steady is the duration of each phase of steady updates.
	Steady time.Duration
	// Cache is the size of the shared cache in the plan.
	Cache memplan.Bytes
	// Configs are further configs of the application.
	Configs map[string]string
}

// Retention of the stores of the applications (test/java/.../MeasuredTopologies.java), in milliseconds.
const (
	windowRetention  = 4 * 60_000 // windows of 2 minutes and 2 minutes of grace
	sessionRetention = 3 * 60_000 // a gap of 1 minute and 2 minutes of grace
	joinRetention    = 3 * 60_000 // 1 minute before, 1 after, 1 of grace
	suppressBytes    = 2 * memplan.MiB
)

// scenarios are those of `make calibrate`.
func scenarios() []scenario {
	base := scenario{
		Topology: "key-value", Stores: 1, Instances: 2, Threads: 2, Tasks: 8, Keys: 120_000, ValueBytes: 1000, Rate: 2500, Speed: 1,
		Steady: 25 * time.Second, Cache: 96 * memplan.MiB,
	}
	with := func(name, title string, change func(*scenario)) scenario {
		s := base
		s.Name, s.Title = name, title
		change(&s)
		return s
	}
	return []scenario{
		with("key-value", "3 key-value stores per task", func(s *scenario) { s.Stores = 3 }),
		with("window", "windows of 2 min with 2 min of grace", func(s *scenario) { s.Topology, s.Speed, s.Steady = "window", 6, time.Minute }),
		with("session", "sessions", func(s *scenario) { s.Topology, s.Speed, s.Keys = "session", 6, 60_000 }),
		with("join", "left join of two streams", func(s *scenario) { s.Topology, s.Joined, s.Speed, s.Keys = "join", true, 4, 60_000 }),
		with("foreign-key", "foreign-key join of two tables", func(s *scenario) { s.Topology, s.Joined, s.Keys, s.Rate = "foreign-key", true, 40_000, 1500 }),
		with("versioned", "versioned store", func(s *scenario) { s.Topology, s.Speed = "versioned", 6 }),
		with("global", "join with a global table", func(s *scenario) { s.Topology, s.Joined, s.Keys = "global", true, 100_000 }),
		with("suppress", "windows with suppress", func(s *scenario) { s.Topology, s.Speed, s.Keys, s.Steady = "suppress", 6, 100_000, time.Minute }),
		with("zstd", "key-value, zstd producers", func(s *scenario) {
			s.Output, s.Tasks = true, 16
			s.Configs = map[string]string{"producer.compression.type": "zstd"}
		}),
		with("standbys", "key-value, one standby replica", func(s *scenario) { s.Configs = map[string]string{"num.standby.replicas": "1"} }),
		with("exactly-once", "key-value, exactly once", func(s *scenario) {
			s.Output, s.Configs = true, map[string]string{"processing.guarantee": "exactly_once_v2"}
		}),
		with("transactional", "key-value, transactional stores", func(s *scenario) {
			s.Configs = map[string]string{"processing.guarantee": "exactly_once_v2", "enable.transactional.statestores": "true"}
		}),
		with("many", "240 stores in one instance", func(s *scenario) {
			s.Stores, s.Tasks = 12, 20
			s.Keys, s.Rate = 25_000, 800
			s.Cache = 256 * memplan.MiB
		}),
		with("cache-64", "key-value, cache of 64 MiB", func(s *scenario) { s.Cache = 64 * memplan.MiB }),
		with("cache-256", "key-value, cache of 256 MiB", func(s *scenario) { s.Stores, s.Cache = 3, 256*memplan.MiB }),
		with("cache-1024", "key-value, cache of 1 GiB", func(s *scenario) {
			s.Keys, s.ValueBytes = 200_000, 8000
			s.Rate = 2500
			s.Cache = memplan.GiB
			s.Steady = 2 * time.Minute
			s.Configs = map[string]string{"max.poll.records": "200", "buffered.records.per.partition": "200"}
		}),
	}
}

// fragmentation is the scenario of the long run: one instance under steady updates, so that changes over time are due to the allocator.
func fragmentation() scenario {
	return scenario{
		Name: "fragmentation", Title: "key-value and windows, one instance", Topology: "mixed", Stores: 1, Instances: 1, Threads: 2, Tasks: 6,
		Keys: 200_000, ValueBytes: 800, Rate: 1000, Speed: 1, Cache: 192 * memplan.MiB,
	}
}

// find returns the scenario of a name.
func find(name string) (scenario, error) {
	all := scenarios()
	i := slices.IndexFunc(all, func(s scenario) bool { return s.Name == name })
	if i < 0 {
		return scenario{}, fmt.Errorf("unknown scenario %q", name)
	}
	return all[i], nil
}

// configs are the configs of Kafka Streams and its clients that the application sets itself.
func (s *scenario) configs() map[string]string {
	all := map[string]string{
		"num.stream.threads":             fmt.Sprint(s.Threads),
		"default.key.serde":              "org.apache.kafka.common.serialization.Serdes$ByteArraySerde",
		"default.value.serde":            "org.apache.kafka.common.serialization.Serdes$ByteArraySerde",
		"topic.segment.bytes":            "33554432", // so that the broker's disk holds the changelogs
		"consumer.auto.offset.reset":     "earliest",
		"consumer.session.timeout.ms":    "6000", // the smallest value that a broker accepts: a killed instance is detected after that
		"consumer.heartbeat.interval.ms": "1000",
	}
	maps.Copy(all, s.Configs)
	return all
}

// workload is the application as the planner's input.
func (s *scenario) workload() (memplan.Workload, error) {
	w := memplan.NewWorkload(memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.App))
	err := w.ApplyProperties(s.configs())
	w.Brokers = memplan.Known(1, memplan.App)
	w.Bounded = true
	w.Records.Average = memplan.Known(memplan.Bytes(keyBytes+s.ValueBytes), memplan.Measured)
	w.Subtopologies, w.GlobalStores = s.subtopologies()
	w.RocksDB.SharedCache = memplan.Known(s.Cache, memplan.Spec)
	w.JVM.HeapMode = memplan.HeapPlanned
	w.JVM.Version = memplan.Known(17, memplan.App)
	w.JVM.CPUs = memplan.Known(2, memplan.App)
	w.Allocator = memplan.Known(memplan.GlibcArenas, memplan.App)
	return w, err
}

// subtopologies are those of the topology, and its global stores.
func (s *scenario) subtopologies() ([]memplan.Subtopology, []memplan.Store) {
	sub := func(id string, inputs, written int, stores ...memplan.Store) memplan.Subtopology {
		return memplan.Subtopology{ID: id, Tasks: s.Tasks, InputPartitions: inputs, WrittenPartitions: written * s.Tasks, Stores: stores}
	}
	windows := func(name string, kind memplan.StoreKind, retention int64) memplan.Store {
		return memplan.Store{Name: name, Kind: kind, RetentionMs: memplan.Known(retention, memplan.App), Caching: kind != memplan.JoinWindow}
	}
	output := 0
	if s.Output {
		output = 1
	}
	switch s.Topology {
	case "window":
		return []memplan.Subtopology{sub("0", 1, 0, windows("windows", memplan.Window, windowRetention))}, nil
	case "mixed":
		return []memplan.Subtopology{sub("0", 1, 0, tableStore("latest-0"), windows("windows", memplan.Window, windowRetention))}, nil
	case "session":
		return []memplan.Subtopology{sub("0", 1, 0, windows("sessions", memplan.Session, sessionRetention))}, nil
	case "join":
		return []memplan.Subtopology{sub("0", 2, 0, windows("join-this", memplan.JoinWindow, joinRetention),
			windows("join-other", memplan.JoinWindow, joinRetention), memplan.Store{Name: "join-shared", Kind: memplan.OuterJoinList})}, nil
	case "foreign-key":
		return []memplan.Subtopology{
			sub("0", 2, 1, tableStore("left"), tableStore("joined")),
			sub("1", 2, 1, tableStore("right"), memplan.Store{Name: "subscriptions", Kind: memplan.ForeignKeySubscription}),
		}, nil
	case "versioned":
		return []memplan.Subtopology{sub("0", 1, 0, memplan.Store{Name: "versions", Kind: memplan.Versioned})}, nil
	case "global":
		reference := tableStore("reference")
		reference.Caching, reference.Partitions = false, s.Tasks
		return []memplan.Subtopology{sub("0", 1, 0, tableStore("latest-0"))}, []memplan.Store{reference}
	case "suppress":
		return []memplan.Subtopology{sub("0", 1, 0, windows("windows", memplan.Window, windowRetention),
			memplan.Store{Name: "suppress", Kind: memplan.Suppress, MaxSuppress: memplan.Known(suppressBytes, memplan.App)})}, nil
	default:
		var stores []memplan.Store
		for i := range s.Stores {
			stores = append(stores, tableStore(fmt.Sprintf("latest-%d", i)))
		}
		return []memplan.Subtopology{sub("0", 1, output, stores...)}, nil
	}
}

// tableStore is the store of a table or of an aggregation without windows.
func tableStore(name string) memplan.Store {
	return memplan.Store{Name: name, Kind: memplan.TimestampedKeyValue, Caching: true}
}

// arguments are the arguments of the application besides its configs.
func (s *scenario) arguments(application string) map[string]string {
	all := map[string]string{
		"app.topology":       s.Topology,
		"app.report":         "figures",
		"app.stores":         fmt.Sprint(s.Stores),
		"app.left":           application + ".left",
		"app.right":          application + ".right",
		"app.suppress.bytes": fmt.Sprint(int64(suppressBytes)),
	}
	if s.Output {
		all["app.output"] = application + ".output"
	}
	return all
}
