// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// ids returns the tasks of one subtopology in the form of the streams protocol.
func ids(subtopology string, partitions ...int32) []kmsg.TaskIDs {
	id := kmsg.NewTaskIDs()
	id.SubtopologyID, id.Partitions = subtopology, partitions
	return []kmsg.TaskIDs{id}
}

// thread returns a member of a streams group.
func thread(process, host string, current, target kmsg.StreamsAssignment) kmsg.StreamsGroupDescribeResponseGroupMember {
	m := kmsg.NewStreamsGroupDescribeResponseGroupMember()
	m.MemberID, m.ProcessID, m.ClientHost, m.ClientID = process+"-member", process, "/"+host, "app-StreamThread-1-consumer"
	m.Assignment, m.TargetAssignment = current, target
	return m
}

// topic returns a topic declared by a streams group.
func topic(name string, partitions int32, configs ...string) kmsg.TopicInfo {
	info := kmsg.NewTopicInfo()
	info.Topic, info.NumPartitions = name, partitions
	for i := 0; i+1 < len(configs); i += 2 {
		config := kmsg.NewTopicInfoConfig()
		config.Key, config.Value = configs[i], configs[i+1]
		info.Configs = append(info.Configs, config)
	}
	return info
}

// streamsGroup returns a description with two subtopologies and a repartition topic between them.
func streamsGroup(state string, members ...kmsg.StreamsGroupDescribeResponseGroupMember) kmsg.StreamsGroupDescribeResponseGroup {
	g := kmsg.NewStreamsGroupDescribeResponseGroup()
	g.Group, g.State, g.Members = "app", state, members
	first := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
	first.SubtopologyID, first.SourceTopics, first.RepartitionSinkTopics = "0", []string{"in"}, []string{"app-counts-repartition"}
	second := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
	second.SubtopologyID = "1"
	second.RepartitionSourceTopics = []kmsg.TopicInfo{topic("app-counts-repartition", 3)}
	second.StateChangelogTopics = []kmsg.TopicInfo{
		topic("app-counts-changelog", 0, "cleanup.policy", "compact"),
		topic("app-windows-changelog", 0, "cleanup.policy", "compact,delete", "retention.ms", "90000000"),
	}
	topology := kmsg.NewStreamsGroupDescribeResponseGroupTopology()
	topology.Subtopologies = []kmsg.StreamsGroupDescribeResponseGroupTopologySubtopology{second, first}
	g.Topology = &topology
	return g
}

func TestDecodeStreams(t *testing.T) {
	topology := []assignment.Subtopology{
		{ID: "0", Tasks: 2, SourceTopics: []assignment.Topic{{Name: "in"}}, SinkTopics: []assignment.Topic{{Name: "app-counts-repartition"}}},
		{ID: "1", Stateful: true, SourceTopics: []assignment.Topic{{Name: "app-counts-repartition", Partitions: 3}},
			Changelogs: []assignment.Changelog{
				{Topic: "app-counts-changelog", Store: "counts", Kind: assignment.KeyValue},
				{Topic: "app-windows-changelog", Store: "windows", Kind: assignment.Window, Retention: time.Hour},
			}},
	}
	all := kmsg.StreamsAssignment{ActiveTasks: append(ids("0", 1, 0), ids("1", 2)...), StandbyTasks: ids("1", 0), WarmupTasks: ids("1", 1)}
	tasksOfAll := assignment.Tasks{Active: append(tasks("0", 0, 1), tasks("1", 2)...), Standby: tasks("1", 0), WarmUp: tasks("1", 1)}
	static := thread("a", "h1", all, all)
	static.InstanceID = new("app-0")
	cases := map[string]struct {
		group kmsg.StreamsGroupDescribeResponseGroup
		tasks int32 // Of subtopology 1, as far as they are assigned.
		want  assignment.Group
	}{
		"a member with all roles": {
			group: streamsGroup("Stable", thread("a", "h1", all, all)),
			tasks: 3,
			want: assignment.Group{State: "Stable", Stable: true, Assigned: true, VersionHint: "4.1", Processes: []assignment.Process{
				{ID: "a", Host: "h1", ClientID: "app", Threads: 1, Tasks: tasksOfAll}}},
		},
		"a static member": {
			group: streamsGroup("Stable", static),
			tasks: 3,
			want: assignment.Group{State: "Stable", Stable: true, Assigned: true, VersionHint: "4.4", Processes: []assignment.Process{
				{ID: "a", Host: "h1", ClientID: "app", Threads: 1, Static: true, Tasks: tasksOfAll}}},
		},
		"a target with moves between threads only": {
			group: streamsGroup("Reconciling",
				thread("a", "h1", kmsg.StreamsAssignment{ActiveTasks: ids("0", 0, 1)}, kmsg.StreamsAssignment{ActiveTasks: ids("1", 2)}),
				thread("a", "h1", kmsg.StreamsAssignment{ActiveTasks: ids("1", 2)}, kmsg.StreamsAssignment{ActiveTasks: ids("0", 0, 1)})),
			tasks: 3,
			want: assignment.Group{State: "Reconciling", Assigned: true, VersionHint: "4.1", Processes: []assignment.Process{
				{ID: "a", Host: "h1", ClientID: "app", Threads: 2, Tasks: assignment.Tasks{Active: append(tasks("0", 0, 1), tasks("1", 2)...)}}}},
		},
		"a target on another process": {
			group: streamsGroup("Reconciling",
				thread("a", "h1", kmsg.StreamsAssignment{ActiveTasks: ids("0", 0, 1)}, kmsg.StreamsAssignment{ActiveTasks: ids("0", 0)}),
				thread("b", "h2", kmsg.StreamsAssignment{}, kmsg.StreamsAssignment{ActiveTasks: ids("0", 1)})),
			want: assignment.Group{State: "Reconciling", Assigned: true, VersionHint: "4.1", Processes: []assignment.Process{
				{ID: "a", Host: "h1", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 0, 1)},
					Target: &assignment.Tasks{Active: tasks("0", 0)}},
				{ID: "b", Host: "h2", ClientID: "app", Threads: 1, Target: &assignment.Tasks{Active: tasks("0", 1)}}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.ApplicationID, c.want.Protocol, c.want.Subtopologies = "app", assignment.Streams, slices.Clone(topology)
			c.want.Subtopologies[1].Tasks = c.tasks
			got, err := assignment.DecodeStreams(c.group)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeStreamsWithoutAnAssignment(t *testing.T) {
	for name, g := range map[string]kmsg.StreamsGroupDescribeResponseGroup{
		"of a group without members":      streamsGroup("Empty"),
		"while source topics are missing": streamsGroup("NotReady", thread("a", "h1", kmsg.StreamsAssignment{}, kmsg.StreamsAssignment{})),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := assignment.DecodeStreams(g); err != nil || got.Assigned {
				t.Errorf("the group is %+v (%v), should not be Assigned", got, err)
			}
		})
	}
}

func TestDecodeStreamsReadsTheTopologyDescription(t *testing.T) {
	g := streamsGroup("Stable", thread("a", "h1", kmsg.StreamsAssignment{ActiveTasks: ids("0", 0)},
		kmsg.StreamsAssignment{ActiveTasks: ids("0", 0)}))
	node := func(stores ...string) kmsg.TopologyDescriptionNode {
		n := kmsg.NewTopologyDescriptionNode()
		n.Stores = stores
		return n
	}
	sub := kmsg.NewTopologyDescriptionSubtopology()
	sub.SubtopologyID, sub.Nodes = "1", []kmsg.TopologyDescriptionNode{node("windows", "scratch"), node("counts"), node("scratch")}
	global := kmsg.NewTopologyDescriptionGlobalStore()
	global.Processor = node("reference")
	description := kmsg.NewStreamsGroupDescribeResponseGroupTopologyDescription()
	description.Subtopologies = []kmsg.TopologyDescriptionSubtopology{sub}
	description.GlobalStores = []kmsg.TopologyDescriptionGlobalStore{global}
	g.TopologyDescription, g.TopologyDescriptionStatus = &description, 3
	got, err := assignment.DecodeStreams(g)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"scratch"}, got.Subtopologies[1].UnloggedStores); diff != "" {
		t.Errorf("stores without changelogs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"reference"}, got.GlobalStores); diff != "" {
		t.Errorf("global stores (-want +got):\n%s", diff)
	}
}

