// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Task is a task: a subtopology for one partition.
type Task struct {
	Subtopology string
	Partition   int32
}

// Tasks are the tasks of one pod by role.
type Tasks struct {
	Active, Standby, WarmUp []Task
}

// Len returns the number of tasks of all roles.
func (t Tasks) Len() int { return len(t.Active) + len(t.Standby) + len(t.WarmUp) }

// Pod is a running pod of the application with its tasks.
type Pod struct {
	Name string
	// Threads are its stream threads. 0: not known, and the number of the workload counts.
	Threads int
	// Current are the tasks that it runs, Target those that the group assigned to it. During a hand-over both count in full.
	Current, Target Tasks
}

// Assignment has the tasks of each pod.
type Assignment struct {
	// Pods are the running pods, matched to processes of the group. A pod without tasks has none from the group yet.
	Pods []Pod
	// Unmatched are processes of the group without a known pod: all of them, or only the heaviest, which stands for the rest. With any of
	// them, every pod is planned for the heaviest process.
	Unmatched []Pod
}
