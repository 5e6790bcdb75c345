// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
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
	// Remembered are the pods that no source shows now, sorted: Matching has their last known load, or that of another pod.
	Remembered []string
	// Unseen is the number of remembered pods that were never seen.
	Unseen int
}

// assignmentOf combines the sources of the assignment. Pods know best which tasks they run; brokers know the retention of changelog topics.
func assignmentOf(kafka *assignment.Group, reports *Reports, pods []Pod, known *KnownAssignment, now time.Time) Assignment {
	if reports.Usable {
		return reportedAssignment(kafka, reports, pods, known, now)
	}
	if kafka == nil {
		return Assignment{}
	}
	result := Assignment{Group: kafka, Matching: matchingOf(kafka, pods)}
	for _, p := range runningPods(pods) {
		if load, remembered := known.load(&p); remembered && !p.starting(now) && !result.shows(p.Name) {
			result.remember(load)
		}
	}
	return result
}

// matchingOf matches the processes of a group to pods.
func matchingOf(group *assignment.Group, pods []Pod) assignment.Matching {
	var candidates []assignment.Pod
	for _, p := range runningPods(pods) {
		candidates = append(candidates, assignment.Pod{Name: p.Name, Addresses: p.Addresses})
	}
	return assignment.Match(group.Processes, candidates)
}

// shows returns whether a load of the pod is known.
func (a *Assignment) shows(pod string) bool {
	return slices.ContainsFunc(a.Matching.Loads, func(l assignment.PodLoad) bool { return l.Pod == pod })
}

// add adds a load in the order of the pods.
func (a *Assignment) add(load assignment.PodLoad) {
	a.Matching.Loads = append(slices.Clip(a.Matching.Loads), load)
	slices.SortFunc(a.Matching.Loads, func(a, b assignment.PodLoad) int { return cmp.Compare(a.Pod, b.Pod) })
}

// remember adds a load that no source shows now.
func (a *Assignment) remember(load assignment.PodLoad) {
	a.add(load)
	a.Remembered = append(a.Remembered, load.Pod)
}

// reportedAssignment combines the reports with the loads of silent pods. The load in the Kafka group comes first, then the last known one.
// An unseen pod gets the load of a pod that is gone, or else the heaviest one. A starting pod has no tasks yet.
func reportedAssignment(kafka *assignment.Group, reports *Reports, pods []Pod, known *KnownAssignment, now time.Time) Assignment {
	group := reports.Group.Group
	group.Stable = true
	group.State = "Stable"
	if kafka == nil {
		kafka = known.kafka(group.ApplicationID)
	}
	var inKafka Assignment
	if kafka != nil && kafka.ApplicationID == group.ApplicationID {
		group = completed(group, kafka)
		inKafka.Matching = matchingOf(kafka, pods)
	}
	result := Assignment{Group: &group, Matching: assignment.Matching{Loads: reports.Group.Loads}}
	for _, p := range runningPods(pods) {
		if result.shows(p.Name) {
			continue
		}
		load, knownBefore := known.load(&p)
		switch silent := p.Report.Report == nil && !p.starting(now); {
		case !silent:
			result.Matching.Pods = append(result.Matching.Pods, assignment.Unmatched{Name: p.Name, Why: "it has not reported a task"})
		case inKafka.shows(p.Name):
			i := slices.IndexFunc(inKafka.Matching.Loads, func(l assignment.PodLoad) bool { return l.Pod == p.Name })
			result.add(inKafka.Matching.Loads[i])
		case knownBefore:
			result.remember(load)
		default:
			load = known.unseenLoad(result.Unseen, pods, reports.Group.Loads)
			load.Pod = p.Name
			result.remember(load)
			result.Unseen++
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
