// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "time"

// A plan counts as published for a pod when its report names the revision on disk. Until then the pod's annotations are refreshed again and
// again, which makes the kubelet update the mounted ConfigMap. A pod without an agent is refreshed once for each revision.

// firstRetry and lastRetry bound the wait for a pod to load the plan before it is refreshed again. The wait doubles each time. A kubelet updates a
// mounted ConfigMap within 0.2 s of a refresh, and within 85 s without one (measured).
const (
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// PodRefresh is a refresh of one pod.
type PodRefresh struct {
	Pod string
	Refresh
}

// wait returns the time that the pod has to load the plan after this refresh.
func (r Refresh) wait() time.Duration {
	wait := firstRetry
	for range min(r.Count, 10) - 1 {
		wait = min(2*wait, lastRetry)
	}
	return wait
}

// chooseRefreshes selects the pods to be notified of the revision, for the first time or again.
func (d *Decision) chooseRefreshes() {
	f := &d.Facts
	for i := range f.Pods {
		p := &f.Pods[i]
		if !f.readsPlan(p) {
			continue
		}
		if p.NotifiedRevision != d.Revision {
			d.refresh(p.Name, Refresh{Count: 1, At: f.Now})
			continue
		}
		unknown := p.Report.Report == nil && !p.Report.Unauthorized()
		if unknown || p.Report.Loaded(d.Revision) || p.Suspected {
			continue
		}
		last := f.Memory.Refreshes[p.Name]
		since := last.At
		if since.Before(p.Started) { // it has loaded the plan at its start, and may have been given an older one
			since = p.Started
		}
		left := last.wait() - f.Now.Sub(since)
		switch {
		case left <= 0:
			d.refresh(p.Name, Refresh{Count: last.Count + 1, At: f.Now})
			d.NotAcknowledged = append(d.NotAcknowledged, p.Name)
			left = firstRetry
		case last.Count > 1:
			d.NotAcknowledged = append(d.NotAcknowledged, p.Name)
		}
		d.RecheckAfter = Earliest(d.RecheckAfter, max(time.Second, left))
	}
}

// refresh notes a refresh in the decision and in the memory.
func (d *Decision) refresh(pod string, refresh Refresh) {
	refresh.At = refresh.At.UTC().Truncate(time.Second)
	d.Refreshes = append(d.Refreshes, PodRefresh{Pod: pod, Refresh: refresh})
	d.Memory.Refreshes[pod] = refresh
}
