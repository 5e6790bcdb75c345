// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

const setterPackage = "dev.streamweir.agenttest."

// setter is an application's own RocksDBConfigSetter in apps/plain.
type setter struct {
	title, class string
	// capacity is the capacity of its caches. Zero means that it keeps the cache of Kafka Streams.
	capacity int64
	// sharesCache is set if all stores have one cache.
	sharesCache bool
	// replace is the plan's rocksdb.replace.caches.
	replace   bool
	byDefault bool
}

// setters returns applications with their own RocksDBConfigSetter.
func setters() map[string]scenario {
	all := map[string]scenario{}
	for _, s := range []setter{
		{title: "one static cache", class: "StaticCache", capacity: 7 * mib, sharesCache: true},
		{title: "one static cache to be replaced", class: "StaticCache", capacity: 7 * mib, sharesCache: true, replace: true, byDefault: true},
		{title: "a cache for each store closed in close()", class: "CachePerStore", capacity: 3 * mib, byDefault: true},
		{title: "a cache for each store to be replaced", class: "CachePerStore", capacity: 3 * mib, replace: true},
		{title: "one cache and one WriteBufferManager", class: "OwnManager", capacity: 9 * mib, sharesCache: true, byDefault: true},
		{title: "optimizeForPointLookup", class: "PointLookup", capacity: 6 * mib, byDefault: true},
		{title: "no cache but other settings", class: "OtherSettings"},
	} {
		for _, version := range []string{oldest, newest} {
			all[fmt.Sprintf("own setter with %s on Kafka Streams %s", s.title, version)] = scenario{
				byDefault: s.byDefault && version == newest,
				run:       func(t *testing.T, shared *fixture) { s.run(t, shared, version) },
			}
		}
	}
	all["own setter with PlainTable"] = scenario{byDefault: true, run: plainTable}
	all["own setter named by a variable"] = scenario{byDefault: true, run: setterVariable}
	return all
}

func (s setter) run(t *testing.T, shared *fixture, version string) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	plan := goodPlan()
	expected := want{kafka: version, bounded: report.BoundedActive, capacity: s.capacity}
	result := fmt.Sprintf("bounded; the application's caches are kept and counted (%d MiB each)", s.capacity/mib)
	if s.replace {
		plan["rocksdb.replace.caches"] = "true"
		expected.capacity = 0
		result = "bounded; the application's caches are replaced"
	}
	if s.capacity == 0 {
		result = "bounded; the application's settings stay"
	}
	app := shared.plain(t, java, version, topic, map[string]string{"rocksdb.config.setter": setterPackage + s.class})
	app.plan = newPlan(t, plan).path
	last := exercise(t, shared.started(t, topic, app), expected, "thread", "restart")
	s.checkOwnCaches(t, last.RocksDB)
	shared.table.add(t, fmt.Sprintf("own setter: %s; Kafka Streams %s", s.title, version), java, result, "")
}

// checkOwnCaches checks that the report contains the caches of the open stores and no others.
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
	if s.sharesCache {
		wantCaches = 1
	}
	if s.replace || s.capacity == 0 {
		wantListed, wantCaches = 0, 0
	}
	if listed != wantListed || len(rocksDB.OwnCaches) != wantCaches {
		t.Errorf("%d caches of %d stores are listed, want %d of %d: %+v", len(rocksDB.OwnCaches), listed, wantCaches, wantListed, rocksDB)
	}
}

// setterVariable runs an application that names its setter by a variable, which Kafka Streams resolves after the agent has read the configs.
func setterVariable(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	variables := filepath.Join(t.TempDir(), "variables.properties")
	if err := os.WriteFile(variables, []byte("setter="+setterPackage+"StaticCache\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	app := shared.plain(t, java, newest, topic, map[string]string{
		"config.providers": "file", "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
		"rocksdb.config.setter": "${file:" + variables + ":setter}",
	})
	app.plan = newPlan(t, goodPlan()).path
	p := shared.started(t, topic, app)
	p.eventually(t, "that the setter is not bounded", want{
		kafka: newest, bounded: report.BoundedOff, findings: []string{"SetterVariable", "StoreNotBounded"},
	}.checkRunning)
	p.checkCapacities(t, fmt.Sprintf("capacities %d", 7*mib))
	p.send(t, "thread")
	p.stop(t)
	p.checkFindings(t, "SetterVariable", "StoreNotBounded")
	shared.table.add(t, "own setter named by a variable of a config provider; Kafka Streams "+newest, java, "unaffected: not bounded, and a finding",
		"SetterVariable, StoreNotBounded")
}

// plainTable runs an application whose tables have no block cache, with and without the agent: the agent must not affect it. The test does not
// read its metrics: RocksDB has no metrics of a block cache, and Kafka Streams then throws an exception, with and without the agent.
func plainTable(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	setter := map[string]string{"rocksdb.config.setter": setterPackage + "PlainTables"}
	for name, plan := range map[string]string{"without the agent": "", "with the agent": newPlan(t, goodPlan()).path} {
		topic := shared.topicOf(t, id(t)+"-"+topicName(name))
		app := shared.plain(t, java, newest, topic, setter)
		app.plan = plan
		p := shared.started(t, topic, app)
		p.send(t, "thread")
		p.send(t, "restart")
		if plan != "" {
			p.eventually(t, "the running application", want{kafka: newest, bounded: report.BoundedActive}.checkRunning)
		}
		p.stop(t)
	}
	shared.table.add(t, "own setter: PlainTable; Kafka Streams "+newest, java, "runs as without the agent; memtables are bounded", "it has no block cache")
}
