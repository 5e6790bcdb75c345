// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"slices"
)

// Load bounds the tasks of one pod. Every line of a plan takes the worst choice of tasks within these bounds. In an observed load the caps
// leave no choice.
type Load struct {
	// Threads are the stream threads of the pod.
	Threads int
	// Active bounds its active tasks, Total its tasks of any role.
	Active, Total int
	// Caps bound the tasks of each subtopology, in the order of Workload.Subtopologies.
	Caps []Cap
}

// Cap bounds the tasks of one subtopology on one pod.
type Cap struct {
	Active, Total int
}

// equal reports whether two loads are the same.
func (l Load) equal(o Load) bool {
	return l.Threads == o.Threads && l.Active == o.Active && l.Total == o.Total && slices.Equal(l.Caps, o.Caps)
}

// compare orders loads by their active tasks, by all their tasks, by their threads, and by their caps.
func (l Load) compare(o Load) int {
	return cmp.Or(cmp.Compare(l.Active, o.Active), cmp.Compare(l.Total, o.Total), cmp.Compare(l.Threads, o.Threads),
		slices.CompareFunc(l.Caps, o.Caps, func(a, b Cap) int {
			return cmp.Or(cmp.Compare(a.Active, b.Active), cmp.Compare(a.Total, b.Total))
		}))
}

// observedLoads returns the present load of each pod, in the order of the assignment. Both sides of a hand-over count in full. With
// unmatched processes every pod has the load of the heaviest process.
func observedLoads(w Workload, a Assignment) []Load {
	g := newGroup(&w, a)
	if len(a.Unmatched) > 0 {
		return slices.Repeat([]Load{g.heaviestObserved()}, len(a.Pods))
	}
	loads := make([]Load, len(a.Pods))
	for i := range loads {
		loads[i] = g.observed(&g.processes[i])
	}
	return loads
}

// LoadsAfter bounds the load of each pod after a number of other pods failed, together or one soon after the other, for any decision of the
// assignor. The loads are in the order of the assignment. The bound depends on the protocol; it is never below the present load. It holds
// until the group assigns its tasks again for another reason, as after a pod has joined.
func LoadsAfter(w Workload, a Assignment, failures int) []Load {
	return newGroup(&w, a).loadsAfter(a, failures)
}

// ColdStart returns the load of the first pod of a group that starts without tasks: all of them (OrderedReady, or a scale from zero), for
// many probing intervals with the classic protocol. With 0 threads the number of the workload counts.
func ColdStart(w Workload, threads int) Load {
	if threads <= 0 {
		threads = w.Threads.Value
	}
	load := Load{Threads: max(clampCount(threads), 1), Caps: make([]Cap, len(w.Subtopologies))}
	for i := range w.Subtopologies {
		tasks := clampCount(w.Subtopologies[i].Tasks)
		load.Caps[i] = Cap{Active: tasks, Total: tasks}
	}
	load.Active = clampCount(w.Tasks())
	load.Total = load.Active
	return load
}

// heavier returns the bound that holds both loads.
func heavier(a, b Load) Load {
	a.Threads = max(a.Threads, b.Threads)
	a.Active = max(a.Active, b.Active)
	a.Total = max(a.Total, b.Total)
	for i := range a.Caps {
		a.Caps[i].Active = max(a.Caps[i].Active, b.Caps[i].Active)
		a.Caps[i].Total = max(a.Caps[i].Total, b.Caps[i].Total)
	}
	return a
}
