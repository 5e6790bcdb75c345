// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"streamweir.dev/streamweir/agent/report"
)

// The sources of an application are requested from the time at which a process begins to track it: after a start of the operator, after a
// change of the leader, and after the StreamApp was created again. Until they have answered, an earlier pass knew more than this one.

const (
	// sourcesGrace is how long a source that has not been requested yet is awaited.
	sourcesGrace = 2 * time.Minute
	// failedSourceGrace is how long a source whose requests fail is awaited. Requests are repeated within this time.
	failedSourceGrace = 10 * time.Second
)

// AwaitSources returns the time to wait for sources before a pass; 0 if there is no need to. Until then the pass must change nothing: no
// object, condition, event or metric. Only an application that has been planned before waits, because it has something to lose.
func AwaitSources(w World) time.Duration {
	plannedBefore := w.Injection != nil || w.PlanConfigMap != nil || w.App.Status.ObservedGeneration == w.App.Generation
	if w.TrackedSince.IsZero() || !plannedBefore {
		return 0
	}
	tracked := w.Now.Sub(w.TrackedSince)
	wait := w.Group.awaited(tracked)
	for _, endpoint := range AgentEndpoints(w) {
		startedBefore := !endpoint.Started.After(w.TrackedSince) // else no earlier process knew it
		if startedBefore && endpoint.Address != "" && w.Reports != nil {
			wait = max(wait, awaitedReport(w.Reports[endpoint.UID], tracked))
		}
	}
	return wait
}

// awaited returns how long to wait for the first observation of the group.
func (g *GroupSource) awaited(tracked time.Duration) time.Duration {
	switch {
	case g.Unavailable.Found(), g.Latest.Group != nil:
		return 0
	case g.Latest.At.IsZero() && g.Latest.Err == nil:
		return max(0, sourcesGrace-tracked)
	case g.Latest.Err != nil:
		return max(0, failedSourceGrace-tracked)
	}
	return 0
}

// awaitedReport returns how long to wait for the first report of a pod.
func awaitedReport(answer report.PodReport, tracked time.Duration) time.Duration {
	switch {
	case answer.Report != nil:
		return 0
	case answer.Err == nil:
		return max(0, sourcesGrace-tracked)
	case answer.Err.Fault == report.Unreachable:
		return max(0, failedSourceGrace-tracked)
	}
	return 0
}
