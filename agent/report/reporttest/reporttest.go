// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reporttest builds reports for tests.
package reporttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

// New returns a report of an application that runs tasks of three stores each, active ones first.
func New(uid string, seq int64, active, standby int) *report.Report {
	thread := report.Thread{Name: "orders-1-StreamThread-1"}
	for i := range active + standby {
		task := report.Task{ID: fmt.Sprintf("0_%d", i), Role: report.RoleActive}
		if i >= active {
			task.Role = report.RoleStandby
		}
		for _, s := range []string{"counts rocksdb-state", "hourly rocksdb-window-state", "seen in-memory-state"} {
			name, scope, _ := strings.Cut(s, " ")
			task.Stores = append(task.Stores, report.Store{Name: name, Scope: scope})
		}
		thread.Tasks = append(thread.Tasks, task)
	}
	return &report.Report{
		Schema: report.Schema, Agent: "0.1.0", Seq: seq, PodUID: uid, Started: 1_796_000_000_000, Bounded: report.BoundedActive,
		Plan:    report.Plan{OnDisk: "g2", Active: "g1", Source: report.PlanMounted},
		RocksDB: report.RocksDB{CacheCapacity: 240 << 20, CacheUsage: 100 << 20, WriteBufferManager: 100 << 20, ArenaBlock: 1 << 20},
		Clients: []report.Client{{
			ApplicationID: "orders", ClientID: "orders-1", Version: "4.4.0", State: "RUNNING", Topology: "Topologies:\n   Sub-topology: 0\n",
			Settings: []report.Setting{
				{Name: "num.standby.replicas", Value: "1", By: report.SetByApp},
				{Name: "main.consumer.fetch.max.bytes", Value: "1048576", By: report.SetByPlan},
			},
			Threads:  []report.Thread{thread},
			Brokers:  3,
			Records:  report.Records{AverageSize: 300, LargestSize: 4000},
			StateDir: report.StateDir{Type: "ext4"},
		}},
		JVM: report.JVM{Version: 17, Vendor: "Debian", Name: "OpenJDK 64-Bit Server VM", Collectors: []string{"G1 Young Generation"},
			HeapMax: 256 << 20, HeapUsed: 100 << 20, Threads: 40, Flags: []string{"-Xmx256m", "-XX:MaxRAMPercentage=33.0"}},
		Cgroup:    report.Cgroup{Version: 2, Limit: 760 << 20, Usage: 640 << 20, Anon: 600 << 20},
		Allocator: report.Allocator{Name: "glibc", Arenas: 2},
		Findings:  []report.Finding{{Reason: "OwnCache", Message: "The application's setter has its own cache."}},
	}
}

// Encode returns a report as the agent writes it.
func Encode(t testing.TB, r *report.Report) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
