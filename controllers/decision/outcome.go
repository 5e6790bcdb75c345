// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "time"

// Outcome is the result of the writes of a pass.
type Outcome struct {
	// Published: the plan ConfigMap was written.
	Published bool
	// Resized are the accepted resizes, as texts.
	Resized []string
	// Refused are the resizes that the API server refused, by pod, earlier refusals included.
	Refused map[string]RefusedResize
	// Removed: the injection was removed.
	Removed bool
	// AgentNotInjected is the reason for which the agent is not injected although it should be.
	AgentNotInjected Problem
	// WriteError is a failed write. The next pass retries it. Conflicts do not count: they resolve by themselves.
	WriteError error
	// RecheckAfter is the time after which to look again; 0 for never.
	RecheckAfter time.Duration
}

// Recheck keeps the earliest of the times after which to look again.
func (o *Outcome) Recheck(after time.Duration) {
	if o.RecheckAfter == 0 || after < o.RecheckAfter {
		o.RecheckAfter = max(after, time.Second)
	}
}

// Refuse notes a refused resize.
func (o *Outcome) Refuse(refused RefusedResize, now time.Time) {
	if o.Refused == nil {
		o.Refused = map[string]RefusedResize{}
	}
	o.Refused[refused.Pod] = refused
	o.Recheck(RefusalRetry - now.Sub(refused.At))
}