func TestDecodeStreamsRejects(t *testing.T) {
	bad := kmsg.StreamsAssignment{StandbyTasks: ids("0", -1)}
	notFound := streamsGroup("")
	notFound.ErrorCode = kerr.GroupIDNotFound.Code
	cases := map[string]struct {
		group     kmsg.StreamsGroupDescribeResponseGroup
		wantClass assignment.Class
		wantText  string
	}{
		"an error code": {notFound, assignment.ClassUnknownGroup, "GROUP_ID_NOT_FOUND"},
		"an impossible task": {streamsGroup("Stable", thread("a", "h1", bad, kmsg.StreamsAssignment{})), assignment.ClassMalformed,
			`member "a-member" at "h1"`},
		"an impossible target": {streamsGroup("Stable", thread("a", "h1", kmsg.StreamsAssignment{}, bad)), assignment.ClassMalformed,
			`field StandbyTasks: partition -1 of subtopology "0" must not be negative`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := assignment.DecodeStreams(c.group)
			e, ok := errors.AsType[*assignment.Error](err)
			if !ok || e.Class != c.wantClass || e.Group != "app" || !strings.Contains(e.Error(), c.wantText) {
				t.Errorf("got %v, want class %q with %q", err, c.wantClass, c.wantText)
			}
		})
	}
}

func FuzzDecodeStreams(f *testing.F) {
	all := kmsg.StreamsAssignment{ActiveTasks: ids("0", 1, 0), StandbyTasks: ids("1", 0)}
	for _, version := range []int16{0, 1} {
		response := kmsg.NewStreamsGroupDescribeResponse()
		response.Version = version
		response.Groups = []kmsg.StreamsGroupDescribeResponseGroup{streamsGroup("Stable", thread("a", "h1", all, all))}
		f.Add(version, response.AppendTo(nil))
	}
	for _, c := range loadCaptured(f) {
		if c.Protocol == "streams" {
			f.Add(c.Version, c.Streams)
		}
	}
	f.Fuzz(func(t *testing.T, version int16, data []byte) {
		response := kmsg.NewStreamsGroupDescribeResponse()
		response.Version = min(max(version, 0), 1)
		if response.ReadFrom(data) != nil {
			return
		}
		for _, g := range response.Groups {
			got, err := assignment.DecodeStreams(g)
			if e, ok := errors.AsType[*assignment.Error](err); err != nil && (!ok || e.Group != g.Group) {
				t.Errorf("the error does not contain the group: %v", err)
			}
			if err == nil && len(got.Processes) == 0 && len(g.Members) > 0 {
				t.Error("a group with members has no processes")
			}
		}
	})
}
