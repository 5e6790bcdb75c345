// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "sort"

// survives returns the largest number of pod failures after which every survivor fits its limit, whichever pods fail; -1 if the pods do
// not even fit now. Limits has the limit of each pod by name; a pod without one has no limit and always fits. A heap that the application
// set too small counts as not fitting.
func survives(w Workload, a Assignment, policy Policy, limits map[string]Bytes) int {
	g := newGroup(&w, a)
	return sort.Search(len(a.Pods), func(failures int) bool { // more failures never leave less to a pod
		return !allFit(&w, a, policy, limits, g.loadsAfter(a, failures))
	}) - 1
}

// allFit reports whether each pod's limit holds its load.
func allFit(w *Workload, a Assignment, policy Policy, limits map[string]Bytes, loads []Load) bool {
	floors := floorsOf{workload: w, policy: policy}
	for i, pod := range a.Pods {
		limit, limited := limits[pod.Name]
		if !limited {
			continue
		}
		if r := floors.of(loads[i]).at(limit); !r.fits() {
			return false
		}
	}
	return true
}
