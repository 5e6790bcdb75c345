// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Settling returns whether writes of this or of an earlier pass are taking effect: kubelets raise limits, or pods load the plan. Their reports
// cause another pass soon, which describes the result.
func Settling(d *Decision, o *Outcome) bool {
	if d.Frozen.Found() || o.WriteError != nil || len(o.Refused) > 0 {
		return false
	}
	return len(o.Resized) > 0 || slices.ContainsFunc(runningPods(d.Facts.Pods), func(p Pod) bool {
		return ResizeOutcome(&p) == v1alpha1.ResizeInProgress || d.loading(&p)
	})
}

// loading returns whether a pod was notified of the revision once and has not loaded it yet.
func (d *Decision) loading(p *Pod) bool {
	reporting := p.Report.Report != nil && p.Report.Err == nil && !p.Suspected
	if !reporting || p.Report.Loaded(d.Revision) {
		return false
	}
	last, notified := d.Memory.Refreshes[p.Name]
	return notified && last.Count == 1 && d.Facts.Now.Sub(last.At) < firstRetry
}
