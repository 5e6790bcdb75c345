// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

const (
	// idleCache and idleManager are a plan with a small cache: 37.5 MiB with 15 MiB for memtables, as for 24 stores in a pod of 760 MiB.
	idleCache   = 75 * mib / 2
	idleManager = 15 * mib
)

// memtables returns applications with many stores of which one is busy. The others keep the memory of their memtables, unless they are flushed.
func memtables() map[string]scenario {
	all := map[string]scenario{}
	for _, version := range []string{oldest, "4.3.1", newest} {
		all["idle stores of Kafka Streams "+version] = scenario{
			byDefault: version == newest,
			run:       func(t *testing.T, shared *fixture) { idleStores(t, shared, version) },
		}
	}
	return all
}

// idleProgram runs the application of IdleStores.java.
func idleProgram(java jvm, classPath, agent, plan string, stores int) program {
	return program{
		jvm: java, agent: agent, plan: plan, options: []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classPath},
		run: []string{"org.apache.kafka.streams.state.internals.IdleStores", strconv.Itoa(stores)},
	}
}

func idlePlan(tb testing.TB) string {
	tb.Helper()
	return newPlan(tb, with(goodPlan(), map[string]string{
		"rocksdb.cache.bytes": fmt.Sprint(idleCache), "rocksdb.write.buffer.manager.bytes": fmt.Sprint(idleManager),
	})).path
}

// idleStores restores 24 stores and writes to one: as soon as the idle memtables are flushed, the busy store no longer flushes with each write.
func idleStores(t *testing.T, shared *fixture, version string) {
	java := needJVM(t, 17)
	p := start(t, idleProgram(java, shared.classPath(version), shared.agent, idlePlan(t), 24))
	p.ready(t)
	p.awaitFullMemtables(t)
	for range 10 { // stores close while the agent measures and flushes their memtables
		p.send(t, "reopen")
	}
	p.awaitFullMemtables(t)
	p.stop(t)
	p.checkFindings(t)
	shared.table.add(t, "24 idle stores after a restore, one busy; Kafka Streams "+version, java,
		"the busy store flushes full memtables after two seconds", "")
}

// awaitFullMemtables waits until the busy store flushes rarely: each flush adds at least a version, and a memtable holds far more than ten records.
func (p *process) awaitFullMemtables(t *testing.T) {
	t.Helper()
	const writes = 3000
	var versions int
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for deadline := time.Now().Add(maxWait); time.Now().Before(deadline); <-tick.C {
		result := p.send(t, fmt.Sprintf("writes %d", writes))
		var err error
		if versions, err = strconv.Atoi(result); err != nil {
			t.Fatalf("versions: %v", err)
		}
		if versions < writes/10 {
			return
		}
	}
	t.Fatalf("%d writes to the busy store made %d versions: its memtables are flushed before they are full", writes, versions)
}

// BenchmarkIdleStores measures the reads and writes of one busy store beside idle ones after a restore, with the agent and without it.
func BenchmarkIdleStores(b *testing.B) {
	shared := &fixture{built: applications(b), agent: copyJar(b)}
	java := needJVM(b, 17)
	for _, stores := range []int{24, 60, 120} {
		for name, plan := range map[string]string{"without the agent": "", "with the agent": idlePlan(b)} {
			b.Run(fmt.Sprintf("%d stores/%s", stores, name), func(b *testing.B) {
				p := start(b, idleProgram(java, shared.classPath(newest), shared.agent, plan, stores))
				p.ready(b)
				p.send(b, "rate 5000") // the agent measures every second, and a rate needs two measurements
				var sum float64
				for b.Loop() {
					rate, err := strconv.ParseFloat(p.send(b, "rate 5000"), 64)
					if err != nil {
						b.Fatal(err)
					}
					sum += rate
				}
				b.ReportMetric(sum/float64(b.N), "writes/s")
			})
		}
	}
}
