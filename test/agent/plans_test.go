// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
)

// plans returns applications with plans that the present operator does not write.
func plans() map[string]scenario {
	all := map[string]scenario{
		"plan broken between segments": {byDefault: true, run: brokenPlan},
		"plan with unknown keys":       {run: newerOperator},
		"plan of another schema only": {byDefault: true, run: func(t *testing.T, shared *fixture) {
			shared.bootstrap(t, "NoPlan", map[string]string{"plan.v2.properties": properties(goodPlan()), planfile.RevisionKey: "g1"})
		}},
	}
	for name, plan := range map[string]map[string]string{
		"negative":          {"rocksdb.cache.bytes": "-1"},
		"not a number":      {"rocksdb.write.buffer.manager.bytes": "many"},
		"too large":         {"rocksdb.cache.bytes": "9223372036854775807"},
		"larger than that":  {"rocksdb.arena.block.bytes": "99999999999999999999"},
		"setting negative":  {"streams.fetch.max.bytes": "-5"},
		"without the cache": {"rocksdb.cache.bytes": ""},
	} {
		all["plan "+name] = scenario{byDefault: name == "negative", run: func(t *testing.T, shared *fixture) {
			shared.bootstrap(t, "PlanUnreadable", map[string]string{planfile.PropertiesKey: properties(with(goodPlan(), plan)), planfile.RevisionKey: "g1"})
		}}
	}
	for name, plan := range map[string]map[string]string{
		"made for a larger pod":       {"limit.bytes": fmt.Sprint(1 << 49), "rocksdb.cache.bytes": fmt.Sprint(1 << 48)},
		"that lies about the limit":   {"limit.bytes": "1", "rocksdb.cache.bytes": fmt.Sprint(1 << 50)},
		"that is silent on the limit": {"limit.bytes": "", "heap.bytes": "", "rocksdb.cache.bytes": fmt.Sprint(1 << 50)},
	} {
		all["plan "+name] = scenario{byDefault: name == "that lies about the limit", run: func(t *testing.T, shared *fixture) { shared.clamped(t, plan) }}
	}
	return all
}

// bootstrap runs an application with an invalid plan: the agent uses its bootstrap bounds and injects nothing.
func (f *fixture) bootstrap(t *testing.T, finding string, files map[string]string) {
	java := needJVM(t, 17)
	topic := f.topic(t)
	volume := &planVolume{path: t.TempDir()}
	volume.publish(t, files)
	app := f.plain(t, java, newest, topic, nil)
	app.plan = volume.path
	p := f.started(t, topic, app)
	reported := p.eventually(t, "the running application", want{kafka: newest, bounded: report.BoundedActive, findings: []string{finding}}.checkRunning)
	if reported.Plan.Source != report.PlanBootstrap || reported.Plan.Active != "" {
		t.Errorf("plan %+v, want bootstrap bounds", reported.Plan)
	}
	if reported.RocksDB.CacheCapacity <= 0 {
		t.Errorf("a cache of %d bytes", reported.RocksDB.CacheCapacity)
	}
	p.checkCapacities(t, fmt.Sprintf("capacities %d", reported.RocksDB.CacheCapacity))
	if got, want := p.send(t, "config fetch.max.bytes"), "null"; got != want {
		t.Errorf("the main consumer has fetch.max.bytes=%s, want none", got)
	}
	p.send(t, "thread")
	p.stop(t)
	p.checkFindings(t, finding)
	f.table.add(t, id(t)+"; Kafka Streams "+newest, java, "bounded by the agent's bootstrap bounds", finding)
}

// clamped runs an application with a plan for more memory than the machine has.
func (f *fixture) clamped(t *testing.T, changes map[string]string) {
	java := needJVM(t, 17)
	topic := f.topic(t)
	app := f.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, with(goodPlan(), changes)).path
	p := f.started(t, topic, app)
	reported := p.eventually(t, "the running application", want{
		kafka: newest, bounded: report.BoundedActive, findings: []string{"PlanClamped"},
	}.checkRunning)
	const machine = 64 << 30 // more than the memory of one process on any machine of this test
	if cache := reported.RocksDB.CacheCapacity; cache <= 0 || cache > machine || reported.Plan.Source != report.PlanClamped {
		t.Errorf("a cache of %d bytes, %+v, want it clamped to the memory of the machine", cache, reported.Plan)
	}
	p.stop(t)
	f.table.add(t, id(t)+"; Kafka Streams "+newest, java, "bounded, clamped to the available memory", "PlanClamped")
}

