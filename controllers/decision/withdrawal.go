// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"time"
)

// Injected memory and its withdrawal:
//
//	            plan needs more than the template's limit
//	 template's ─────────────────────────────────────────► injected ──┐ pods cannot be created or placed with it
//	 limit   ▲                                                        ▼
//	         └──── for withdrawnFor, then injected again ──────── withdrawn
//	               at once if the template's limit or the StreamApp changes
//
// While memory is withdrawn, new pods get the template's limit, and the published plan is made for it.

// withdrawnFor is how long injected memory stays withdrawn before it is injected again: people make room.
const withdrawnFor = time.Hour

// withdrawalOf returns the withdrawal of injected memory; nil if nothing is withdrawn. The plan only uses it while its limit is above the
// template's.
func withdrawalOf(f *Facts) *Withdrawal {
	if f.Injection == nil {
		return nil
	}
	template := f.Container.Limit.Value()
	remembered := f.Memory.Withdrawal
	if remembered != nil && remembered.ForLimit == template && f.Now.Sub(remembered.Since) < withdrawnFor && !f.edited() {
		return remembered
	}
	if f.Injection.Spec.Memory.Limit == nil || !placementFails(f) {
		return nil
	}
	// The limit that failed, not the present one: a pod that cannot be created counts as lost in time, and the others then need more.
	return &Withdrawal{Limit: f.Injection.Spec.Memory.Limit.Value(), ForLimit: template, Since: f.Now.UTC().Truncate(time.Second)}
}

// placementFails returns whether pods with the injected memory are refused, or find no node for the injected request. A pod that was not even
// created within the time after which it counts as lost was refused, because quotas and LimitRanges are checked after the injection; unless
// another pod is still starting or stopping, for which the workload's controller waits.
func placementFails(f *Facts) bool {
	refused := strings.Contains(f.Workload.CreateFailure, "memory") // LimitRanges and quotas name the exceeded resource
	unschedulable := slices.ContainsFunc(f.Pods, func(p Pod) bool { return p.Injected && p.Unschedulable })
	notPlaced := f.Injection.Spec.Memory.Request != nil && unschedulable
	if refused || notPlaced {
		return true
	}
	longAgo := func(since time.Time) bool {
		return !since.IsZero() && f.Now.Sub(since) >= lossGrace+f.Workload.MinReady
	}
	for i := range f.Pods {
		if !longAgo(f.Pods[i].ReadySince) {
			return false
		}
	}
	return len(f.Pods) < f.Workload.Replicas && longAgo(f.Memory.PodsUnavailableSince)
}
