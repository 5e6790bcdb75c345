// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"time"

	"streamweir.dev/streamweir/agent/report"
)

// A plan counts as published for a pod when its report names the generation on disk; a pod that cannot report is told once.

// firstRetry and lastRetry bound how long to wait for a pod to see the plan that it was told of, before it is told again: each time twice
// as long. A kubelet projects a ConfigMap within 0.2 s of a touch, and within 85 s without one (measured).
const (
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// touched is how often a pod was touched for the plan that it was told of last, and when.
type touched struct {
	count int
	at    time.Time
}

// readTouched reads the note on a pod; what is no note counts as none.
func readTouched(note string) touched {
	var t touched
	var when string
	if _, err := fmt.Sscanf(note, "%d %s", &t.count, &when); err != nil {
		return touched{}
	}
	at, err := time.Parse(time.RFC3339, when)
	if err != nil || t.count < 0 {
		return touched{}
	}
	t.at = at
	return t
}

func (t touched) String() string {
	return fmt.Sprintf("%d %s", t.count, t.at.UTC().Format(time.RFC3339))
}

// wait is how long the pod has to see the plan after this touch.
func (t touched) wait() time.Duration {
	wait := firstRetry
	for range min(t.count, 10) - 1 {
		wait = min(2*wait, lastRetry)
	}
	return wait
}

// nextTouch is the note on a pod that is touched now.
func (o *observation) nextTouch(name, generation string) string {
	next := touched{count: 1, at: o.now}
	if p := findPod(o.pods, name); p != nil && p.planRevision == generation {
		next.count = p.touched.count + 1
	}
	return next.String()
}

// chooseTouches finds the pods that have to be told of the plan, for the first time or again.
func (want *desired) chooseTouches(obs *observation) {
	for i := range obs.pods {
		pod := &obs.pods[i]
		if !pod.injected || !pod.exists() {
			continue
		}
		if pod.planRevision != want.generation {
			want.touches = append(want.touches, pod.name)
			continue
		}
		reported := obs.reports.of(pod)
		if reported == nil || sees(reported, want.generation) || pod.suspected {
			continue
		}
		since := pod.touched.at
		if since.Before(pod.started) { // it has read the plan at its start, and may have been given an older one
			since = pod.started
		}
		left := pod.touched.wait() - obs.now.Sub(since)
		if left <= 0 {
			want.touches, want.unseen, left = append(want.touches, pod.name), append(want.unseen, pod.name), firstRetry
		} else if pod.touched.count > 1 {
			want.unseen = append(want.unseen, pod.name)
		}
		want.recheckAfter = earliest(want.recheckAfter, max(time.Second, left))
	}
}

// sees tells whether the plan is on the pod's disk.
func sees(reported *report.Report, generation string) bool { return reported.Plan.OnDisk == generation }
