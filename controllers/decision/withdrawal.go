// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"time"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Injected memory and its withdrawal:
//
//	            plan needs more than the template's limit
//	 template's ─────────────────────────────────────────► injected ──┐ pods cannot be created with it, or placed for placementGrace
//	 limit   ▲                                                        ▼
//	         └──── for the back-off, then injected again ──────── withdrawn
//	               at once if the template's limit or the StreamApp changes
//
// While memory is withdrawn, new pods get the template's limit, and the published plan is made for it.

const (
	// placementGrace is how long a pod may find no node with enough memory before its injected memory counts as too large: an autoscaler adds
	// a node in 1 to 5 minutes, and it acts on pods that find none.
	placementGrace = 5 * time.Minute
	// firstBackOff is how long injected memory stays withdrawn at first. Each further failure doubles it, up to longestBackOff: people make
	// room.
	firstBackOff   = 5 * time.Minute
	longestBackOff = time.Hour
	// createFailureRecheck is the time between passes while a StatefulSet lacks pods that would get injected memory. Its controller reports a pod
	// that it cannot create with an event only, the operator watches no events, and the attempts may be up to 1000 s apart
	// (client-go workqueue, DefaultTypedControllerRateLimiter).
	createFailureRecheck = 30 * time.Second
	// withdrawalRecordedFor is how long after its end a withdrawal still counts for the next back-off.
	withdrawalRecordedFor = 2 * time.Hour
)

// retryAt returns the time at which the memory is injected again.
func (w *Withdrawal) retryAt() time.Time {
	backOff := firstBackOff
	for range min(w.Failures, 10) - 1 {
		backOff = min(2*backOff, longestBackOff)
	}
	return w.Since.Add(backOff)
}

// active returns whether memory is withdrawn at a time.
func (w *Withdrawal) active(now time.Time) bool { return w != nil && now.Before(w.retryAt()) }

// withdrawalOf returns the withdrawal of injected memory, or the record of one that has ended; nil without one. The plan only uses it while
// its limit is above the template's.
func withdrawalOf(f *Facts) *Withdrawal {
	if f.Injection == nil {
		return nil
	}
	template := f.Container.Limit.Value()
	recorded := f.Memory.Withdrawal
	outdated := recorded == nil || recorded.ForLimit != template || f.edited() || f.Now.Sub(recorded.retryAt()) >= withdrawalRecordedFor
	if outdated {
		recorded = nil
	}
	if recorded.active(f.Now) || f.Injection.Spec.Memory.Limit == nil || !placementFails(f) {
		return recorded
	}
	// The limit that failed, not the present one: a pod that cannot be created counts as lost in time, and the others then need more.
	failed := &Withdrawal{Limit: f.Injection.Spec.Memory.Limit.Value(), ForLimit: template, Since: f.Now.UTC().Truncate(time.Second), Failures: 1}
	if recorded != nil {
		failed.Failures = recorded.Failures + 1
	}
	return failed
}

// placementFails returns whether pods with the injected memory are refused, or have found no node for the injected request for longer than
// an autoscaler needs.
func placementFails(f *Facts) bool {
	memory := f.Injection.Spec.Memory
	largerRequest := memory.Request != nil && (f.Container.Request == nil || memory.Request.Cmp(*f.Container.Request) > 0)
	unschedulable := slices.ContainsFunc(f.Pods, func(p Pod) bool {
		return p.Injected && !p.UnschedulableSince.IsZero() && f.Now.Sub(p.UnschedulableSince) >= placementGrace
	})
	return refusedForMemory(f.Workload.CreateFailure) || (largerRequest && unschedulable)
}

// refusedForMemory returns whether a quota or a LimitRange refused, according to the message of a workload's controller, the memory of a pod
// (k8s.io/apiserver plugin resourcequota; k8s.io/kubernetes plugin/pkg/admission/limitranger).
func refusedForMemory(message string) bool {
	quota := strings.Contains(message, "exceeded quota") && strings.Contains(message, "memory")
	limitRange := strings.Contains(message, "maximum memory usage per") || strings.Contains(message, "memory max limit to request ratio per")
	return quota || limitRange
}

// recheckPlacement returns the time after which a pod without a node counts as one whose memory is too large, or after which a missing pod may
// have been refused; 0 without such pods.
func recheckPlacement(f *Facts) time.Duration {
	recheck := time.Duration(0)
	lacksPods := f.Workload != nil && f.Workload.Kind == v1alpha1.KindStatefulSet && len(f.Pods) < f.Workload.Replicas
	if lacksPods && f.Injection != nil && f.Injection.Spec.Memory.Limit != nil {
		recheck = createFailureRecheck
	}
	for i := range f.Pods {
		if since := f.Pods[i].UnschedulableSince; !since.IsZero() {
			recheck = Earliest(recheck, max(0, placementGrace-f.Now.Sub(since)))
		}
	}
	return recheck
}
