// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

const (
	// manyReports is how many are asked for while tasks move without a pause.
	manyReports = 10_000
	// askers ask at the same time.
	askers = 4
)

// rebalances are groups that never come to rest.
func rebalances() map[string]scenario {
	all := map[string]scenario{}
	for _, version := range []string{oldest, newest} {
		all["reports during rebalances of Kafka Streams "+version] = scenario{everywhere: version == newest, run: func(t *testing.T, w *world) {
			reportsDuringRebalances(t, w, version)
		}}
	}
	return all
}

// reportsDuringRebalances runs two instances of an application: one adds and removes stream threads, the other closes and opens itself. A
// report that read a figure of a store that closes would end the JVM.
func reportsDuringRebalances(t *testing.T, w *world, version string) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	var instances []*process
	for _, churn := range []string{"thread", "restart"} {
		app := w.plain(t, java, version, topic, nil)
		app.plan, app.agent = newPlan(t, goodPlan()).path, w.agent
		p := start(t, app)
		p.ready(t)
		p.ask(t, "running 0")
		p.ask(t, "churn on "+churn)
		instances = append(instances, p)
	}
	w.produce(t, topic, records, firstTime())
	var asked, answered atomic.Int64
	var all sync.WaitGroup
	for i := range askers {
		all.Go(func() {
			p := instances[i%len(instances)]
			for asked.Add(1) <= manyReports {
				if err := p.sound(t.Context()); err != nil {
					t.Errorf("report %d: %v", asked.Load(), err)
					return
				}
				answered.Add(1)
			}
		})
	}
	all.Wait()
	var moves []string
	for _, p := range instances {
		moves = append(moves, strings.TrimPrefix(p.ask(t, "churn off"), "rebalances "))
		p.ask(t, "running 0")
		p.stop(t)
	}
	if answered.Load() != manyReports {
		t.Errorf("%d reports, want %d", answered.Load(), manyReports)
	}
	t.Logf("%d reports during %s rebalances", answered.Load(), strings.Join(moves, " and "))
	w.table.add(t, "two instances in continuous rebalance; Kafka Streams "+version, java, fmt.Sprintf("%d reports, no crash", manyReports),
		fmt.Sprintf("%s cycles of threads and restarts", strings.Join(moves, " and ")))
}

// sound gets a report, and says what is wrong with it at any time.
func (p *process) sound(ctx context.Context) error {
	reported, err := p.report(ctx)
	if err != nil {
		return err
	}
	if reported.Bounded == report.BoundedOff || len(reported.Findings) > 0 || reported.RocksDB.Closed > reported.RocksDB.Opened {
		return fmt.Errorf("not sound: %s", text(reported))
	}
	return nil
}