// newerOperator runs an application with a plan whose keys are partly unknown to the agent.
func newerOperator(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, with(goodPlan(), map[string]string{
		"rocksdb.hyper.clock.bytes": "1", "streams.group.protocol": "none", "streams.bootstrap.servers": "127.0.0.1:1", "something": "else",
	})).path
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	shared.table.add(t, id(t)+"; Kafka Streams "+newest, java, "bounded; unknown keys are ignored", "")
}

// brokenPlan damages the plan while segments of a window store open one after the other. The decision for or against bounds is final: a segment
// that differs from the others would end the stream thread.
func brokenPlan(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	volume := newPlan(t, goodPlan())
	app := shared.plain(t, java, newest, topic, map[string]string{"app.retention.seconds": "600", "metrics.recording.level": "DEBUG"})
	app.plan = volume.path
	p := shared.started(t, topic, app)
	expected := want{kafka: newest, bounded: report.BoundedActive}
	last := p.eventually(t, "the first segments", expected.checkRunning)

	const interval = 5 * time.Minute // of the segments of a store with a retention of 10 minutes
	current := filepath.Join(volume.path, "..data", planfile.PropertiesKey)
	half := properties(goodPlan())
	steps := []struct {
		name     string
		damage   func() error
		onDisk   string
		findings []string
	}{
		{name: "unchanged", damage: func() error { return nil }, onDisk: "g1"},
		{name: "garbage", damage: func() error { return os.WriteFile(current, []byte("\x00\xff\\u12 = \x00"), 0o600) },
			onDisk: "g1", findings: []string{"PlanUnreadable"}},
		{name: "half written", damage: func() error { return os.WriteFile(current, []byte(half[:len(half)/2]), 0o600) },
			onDisk: "g1", findings: []string{"PlanUnreadable"}},
		{name: "removed", damage: func() error { return os.Remove(current) }, onDisk: "g1", findings: []string{"NoPlan", "PlanUnreadable"}},
	}
	for i, step := range steps {
		if err := step.damage(); err != nil {
			t.Fatal(err)
		}
		shared.produce(t, topic, records, firstTime().Add(time.Duration(i+1)*interval))
		p.send(t, fmt.Sprintf("running %d", (i+2)*records))
		expected.findings = step.findings
		opened := last.RocksDB.Opened
		last = p.eventually(t, "segments with the plan "+step.name, func(reported report.Report) error {
			if reported.RocksDB.Opened < opened+partitions {
				return fmt.Errorf("opened %d, want %d more than %d", reported.RocksDB.Opened, partitions, opened)
			}
			return expected.checkRunning(reported)
		})
		checkBounds(t, last)
		checkApplication(t, p, expected)
	}
	volume.publish(t, map[string]string{
		planfile.PropertiesKey: properties(with(goodPlan(), map[string]string{"rocksdb.cache.bytes": fmt.Sprint(2 * planCache), "rocksdb.arena.block.bytes": "32768"})),
		planfile.RevisionKey:   "g2", planfile.OptionsKey: "",
	})
	p.send(t, "thread")
	last = p.eventually(t, "the next plan", func(reported report.Report) error {
		if diff := cmp.Diff(report.Plan{OnDisk: "g2", Active: "g2", Source: report.PlanMounted}, reported.Plan); diff != "" {
			return fmt.Errorf("plan (-want +got):\n%s", diff)
		}
		return expected.checkRunning(reported)
	})
	if last.RocksDB.CacheCapacity != planCache || last.RocksDB.ArenaBlock != 32768 {
		t.Errorf("after the next plan %+v, want the cache of the first plan and the arena block of the second", last.RocksDB)
	}
	checkApplication(t, p, expected)
	p.stop(t)
	shared.table.add(t, id(t)+"; Kafka Streams "+newest, java, "no thread ends; the last good plan stays active", "PlanUnreadable, NoPlan")
}
