// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"slices"
	"sort"
)

// Survives is the largest number of losses after which every survivor still fits its limit, whichever pods are lost; -1 if the pods do
// not even fit now. Limits has the limit of each pod by name; a pod without one has no limit and always fits. A heap that the
// application fixed too small counts as not fitting.
func Survives(w Workload, a Assignment, policy Policy, limits map[string]Bytes) int {
	g := newGroup(&w, a)
	return sort.Search(len(a.Pods), func(losses int) bool { // more losses never leave less to a pod
		return !allFit(&w, a, policy, limits, g.loadsAfter(a, losses))
	}) - 1
}

// allFit says whether each pod's limit holds its load. Pods of one load and limit are judged once.
func allFit(w *Workload, a Assignment, policy Policy, podLimits map[string]Bytes, loads []Load) bool {
	var last *ledger
	var lastLoad Load
	for i, pod := range a.Pods {
		limit, limited := podLimits[pod.Name]
		if !limited {
			continue
		}
		if last == nil || !sameLoad(loads[i], lastLoad) {
			last, lastLoad = newProcess(w, loads[i], policy).atFloors(), loads[i]
		}
		if r := last.at(limit); !r.fits() {
			return false
		}
	}
	return true
}

// sameLoad says whether two loads are equal.
func sameLoad(a, b Load) bool {
	return a.Threads == b.Threads && a.Active == b.Active && a.Total == b.Total && slices.Equal(a.Caps, b.Caps)
}
