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

// Pod is a running pod of the application and what the group has given it.
type Pod struct {
	Name string
	// Threads are its stream threads. 0 means not seen: the workload's number counts.
	Threads int
	// Current is what it runs, Target what the group wants it to run. During a hand-over both count in full.
	Current, Target Tasks
}

// Assignment is who runs what.
type Assignment struct {
	// Pods that run now, matched to processes of the group. A pod without tasks is a pod to which the group gave none yet.
	Pods []Pod
	// Unmatched are processes of the group that could not be matched to a pod: all of them, or only the heaviest, which then stands for
	// the rest. Where there are any, every pod is planned for the heaviest process.
	Unmatched []Pod
}
