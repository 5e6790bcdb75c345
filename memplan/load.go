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

// Observed is the load that a pod runs now, both sides of a hand-over in full. A pod of an unmatched group gets the heaviest
// process; a pod that is not in the assignment gets an empty load.
func Observed(w Workload, a Assignment, pod string) Load { return Load{} }

// LoadAfter bounds the load of a pod after any losses other pods are lost, whatever the assignor does. The bound depends on the
// protocol; it is never below what the pod runs now.
func LoadAfter(w Workload, a Assignment, pod string, losses int) Load { return Load{} }

// LoadsAfter is [LoadAfter] for all pods of the assignment, in its order.
func LoadsAfter(w Workload, a Assignment, losses int) []Load { return nil }

// ColdStart is the load of the first pod of a group that starts from nothing: all tasks (OrderedReady, or a scale from zero). Threads
// 0 means the workload's number.
func ColdStart(w Workload, threads int) Load { return Load{} }
