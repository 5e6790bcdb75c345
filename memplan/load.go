// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Load bounds what one pod runs. Every line of a plan takes the worst choice of tasks within these bounds for itself. An observed
// load is the special case in which the caps leave no choice.
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

// Observed is the load that a pod runs now, both sides of a hand-over in full. Where processes are unmatched, every pod gets the
// heaviest of them. A pod that is not in the assignment gets an empty load.
func Observed(w Workload, a Assignment, pod string) Load {
	g := newGroup(&w, a)
	i := g.find(a, pod)
	if i < 0 {
		return g.empty()
	}
	if len(a.Unmatched) == 0 {
		return g.observed(&g.rows[i])
	}
	return g.heaviestObserved()
}

// ObservedLoads is [Observed] for all pods of the assignment, in its order.
func ObservedLoads(w Workload, a Assignment) []Load {
	g := newGroup(&w, a)
	loads := make([]Load, len(a.Pods))
	if len(a.Unmatched) > 0 {
		heaviest := g.heaviestObserved()
		for i := range loads {
			loads[i] = heaviest
		}
		return loads
	}
	for i := range loads {
		loads[i] = g.observed(&g.rows[i])
	}
	return loads
}

// LoadAfter bounds the load of a pod after any losses other pods are lost, together or one soon after the other, whatever the assignor
// does. The bound depends on the protocol; it is never below what the pod runs now. It holds until the group assigns its tasks anew for
// another reason, as when a pod joins: then ask again. A pod that is not in the assignment gets an empty load.
func LoadAfter(w Workload, a Assignment, pod string, losses int) Load {
	g := newGroup(&w, a)
	i := g.find(a, pod)
	if i < 0 {
		return g.empty()
	}
	if len(a.Unmatched) > 0 {
		return g.heaviest(losses)
	}
	return g.after(i, losses)
}

// LoadsAfter is [LoadAfter] for all pods of the assignment, in its order.
func LoadsAfter(w Workload, a Assignment, losses int) []Load {
	return newGroup(&w, a).loadsAfter(a, losses)
}

// ColdStart is the load of the first pod of a group that starts from nothing: all tasks (OrderedReady, or a scale from zero), for many
// probing intervals with the classic protocol. Threads 0 means the workload's number.
func ColdStart(w Workload, threads int) Load {
	if threads <= 0 {
		threads = w.Threads.Value
	}
	load := Load{Threads: max(clampCount(threads), 1), Caps: make([]Cap, len(w.Subtopologies))}
	for i, s := range w.Subtopologies {
		n := clampCount(s.Tasks)
		load.Caps[i] = Cap{Active: n, Total: n}
	}
	load.Active = clampCount(w.Tasks())
	load.Total = load.Active
	return load
}

// heavier is the bound that holds both loads.
func heavier(a, b Load) Load {
	a.Threads = max(a.Threads, b.Threads)
	a.Active, a.Total = max(a.Active, b.Active), max(a.Total, b.Total)
	for i := range a.Caps {
		a.Caps[i].Active = max(a.Caps[i].Active, b.Caps[i].Active)
		a.Caps[i].Total = max(a.Caps[i].Total, b.Caps[i].Total)
	}
	return a
}
