// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"sync"
	"time"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// settleTime is the longest time for which the status of a change waits for its result. A kubelet raises a limit, and a refreshed pod loads the
// plan, within a second.
const settleTime = 2 * time.Second

// unsettled holds the statuses of changes that are taking effect, until the result is known or settleTime has passed. So a change has one status
// write and one event instead of one for each of its phases. After a restart of the operator the next pass computes the status anew.
type unsettled struct {
	mu    sync.Mutex
	byKey map[string]unsettledChange
}

// unsettledChange is a change that is taking effect.
type unsettledChange struct {
	since time.Time
	// status is the status that was not written. It is the memory of the next pass.
	status v1alpha1.StreamAppStatus
	// outcome has the writes of all passes of the change.
	outcome decision.Outcome
}

// recall sets the status of the last pass if it was not written. The stored conditions stay: a condition does not move if it returns to its
// status within the change.
func (u *unsettled) recall(key string, app *v1alpha1.StreamApp) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if change, ok := u.byKey[key]; ok {
		conditions := app.Status.Conditions
		app.Status = *change.status.DeepCopy()
		app.Status.Conditions = conditions
	}
}

// add adds a pass. It returns the outcome of all passes of the change, and the time for which its status may wait; 0 to write it now.
func (u *unsettled) add(key string, settling bool, status *v1alpha1.StreamAppStatus, outcome *decision.Outcome) (all decision.Outcome, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change, ok := u.byKey[key]
	if !ok {
		change.since = time.Now()
	}
	all = *outcome
	all.Published = outcome.Published || change.outcome.Published
	all.Removed = outcome.Removed || change.outcome.Removed
	all.Resized = slices.Concat(change.outcome.Resized, outcome.Resized)
	wait = settleTime - time.Since(change.since)
	if !settling || wait <= 0 {
		delete(u.byKey, key)
		return all, 0
	}
	if u.byKey == nil {
		u.byKey = map[string]unsettledChange{}
	}
	u.byKey[key] = unsettledChange{since: change.since, status: *status, outcome: all}
	return all, wait
}

func (u *unsettled) delete(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byKey, key)
}
