// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Resize is a limit to be raised in place.
type Resize struct {
	Pod             string
	UID             types.UID
	ResourceVersion string
	// From and To are limits in bytes. Request is 0 if the request stays.
	From, To, Request int64
}

// RefusalRetry is how long a resize that the API server refused is not requested again. People change quotas, LimitRanges and nodes, in
// minutes.
const RefusalRetry = 5 * time.Minute

// freshRefusals returns the refused resizes that are not old enough to be requested again.
func freshRefusals(refused map[types.UID]RefusedResize, now time.Time) map[types.UID]RefusedResize {
	fresh := maps.Clone(refused)
	maps.DeleteFunc(fresh, func(_ types.UID, r RefusedResize) bool { return now.Sub(r.At) >= RefusalRetry })
	return fresh
}

// chooseResizes selects the pods whose limit is raised. Limits are only raised in place: a kubelet refuses to lower one below the memory in
// use, page cache included (measured, Kubernetes 1.37). A pod whose container would be restarted by a resize is left to the user.
func (d *Decision) chooseResizes() {
	for i := range d.Facts.Pods {
		p := &d.Facts.Pods[i]
		to := d.Plan.Pods[p.Name].RaiseTo
		if !raisable(p) || to <= p.EffectiveLimit().Value() || to <= p.Limit.Value() {
			continue // its limit is large enough, or was requested already
		}
		if wait := firstReportAwaited(&d.Facts, p); wait > 0 {
			d.RecheckAfter = Earliest(d.RecheckAfter, wait)
			continue
		}
		resize := Resize{
			Pod: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			From: p.Limit.Value(), To: to, Request: resizedRequest(p, d.Facts.App.Spec.Memory.Requests, to),
		}
		refused, known := d.Memory.RefusedResizes[p.UID]
		switch {
		case p.RestartsOnResize:
			d.Restarts = append(d.Restarts, resize)
		case known && refused.Limit == to:
			d.Refused = append(d.Refused, refused)
		default:
			d.Resizes = append(d.Resizes, resize)
		}
	}
}

// firstReportAwaited returns how long the first response of a pod's agent is still awaited before its limit is raised; 0 if it is not. Limits
// are never lowered in place, and the report may show that the process requires less.
func firstReportAwaited(f *Facts, p *Pod) time.Duration {
	requested := p.Report.Report == nil && p.Report.Err == nil
	if !p.Report.Expected || !requested {
		return 0
	}
	since := p.Started
	if since.Before(f.TrackedSince) {
		since = f.TrackedSince
	}
	return max(0, sourcesGrace-f.Now.Sub(since))
}

// raisable returns whether the limit of a pod may be raised now: one resize at a time.
func raisable(p *Pod) bool {
	outcome := ResizeOutcome(p)
	idle := outcome == v1alpha1.ResizeNone || outcome == v1alpha1.ResizeApplied
	return p.manageable() && p.Limit != nil && !p.PodResources && idle
}

// resizedRequest returns the request for a raised limit; 0 if it stays.
func resizedRequest(p *Pod, policy v1alpha1.RequestsPolicy, limit int64) int64 {
	followsLimit := policy == v1alpha1.RequestsFollowLimit && !p.CPUGuaranteed
	if p.QOS == corev1.PodQOSGuaranteed || followsLimit {
		return limit
	}
	return 0
}

// knownRefusals returns the fresh refusals of all pods, for a pass that requests no resize.
func knownRefusals(f *Facts, refused map[types.UID]RefusedResize) []RefusedResize {
	var known []RefusedResize
	for i := range f.Pods {
		if r, ok := refused[f.Pods[i].UID]; ok {
			known = append(known, r)
		}
	}
	return slices.Clip(known)
}

// ResizeOutcome returns the outcome of the last resize of a pod.
func ResizeOutcome(p *Pod) v1alpha1.ResizeOutcome {
	reported := p.Limit != nil && p.ActiveLimit != nil
	switch {
	case p.Resize.Condition == corev1.PodResizePending && p.Resize.Reason == corev1.PodReasonInfeasible:
		return v1alpha1.ResizeInfeasible
	case p.Resize.Condition == corev1.PodResizePending:
		return v1alpha1.ResizeDeferred
	case p.Resize.Condition == corev1.PodResizeInProgress && p.Resize.Reason == corev1.PodReasonError:
		return v1alpha1.ResizeError
	case p.Resize.Condition == corev1.PodResizeInProgress:
		return v1alpha1.ResizeInProgress
	case reported && p.Limit.Cmp(*p.ActiveLimit) != 0:
		return v1alpha1.ResizeInProgress
	case reported:
		return v1alpha1.ResizeApplied
	}
	return v1alpha1.ResizeNone
}
