// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

const setterPackage = "dev.streamweir.agenttest."

// setter is an application's own RocksDBConfigSetter, of apps/plain.
type setter struct {
	title, class string
	// capacity is that of its caches; 0: it leaves the cache alone.
	capacity int64
	// shared says that all stores have one cache.
	shared bool
	// replace is the plan's rocksdb.replace.caches.
	replace    bool
	everywhere bool
}

// setters are applications that have a RocksDBConfigSetter of their own.
func setters() map[string]scenario {
	all := map[string]scenario{}
	for _, s := range []setter{
		{title: "one static cache", class: "StaticCache", capacity: 7 * mib, shared: true},
		{title: "one static cache to be replaced", class: "StaticCache", capacity: 7 * mib, shared: true, replace: true, everywhere: true},
		{title: "a cache for each store closed in close()", class: "CachePerStore", capacity: 3 * mib, everywhere: true},
		{title: "a cache for each store to be replaced", class: "CachePerStore", capacity: 3 * mib, replace: true},
		{title: "one cache and one WriteBufferManager", class: "OwnManager", capacity: 9 * mib, shared: true, everywhere: true},
		{title: "no cache but other settings", class: "OtherSettings"},
	} {
		for _, version := range []string{oldest, newest} {
			all[fmt.Sprintf("own setter with %s on Kafka Streams %s", s.title, version)] = scenario{
				everywhere: s.everywhere && version == newest,
				run:        func(t *testing.T, w *world) { s.run(t, w, version) },
			}
		}
	}
	all["own setter with PlainTable"] = scenario{everywhere: true, run: plainTable}
	return all
}

func (s setter) run(t *testing.T, w *world, version string) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	plan := goodPlan()
	w17 := want{kafka: version, bounded: report.BoundedActive, capacity: s.capacity}
	result := fmt.Sprintf("bounded; the application's caches are kept and counted (%d MiB each)", s.capacity/mib)
	if s.replace {
		plan["rocksdb.replace.caches"] = "true"
		w17.capacity = 0
		result = "bounded; the application's caches are replaced"
	}
	if s.capacity == 0 {
		result = "bounded; the application's settings stay"
	}
	app := w.plain(t, java, version, topic, map[string]string{"rocksdb.config.setter": setterPackage + s.class})
	app.plan = newPlan(t, plan).path
	last := exercise(t, w.started(t, topic, app), w17, "thread", "restart")
	s.checkOwnCaches(t, last.RocksDB)
	w.table.add(t, fmt.Sprintf("own setter: %s; Kafka Streams %s", s.title, version), java, result, "")
}

// checkOwnCaches checks that the report lists the caches of the open stores, and no others.
func (s setter) checkOwnCaches(t *testing.T, rocksDB report.RocksDB) {
	t.Helper()
	open, listed := int(rocksDB.Opened-rocksDB.Closed), 0
	for _, cache := range rocksDB.OwnCaches {
		if cache.Capacity != s.capacity {
			t.Errorf("a cache of the application has a capacity of %d, want %d", cache.Capacity, s.capacity)
		}
		listed += cache.Stores
	}
	wantListed, wantCaches := open, open
	if s.shared {
		wantCaches = 1
	}
	if s.replace || s.capacity == 0 {
		wantListed, wantCaches = 0, 0
	}
	if listed != wantListed || len(rocksDB.OwnCaches) != wantCaches {
		t.Errorf("%d caches of %d stores are listed, want %d of %d: %+v", len(rocksDB.OwnCaches), listed, wantCaches, wantListed, rocksDB)
	}
}

// plainTable runs an application whose tables have no block cache, with and without the agent: it must not notice. Its metrics are not
// read: RocksDB has none of a block cache, and Kafka Streams makes an exception of that, with and without the agent.
func plainTable(t *testing.T, w *world) {
	java := needJVM(t, 17)
	setter := map[string]string{"rocksdb.config.setter": setterPackage + "PlainTables"}
	for name, plan := range map[string]string{"without the agent": "", "with the agent": newPlan(t, goodPlan()).path} {
		topic := w.topicOf(t, id(t)+"-"+topicName(name))
		app := w.plain(t, java, newest, topic, setter)
		app.plan = plan
		p := w.started(t, topic, app)
		p.ask(t, "thread")
		p.ask(t, "restart")
		if plan != "" {
			p.eventually(t, "the application as it runs", want{kafka: newest, bounded: report.BoundedActive}.checkRunning)
		}
		p.stop(t)
	}
	w.table.add(t, "own setter: PlainTable; Kafka Streams "+newest, java, "runs as without the agent; memtables are bounded", "it has no block cache")
}
