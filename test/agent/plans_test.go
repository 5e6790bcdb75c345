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

	"streamweir.dev/streamweir/assignment"
)

// plans are plans that an operator of today does not write.
func plans() map[string]scenario {
	all := map[string]scenario{
		"plan broken between segments": {everywhere: true, run: brokenPlan},
		"plan with unknown keys":       {run: newerOperator},
		"plan of another schema only": {everywhere: true, run: func(t *testing.T, w *world) {
			w.bootstrap(t, "NoPlan", map[string]string{"plan.v2.properties": properties(goodPlan()), "revision": "g1"})
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
		all["plan "+name] = scenario{everywhere: name == "negative", run: func(t *testing.T, w *world) {
			w.bootstrap(t, "PlanUnreadable", map[string]string{propertiesV1: properties(with(goodPlan(), plan)), "revision": "g1"})
		}}
	}
	for name, plan := range map[string]map[string]string{
		"made for a larger pod":       {"limit.bytes": fmt.Sprint(1 << 49), "rocksdb.cache.bytes": fmt.Sprint(1 << 48)},
		"that lies about the limit":   {"limit.bytes": "1", "rocksdb.cache.bytes": fmt.Sprint(1 << 50)},
		"that is silent on the limit": {"limit.bytes": "", "heap.bytes": "", "rocksdb.cache.bytes": fmt.Sprint(1 << 50)},
	} {
		all["plan "+name] = scenario{everywhere: name == "that lies about the limit", run: func(t *testing.T, w *world) { w.clamped(t, plan) }}
	}
	return all
}

// bootstrap runs an application with a plan that must not be read: the bounds are the agent's own, and nothing is injected.
func (w *world) bootstrap(t *testing.T, finding string, files map[string]string) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	volume := &planVolume{path: t.TempDir()}
	volume.publish(t, files)
	app := w.plain(t, java, newest, topic, nil)
	app.plan = volume.path
	p := w.started(t, topic, app)
	report := p.eventually(t, "the application as it runs", want{kafka: newest, bounded: assignment.BoundedInForce, findings: []string{finding}}.checkRunning)
	if report.Plan.Source != assignment.PlanBootstrap || report.Plan.InForce != "" {
		t.Errorf("plan %+v, want the agent's own bounds", report.Plan)
	}
	if report.RocksDB.CacheCapacity <= 0 {
		t.Errorf("a cache of %d bytes", report.RocksDB.CacheCapacity)
	}
	p.checkCapacities(t, fmt.Sprintf("capacities %d", report.RocksDB.CacheCapacity))
	if got, want := p.ask(t, "config fetch.max.bytes"), "null"; got != want {
		t.Errorf("the main consumer is given fetch.max.bytes=%s, want none", got)
	}
	p.ask(t, "thread")
	p.stop(t)
	p.checkFindings(t, finding)
	w.table.add(t, id(t)+"; Kafka Streams "+newest, java, "bounded by the agent's own bounds", finding)
}

// clamped runs an application with a plan that asks for more than the machine has.
func (w *world) clamped(t *testing.T, changes map[string]string) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, with(goodPlan(), changes)).path
	p := w.started(t, topic, app)
	report := p.eventually(t, "the application as it runs", want{
		kafka: newest, bounded: assignment.BoundedInForce, findings: []string{"PlanClamped"},
	}.checkRunning)
	const machine = 64 << 30 // more than any machine that runs this test lends to one process
	if cache := report.RocksDB.CacheCapacity; cache <= 0 || cache > machine || report.Plan.Source != assignment.PlanClamped {
		t.Errorf("a cache of %d bytes, %+v, want one that is clamped to the memory of the machine", cache, report.Plan)
	}
	p.stop(t)
	w.table.add(t, id(t)+"; Kafka Streams "+newest, java, "bounded, clamped to the memory there is", "PlanClamped")
}

