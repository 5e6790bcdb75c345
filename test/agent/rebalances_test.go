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
	// manyReports is the number of reports during continuous rebalances.
	manyReports = 10_000
	// readers is the number of concurrent readers of reports.
	readers = 4
)

// rebalances returns groups in continuous rebalance.
func rebalances() map[string]scenario {
	all := map[string]scenario{}
	for _, version := range []string{oldest, newest} {
		all["reports during rebalances of Kafka Streams "+version] = scenario{byDefault: version == newest, run: func(t *testing.T, shared *fixture) {
			reportsDuringRebalances(t, shared, version)
		}}
	}
	return all
}

// reportsDuringRebalances runs two instances of an application: one adds and removes stream threads, the other restarts itself. A report that
// reads a figure of a closing store would crash the JVM.
func reportsDuringRebalances(t *testing.T, shared *fixture, version string) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	var instances []*process
	for _, churn := range []string{"thread", "restart"} {
		app := shared.plain(t, java, version, topic, nil)
		app.plan, app.agent = newPlan(t, goodPlan()).path, shared.agent
		p := start(t, app)
		p.ready(t)
		p.send(t, "running 0")
		p.send(t, "churn on "+churn)
		instances = append(instances, p)
	}
	shared.produce(t, topic, records, firstTime())
	var requested, received atomic.Int64
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() {
			p := instances[i%len(instances)]
			for requested.Add(1) <= manyReports {
				if err := p.checkReport(t.Context()); err != nil {
					t.Errorf("report %d: %v", requested.Load(), err)
					return
				}
				received.Add(1)
			}
		})
	}
	all.Wait()
	var moves []string
	for _, p := range instances {
		moves = append(moves, strings.TrimPrefix(p.send(t, "churn off"), "rebalances "))
		p.send(t, "running 0")
		p.stop(t)
	}
	if received.Load() != manyReports {
		t.Errorf("%d reports, want %d", received.Load(), manyReports)
	}
	t.Logf("%d reports during %s rebalances", received.Load(), strings.Join(moves, " and "))
	shared.table.add(t, "two instances in continuous rebalance; Kafka Streams "+version, java, fmt.Sprintf("%d reports, no crash", manyReports),
		fmt.Sprintf("%s cycles of threads and restarts", strings.Join(moves, " and ")))
}

// checkReport reads a report and returns an error if it is not valid at any time.
func (p *process) checkReport(ctx context.Context) error {
	reported, err := p.report(ctx)
	if err != nil {
		return err
	}
	if reported.Bounded == report.BoundedOff || len(reported.Findings) > 0 || reported.RocksDB.Closed > reported.RocksDB.Opened {
		return fmt.Errorf("inconsistent report: %s", text(reported))
	}
	return nil
}
