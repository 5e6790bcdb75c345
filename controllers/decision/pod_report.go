// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
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

// Bounded returns whether the process is bounded: the shared cache is active, and the size of every cache of the application is known.
func (r *PodReport) Bounded() bool {
	return r.Report != nil && r.Report.Bounded == report.BoundedActive &&
		!slices.ContainsFunc(r.Report.RocksDB.OwnCaches, func(c report.Cache) bool { return c.Capacity <= 0 })
}

// BoundsDecided returns whether the process has opened a store and is therefore bounded or not.
func (r *PodReport) BoundsDecided() bool {
	return r.Report != nil && r.Report.Bounded != report.BoundedPending
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
