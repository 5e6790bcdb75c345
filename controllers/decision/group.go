// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	"streamweir.dev/streamweir/assignment"
)

// Assignment is the group of the application and the pods that run its tasks, as the best source shows them.
type Assignment struct {
	// Group is the reports' group, completed by the Kafka group; the Kafka group where the reports are not usable; nil without a source.
	Group *assignment.Group
	// Matching has the tasks of each pod.
	Matching assignment.Matching
}

// assignmentOf combines the sources of the assignment. Pods know best which tasks they run; brokers know the retention of changelog topics.
func assignmentOf(kafka *assignment.Group, reports *Reports, pods []Pod) Assignment {
	if reports.Usable {
		return reportedAssignment(kafka, reports, pods)
	}
	if kafka == nil {
		return Assignment{}
	}
	var candidates []assignment.Pod
	for _, p := range runningPods(pods) {
		candidates = append(candidates, assignment.Pod{Name: p.Name, Addresses: p.Addresses})
	}
	return Assignment{Group: kafka, Matching: assignment.Match(kafka.Processes, candidates)}
}

func reportedAssignment(kafka *assignment.Group, reports *Reports, pods []Pod) Assignment {
	group := reports.Group.Group
	group.Stable = true
	group.State = "Stable"
	if kafka != nil && kafka.ApplicationID == group.ApplicationID {
		group = completed(group, kafka)
	}
	result := Assignment{Group: &group, Matching: assignment.Matching{Loads: reports.Group.Loads}}
	for _, p := range runningPods(pods) {
		if !slices.ContainsFunc(reports.Group.Loads, func(l assignment.PodLoad) bool { return l.Pod == p.Name }) {
			result.Matching.Pods = append(result.Matching.Pods, assignment.Unmatched{Name: p.Name, Why: "it has not reported a task"})
		}
	}
	return result
}

// completed returns the reported group with the facts that only brokers show.
func completed(group assignment.Group, kafka *assignment.Group) assignment.Group {
	if group.Protocol == assignment.Streams {
		group.Standbys = kafka.Standbys // a config of the group, on the broker
	}
	group.Brokers = max(group.Brokers, kafka.Brokers)
	group.SessionTimeout = kafka.SessionTimeout
	group.NextRebalance = kafka.NextRebalance
	group.Warnings = slices.Concat(group.Warnings, kafka.Warnings)
	group.Subtopologies = slices.Clone(group.Subtopologies)
	for _, shown := range kafka.Subtopologies {
		i := slices.IndexFunc(group.Subtopologies, func(s assignment.Subtopology) bool { return s.ID == shown.ID })
		if i < 0 {
			continue // no pod has reported a task of it, so its existence is uncertain
		}
		s := &group.Subtopologies[i]
		s.Tasks = max(s.Tasks, shown.Tasks)
		s.SourceTopics = shown.SourceTopics
		s.SinkTopics = shown.SinkTopics
		s.Changelogs = shown.Changelogs
	}
	return group
}

// ProcessesMatched returns whether every process of the group was matched to a pod, as far as can be expected. A process without a pod does
// not count while a pod without a process has just started: the pod replaces the process.
func (a *Assignment) ProcessesMatched(pods []Pod, now time.Time) bool {
	match := &a.Matching
	if len(match.Processes) == 0 || len(match.Pods) == 0 {
		return true
	}
	if len(match.Loads) == 0 {
		return false
	}
	return !slices.ContainsFunc(match.Pods, func(u assignment.Unmatched) bool {
		p := findPod(pods, u.Name)
		return p != nil && !p.starting(now)
	})
}

// hasTasks returns whether a pod runs tasks.
func (a *Assignment) hasTasks(pod *Pod) bool {
	return slices.ContainsFunc(a.Matching.Loads, func(l assignment.PodLoad) bool { return l.Pod == pod.Name && l.Tasks.Len() > 0 })
}

// startingPods returns the number of running pods that have just started and have no tasks, in a group that has some.
func (a *Assignment) startingPods(pods []Pod, now time.Time) int {
	if len(a.Matching.Loads) == 0 {
		return 0
	}
	starting := 0
	for _, p := range runningPods(pods) {
		if !a.hasTasks(&p) && p.starting(now) {
			starting++
		}
	}
	return starting
}

// recheckAfter returns the time after which ProcessesMatched and startingPods may change without an event; 0 if they do not.
func (a *Assignment) recheckAfter(pods []Pod, now time.Time) time.Duration {
	if len(a.Matching.Loads) == 0 {
		return 0
	}
	var after time.Duration
	for _, p := range runningPods(pods) {
		if p.ContainerDown || a.hasTasks(&p) {
			continue
		}
		if wait := startingGrace - now.Sub(p.Started) + time.Second; wait > 0 {
			after = Earliest(after, wait)
		}
	}
	return after
}
