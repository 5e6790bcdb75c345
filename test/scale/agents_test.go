// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/agent/report"
)

// agent is the simulated agent of one pod. The mutex of its application guards it.
type agent struct {
	app     *application
	ordinal int
	uid     types.UID
	started time.Time
	// heap is the heap of the plan with which the pod was created.
	heap int64
	// token is the token in the mounted plan.
	token string
	// onDisk is the revision of the mounted plan. requested and active are the limit in the spec and that of the kubelet.
	onDisk            string
	requested, active int64
	// seq is the seq of the report; changes is closed at each change of it.
	seq     int64
	changes chan struct{}
}

// change makes the report a new one. The mutex is held.
func (g *agent) change() {
	g.seq++
	close(g.changes)
	g.changes = make(chan struct{})
}

// serveAgents serves the reports of all pods until the test ends.
func (f *fleet) serveAgents() {
	f.tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(f.tb.Context(), "tcp4", fmt.Sprintf("0.0.0.0:%d", report.Port))
	f.check(err)
	server := &http.Server{Handler: http.HandlerFunc(f.serveReport), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends with an error in any case
	f.tb.Cleanup(func() { _ = server.Close() })
}

// serveReport responds as the agent of the pod with the requested address does: at once, or at the next change.
func (f *fleet) serveReport(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	f.mu.Lock()
	g := f.byIP[host]
	f.mu.Unlock()
	if err != nil || g == nil || r.URL.Path != report.Path {
		http.NotFound(w, r)
		return
	}
	if !g.accepts(r.Header.Get("Authorization")) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	query := r.URL.Query()
	wait, _ := time.ParseDuration(query.Get("wait")) // 0 without a wait
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		current, changes := g.reportAfter(query.Get("after"))
		if current != nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(current) // the operator may have ended
			return
		}
		select {
		case <-changes:
		case <-timer.C:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// accepts returns whether a request has the token of the mounted plan.
func (g *agent) accepts(authorization string) bool {
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	return g.token != "" && authorization == report.Authorization(g.token)
}

// reportAfter returns the report if it has another seq, else nil and the channel of the next change.
func (g *agent) reportAfter(seq string) (*report.Report, <-chan struct{}) {
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	if strconv.FormatInt(g.seq, 10) == seq {
		return nil, g.changes
	}
	return g.report(), nil
}

const topology = `Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [accounts])
      --> KSTREAM-AGGREGATE-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [totals])
      --> none
      <-- KSTREAM-AGGREGATE-0000000001
`

// report returns the pod's report: its tasks over two threads, two stores each. Figures differ in each report. The mutex is held.
func (g *agent) report() *report.Report {
	a := g.app
	threads := []report.Thread{{Name: a.name + "-StreamThread-1"}, {Name: a.name + "-StreamThread-2"}}
	for partition := g.ordinal; partition < a.tasks(); partition += a.pods {
		thread := &threads[partition/a.pods%len(threads)]
		thread.Tasks = append(thread.Tasks, report.Task{
			ID: fmt.Sprintf("0_%d", partition), Role: report.RoleActive,
			Stores: []report.Store{{Name: "accounts", Scope: "rocksdb-state"}, {Name: "totals", Scope: "rocksdb-state"}},
		})
	}
	noise := time.Now().UnixMilli() % 1000
	return &report.Report{
		Schema: report.Schema, Agent: "0.1.0", Seq: g.seq, PodUID: string(g.uid), Started: g.started.UnixMilli(), Bounded: report.BoundedActive,
		Plan: report.Plan{OnDisk: g.onDisk, Active: g.onDisk, Source: report.PlanMounted},
		RocksDB: report.RocksDB{
			CacheCapacity: 64 << 20, CacheUsage: 40<<20 + noise<<10, WriteBufferManager: 25 << 20, Opened: int64(2 * a.tasks() / a.pods),
		},
		Clients: []report.Client{{
			ApplicationID: a.name, ClientID: a.name, Version: "4.1.0", State: "RUNNING", Topology: topology, Brokers: 3,
			Settings: []report.Setting{{Name: "num.stream.threads", Value: "2", By: report.SetByApp}},
			Threads:  threads,
			Records:  report.Records{AverageSize: 300, LargestSize: 2000},
			StateDir: report.StateDir{Type: "ext4"},
		}},
		JVM: report.JVM{
			Version: 21, Vendor: "Eclipse Adoptium", Name: "OpenJDK 64-Bit Server VM", Collectors: []string{"G1 Young Generation", "G1 Old Generation"},
			HeapMax: g.heap, HeapUsed: g.heap/2 + noise<<10, Metaspace: 50 << 20, CodeCache: 30 << 20, Threads: 40, ThreadsPeak: 44,
		},
		Cgroup:    report.Cgroup{Version: 2, Limit: g.active, Usage: 600<<20 + noise<<12, Anon: 500 << 20, File: 90 << 20},
		Allocator: report.Allocator{Name: "glibc", Arenas: 2},
	}
}
