// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeStreams returns the Group for the broker's description of a streams group, versions 0 and 1. Missing numbers of partitions are
// added later, from the cluster. Errors have the classes of the broker's error codes, and MalformedGroup for an impossible task.
func DecodeStreams(g kmsg.StreamsGroupDescribeResponseGroup) (Group, error) {
	if err := kerr.TypedErrorForCode(g.ErrorCode); err != nil {
		return Group{}, &Error{Class: classOfBroker(err), Group: g.Group, Err: err}
	}
	group := Group{ApplicationID: g.Group, Protocol: Streams, State: g.State, Stable: g.State == "Stable"}
	found := streamsTopology(g)
	byID := map[string]*Process{}
	var assigned int
	for _, member := range g.Members {
		current, errCurrent := streamsTasks(member.Assignment)
		target, errTarget := streamsTasks(member.TargetAssignment)
		if err := cmp.Or(errCurrent, errTarget); err != nil {
			return Group{}, &Error{Class: ClassMalformed, Group: g.Group, Member: member.MemberID, Host: normalHost(member.ClientHost), Err: err}
		}
		assigned += current.Len() + target.Len()
		found.add(current)
		found.add(target)
		addStreamsMember(byID, member, current, target)
	}
	group.Processes = sortedProcesses(byID)
	for i := range group.Processes {
		group.Processes[i].dropSameTarget()
	}
	group.Subtopologies = found.sorted()
	group.GlobalStores = globalStores(g.TopologyDescription)
	group.Assigned = len(g.Members) > 0 && (group.Stable || assigned > 0)
	group.VersionHint = streamsVersionHint(group.Processes)
	return group, nil
}

// addStreamsMember adds a member, which is one thread, to its process.
func addStreamsMember(byID map[string]*Process, m kmsg.StreamsGroupDescribeResponseGroupMember, current, target Tasks) {
	p := processFor(byID, m.ProcessID, m.ClientHost, m.ClientID, m.InstanceID)
	p.Tasks = p.Tasks.plus(current)
	if p.Target == nil {
		p.Target = new(Tasks)
	}
	*p.Target = p.Target.plus(target)
}

// dropSameTarget removes a target that equals the current tasks. Moves between threads of a process do not change its memory.
func (p *Process) dropSameTarget() {
	if p.Target != nil && reflect.DeepEqual(*p.Target, p.Tasks) {
		p.Target = nil
	}
}

// streamsTasks converts an assignment.
func streamsTasks(a kmsg.StreamsAssignment) (Tasks, error) {
	active, errActive := taskIDs("ActiveTasks", a.ActiveTasks)
	standby, errStandby := taskIDs("StandbyTasks", a.StandbyTasks)
	warmUp, errWarmUp := taskIDs("WarmupTasks", a.WarmupTasks)
	return Tasks{Active: active, Standby: standby, WarmUp: warmUp}, cmp.Or(errActive, errStandby, errWarmUp)
}

// taskIDs flattens a list of tasks.
func taskIDs(field string, ids []kmsg.TaskIDs) ([]Task, error) {
	var tasks []Task
	for _, id := range ids {
		for _, partition := range id.Partitions {
			if partition < 0 {
				return nil, fmt.Errorf("field %s: partition %d of subtopology %q must not be negative", field, partition, id.SubtopologyID)
			}
			tasks = append(tasks, Task{id.SubtopologyID, partition})
		}
	}
	return sortTasks(tasks), nil
}

// add adds all tasks of an assignment.
func (s *subtopologies) add(t Tasks) {
	for _, task := range slices.Concat(t.Active, t.Standby, t.WarmUp) {
		s.task(task)
	}
}

// streamsTopology returns the subtopologies, which the streams protocol describes completely.
func streamsTopology(g kmsg.StreamsGroupDescribeResponseGroup) *subtopologies {
	found := newSubtopologies()
	if g.Topology == nil {
		return found
	}
	for _, described := range g.Topology.Subtopologies {
		sub := &Subtopology{ID: described.SubtopologyID, Stateful: len(described.StateChangelogTopics) > 0}
		for _, name := range described.SourceTopics {
			sub.SourceTopics = append(sub.SourceTopics, Topic{Name: name})
		}
		for _, topic := range described.RepartitionSourceTopics {
			sub.SourceTopics = append(sub.SourceTopics, Topic{Name: topic.Topic, Partitions: max(topic.NumPartitions, 0)})
		}
		for _, name := range described.RepartitionSinkTopics {
			sub.SinkTopics = append(sub.SinkTopics, Topic{Name: name})
		}
		for _, topic := range described.StateChangelogTopics {
			sub.Tasks = max(sub.Tasks, topic.NumPartitions) // 4.4 declares the partitions, one for each task.
			sub.Changelogs = append(sub.Changelogs, declaredChangelog(g.Group, topic))
		}
		sortTopics(sub.SinkTopics)
		sortChangelogs(sub.Changelogs)
		sub.UnloggedStores = unloggedStores(g.TopologyDescription, *sub)
		found.byID[sub.ID] = sub
	}
	return found
}

// unloggedStores returns the stores of a subtopology without a changelog, from the description of the topology.
func unloggedStores(d *kmsg.StreamsGroupDescribeResponseGroupTopologyDescription, sub Subtopology) []string {
	if d == nil {
		return nil
	}
	var stores []string
	for _, s := range d.Subtopologies {
		if s.SubtopologyID != sub.ID {
			continue
		}
		for _, node := range s.Nodes {
			stores = append(stores, node.Stores...)
		}
	}
	stores = slices.DeleteFunc(stores, func(store string) bool {
		return slices.ContainsFunc(sub.Changelogs, func(c Changelog) bool { return c.Store == store })
	})
	return sortedNames(stores)
}

// sortedNames sorts names and removes duplicates. It returns nil for an empty list.
func sortedNames(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// globalStores returns the names of the global stores.
func globalStores(d *kmsg.StreamsGroupDescribeResponseGroupTopologyDescription) []string {
	if d == nil {
		return nil
	}
	var stores []string
	for _, g := range d.GlobalStores {
		stores = append(stores, g.Processor.Stores...)
	}
	return sortedNames(stores)
}

// streamsVersionHint returns the oldest release with the features of the members: the streams protocol exists from 4.1 (KIP-1071), with
// static membership from 4.4.
func streamsVersionHint(processes []Process) string {
	switch {
	case len(processes) == 0:
		return ""
	case slices.ContainsFunc(processes, func(p Process) bool { return !p.Static }):
		return "4.1"
	}
	return "4.4"
}