// newerOperator runs an application with a plan that knows more than the agent.
func newerOperator(t *testing.T, w *world) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, with(goodPlan(), map[string]string{
		"rocksdb.hyper.clock.bytes": "1", "streams.group.protocol": "none", "streams.bootstrap.servers": "127.0.0.1:1", "something": "else",
	})).path
	exercise(t, w.started(t, topic, app), want{kafka: newest, bounded: assignment.BoundedInForce}, "thread", "restart")
	w.table.add(t, id(t)+"; Kafka Streams "+newest, java, "bounded; what it does not know is left out", "")
}

// brokenPlan breaks the plan while segments of a window store open one after the other: bounded or not is decided once, and a segment that
// differs from the others would end the stream thread.
func brokenPlan(t *testing.T, w *world) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	volume := newPlan(t, goodPlan())
	app := w.plain(t, java, newest, topic, map[string]string{"app.retention.seconds": "600", "metrics.recording.level": "DEBUG"})
	app.plan = volume.path
	p := w.started(t, topic, app)
	expected := want{kafka: newest, bounded: assignment.BoundedInForce}
	last := p.eventually(t, "the first segments", expected.checkRunning)

	const interval = 5 * time.Minute // of the segments of a store that keeps 10 minutes
	current := filepath.Join(volume.path, "..data", propertiesV1)
	half := properties(goodPlan())
	steps := []struct {
		name     string
		spoil    func() error
		onDisk   string
		findings []string
	}{
		{name: "as it was", spoil: func() error { return nil }, onDisk: "g1"},
		{name: "garbage", spoil: func() error { return os.WriteFile(current, []byte("\x00\xff\\u12 = \x00"), 0o600) },
			onDisk: "g1", findings: []string{"PlanUnreadable"}},
		{name: "half written", spoil: func() error { return os.WriteFile(current, []byte(half[:len(half)/2]), 0o600) },
			onDisk: "g1", findings: []string{"PlanUnreadable"}},
		{name: "removed", spoil: func() error { return os.Remove(current) }, onDisk: "g1", findings: []string{"NoPlan", "PlanUnreadable"}},
	}
	for i, step := range steps {
		if err := step.spoil(); err != nil {
			t.Fatal(err)
		}
		w.produce(t, topic, records, firstTime().Add(time.Duration(i+1)*interval))
		p.ask(t, fmt.Sprintf("running %d", (i+2)*records))
		expected.findings = step.findings
		opened := last.RocksDB.Opened
		last = p.eventually(t, "the segments after the plan was "+step.name, func(report assignment.Report) error {
			if report.RocksDB.Opened < opened+partitions {
				return fmt.Errorf("opened %d, want %d more than %d", report.RocksDB.Opened, partitions, opened)
			}
			return expected.checkRunning(report)
		})
		checkBounds(t, last)
		checkReality(t, p, expected)
	}
	volume.publish(t, map[string]string{
		propertiesV1: properties(with(goodPlan(), map[string]string{"rocksdb.cache.bytes": fmt.Sprint(2 * planCache), "rocksdb.arena.block.bytes": "32768"})),
		"revision": "g2", "jvm.options": "",
	})
	p.ask(t, "thread")
	last = p.eventually(t, "the next plan", func(report assignment.Report) error {
		if diff := cmp.Diff(assignment.ReportedPlan{OnDisk: "g2", InForce: "g2", Source: assignment.PlanMounted}, report.Plan); diff != "" {
			return fmt.Errorf("plan (-want +got):\n%s", diff)
		}
		return expected.checkRunning(report)
	})
	if last.RocksDB.CacheCapacity != planCache || last.RocksDB.ArenaBlock != 32768 {
		t.Errorf("after the next plan %+v, want the cache of the first and the arena blocks of the second", last.RocksDB)
	}
	checkReality(t, p, expected)
	p.stop(t)
	w.table.add(t, id(t)+"; Kafka Streams "+newest, java, "no thread dies, the last good plan stays", "PlanUnreadable, NoPlan")
}
