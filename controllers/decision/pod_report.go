// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"streamweir.dev/streamweir/agent/report"
)

// PodReport holds the facts that a pod's agent has reported.
type PodReport struct {
	// Expected: the pod runs with an agent and is requested to report.
	Expected bool
	// Report is the report of the running process; nil without one. A report from before the container's last start does not count.
	Report *report.Report
	// Err is the error of the last request, FailingSince the time of the first in a row.
	Err          *report.Error
	FailingSince time.Time
	// WasNotBounded: the pod has no report now, and its last one showed stores without the bounds.
	WasNotBounded bool
}

// Bounded returns whether the process is bounded: the shared cache is active, and the size of every cache of the application is known. A
// process that runs all of its tasks without RocksDB is bounded as well.
func (r *PodReport) Bounded() bool {
	if r.Report == nil {
		return false
	}
	active := r.Report.Bounded == report.BoundedActive &&
		!slices.ContainsFunc(r.Report.RocksDB.OwnCaches, func(c report.Cache) bool { return c.Capacity <= 0 })
	return active || runsWithoutRocksDB(r.Report)
}

// BoundsDecided returns whether the process has opened a store and is therefore bounded or not, or needs no bounds.
func (r *PodReport) BoundsDecided() bool {
	return r.Report != nil && (r.Report.Bounded != report.BoundedPending || runsWithoutRocksDB(r.Report))
}

// storesInTopology matches the stores of a processor in a description of a topology.
var storesInTopology = regexp.MustCompile(`\(stores: \[([^\]]*)\]\)`)

// runsWithoutRocksDB returns whether a process runs an application without RocksDB: each client runs tasks, and all stores of its topology are
// open and in memory. Tasks of other subtopologies then need no RocksDB either.
func runsWithoutRocksDB(r *report.Report) bool {
	if r.Bounded != report.BoundedPending || r.Truncated || r.RocksDB.Opened > 0 || len(r.Clients) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Clients, func(c report.Client) bool {
		inMemory := map[string]bool{}
		tasks := 0
		for _, thread := range c.Threads {
			tasks += len(thread.Tasks)
			for _, task := range thread.Tasks {
				addInMemory(inMemory, task.Stores)
			}
		}
		addInMemory(inMemory, c.GlobalStores)
		return c.State != "RUNNING" || c.Topology == "" || tasks == 0 || !allIn(inMemory, c.Topology)
	})
}

// addInMemory adds the names of the stores in memory.
func addInMemory(names map[string]bool, stores []report.Store) {
	for _, s := range stores {
		if strings.HasPrefix(s.Scope, "in-memory") {
			names[s.Name] = true
		}
	}
}

// allIn returns whether all stores in the description of a topology are among the names.
func allIn(names map[string]bool, topology string) bool {
	for _, match := range storesInTopology.FindAllStringSubmatch(topology, -1) {
		for name := range strings.SplitSeq(match[1], ", ") {
			if name != "" && !names[name] {
				return false
			}
		}
	}
	return true
}

// NotBounded returns whether the process has opened stores without the bounds, by its last report.
func (r *PodReport) NotBounded() bool { return r.WasNotBounded || (r.BoundsDecided() && !r.Bounded()) }

// Loaded returns whether this revision of the plan is on the pod's disk, with the token of its ConfigMap.
func (r *PodReport) Loaded(revision string) bool {
	return r.Report != nil && r.Report.Plan.OnDisk == revision && !r.Unauthorized()
}

// Unauthorized returns whether the agent does not accept the token of the plan: its pod has not loaded the ConfigMap with it.
func (r *PodReport) Unauthorized() bool { return r.Err != nil && r.Err.Fault == report.Unauthorized }

// Answered returns whether the pod has responded, though not with a usable report. Waiting would not help.
func (r *PodReport) Answered() bool { return r.Err != nil && r.Err.Fault != report.Unreachable }
