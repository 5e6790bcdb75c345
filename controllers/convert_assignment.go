// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"time"

	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

func runningPods(obs *observation) []podFacts {
	return slices.DeleteFunc(slices.Clone(obs.pods), func(p podFacts) bool { return !p.running() })
}

func findPod(pods []podFacts, name string) *podFacts {
	if i := slices.IndexFunc(pods, func(p podFacts) bool { return p.name == name }); i >= 0 {
		return &pods[i]
	}
	return nil
}

// joinGrace is how long a container may run before it must be a member of the group: until then it is starting, and a process without
// a pod is the one that it replaces. Longer than session.timeout.ms (45 s since Kafka 3.0), after which the broker drops that one.
const joinGrace = 2 * time.Minute

// assignmentOf says who runs what, in the planner's terms. For pods that are away, or that are still to come, others stand in that run
// nothing yet.
func assignmentOf(obs *observation, lost losses) memplan.Assignment {
	var result memplan.Assignment
	for _, p := range runningPods(obs) {
		result.Pods = append(result.Pods, memplan.Pod{Name: p.name})
	}
	missing := lost.away
	if len(result.Pods) == 0 {
		missing = max(1, lost.instances)
	}
	for i := range missing {
		result.Pods = append(result.Pods, memplan.Pod{Name: fmt.Sprintf("%s (to come, %d)", obs.workload.name, i)})
	}
	for _, load := range obs.group.match.Loads {
		i := slices.IndexFunc(result.Pods, func(p memplan.Pod) bool { return p.Name == load.Pod })
		result.Pods[i] = podOf(load)
	}
	if !obs.processesFound() {
		heaviest := podOf(obs.group.match.Heaviest)
		heaviest.Name = "heaviest process without a pod"
		result.Unmatched = []memplan.Pod{heaviest}
	}
	return result
}

// processesFound tells whether every process of the group has been found in a pod, as far as can be expected. A process without a pod
// is no cause for doubt while a pod without a process has only just started: the one is what the other replaces.
func (o *observation) processesFound() bool {
	match := o.group.match
	if len(match.Processes) == 0 || len(match.Pods) == 0 {
		return true
	}
	if len(match.Loads) == 0 {
		return false
	}
	return !slices.ContainsFunc(match.Pods, func(u assignment.Unmatched) bool {
		p := findPod(o.pods, u.Name)
		return p != nil && !p.starting(o.now)
	})
}

// works tells whether a pod has tasks.
func (o *observation) works(pod *podFacts) bool {
	return slices.ContainsFunc(o.group.match.Loads, func(l assignment.PodLoad) bool { return l.Pod == pod.name && l.Tasks.Len() > 0 })
}

// joiningPods counts the pods that are starting, or whose container is restarted, and that have no tasks, in a group that has some.
func (o *observation) joiningPods() int {
	if len(o.group.match.Loads) == 0 {
		return 0
	}
	joining := 0
	for i := range o.pods {
		if p := &o.pods[i]; p.running() && !o.works(p) && p.starting(o.now) {
			joining++
		}
	}
	return joining
}

// recheckAfter is when processesFound and joiningPods may change by the clock alone; zero for never.
func (o *observation) recheckAfter() time.Duration {
	if len(o.group.match.Loads) == 0 {
		return 0
	}
	var after time.Duration
	for i := range o.pods {
		p := &o.pods[i]
		if !p.running() || p.down || o.works(p) {
			continue
		}
		if wait := joinGrace - o.now.Sub(p.started) + time.Second; wait > 0 {
			after = earliest(after, wait)
		}
	}
	return after
}

func podOf(load assignment.PodLoad) memplan.Pod {
	pod := memplan.Pod{Name: load.Pod, Threads: load.Threads, Current: tasksOf(load.Tasks)}
	if load.Target != nil {
		pod.Target = tasksOf(*load.Target)
	}
	return pod
}

func tasksOf(tasks assignment.Tasks) memplan.Tasks {
	convert := func(from []assignment.Task) []memplan.Task {
		var to []memplan.Task
		for _, t := range from {
			to = append(to, memplan.Task{Subtopology: t.Subtopology, Partition: t.Partition})
		}
		return to
	}
	return memplan.Tasks{Active: convert(tasks.Active), Standby: convert(tasks.Standby), WarmUp: convert(tasks.WarmUp)}
}
