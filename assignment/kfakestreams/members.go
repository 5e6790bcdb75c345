// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kfakestreams

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// describeClassic fills in the description of a classic group: members come with their bytes only while it is stable,
// as from a real broker.
func (g *group) describeClassic(described *kmsg.DescribeGroupsResponseGroup) {
	described.ProtocolType = "consumer"
	switch {
	case len(g.instances) == 0:
		described.State = "Empty"
	case g.rebalancing:
		described.State = "PreparingRebalance"
	default:
		described.State, described.Protocol = "Stable", "stream"
	}
	for _, in := range g.instances {
		for thread := range g.Threads {
			m := kmsg.NewDescribeGroupsResponseGroupMember()
			m.MemberID, m.ClientID = g.memberID(in, thread), g.clientID(in, thread)
			m.ClientHost, m.InstanceID = "/"+in.host, g.instanceID(in, thread)
			if !g.rebalancing {
				m.ProtocolMetadata, m.MemberAssignment = g.metadata(in, thread), g.assigned(in, thread)
			}
			described.Members = append(described.Members, m)
		}
	}
}

// metadata gives a member's subscription. The first thread of an instance reports the state of the whole process.
func (g *group) metadata(in *instance, thread int) []byte {
	s := assignment.SubscriptionInfo{Version: g.version(), LatestVersion: assignment.LatestVersion, ProcessID: in.process}
	if thread == 0 {
		s.Tasks = g.offsets(in)
	}
	userData, err := EncodeSubscription(s)
	if err != nil || in.garbled {
		userData = []byte{0, 0, 0, 11, 0xde, 0xad}
	}
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Version, metadata.UserData = 3, userData
	for _, s := range g.Subtopologies {
		metadata.Topics = append(metadata.Topics, s.Sources...)
	}
	slices.Sort(metadata.Topics)
	return metadata.AppendTo(nil)
}

// version is that of the infos.
func (g *group) version() int32 { return cmp.Or(g.Version, assignment.LatestVersion) }

// offsets gives the tasks whose state an instance has.
func (g *group) offsets(in *instance) []assignment.TaskOffset {
	var offsets []assignment.TaskOffset
	for _, t := range in.current.Active {
		if len(g.subtopology(t).Stores) > 0 {
			offsets = append(offsets, assignment.TaskOffset{Task: t, Sum: latestOffset})
		}
	}
	for _, t := range in.current.Standby {
		offsets = append(offsets, assignment.TaskOffset{Task: t, Sum: 1000 * int64(t.Partition+1)})
	}
	return offsets
}

// subtopology gives a task's subtopology.
func (g *group) subtopology(t assignment.Task) Subtopology {
	i, err := strconv.Atoi(t.Subtopology)
	if err != nil {
		return Subtopology{}
	}
	return g.Subtopologies[i]
}

// assigned gives a member's assignment: the partitions, and for each in their order its task.
func (g *group) assigned(in *instance, thread int) []byte {
	mine := g.thread(in.current, thread)
	info := assignment.AssignmentInfo{Version: g.version(), CommonVersion: assignment.LatestVersion,
		NextRebalanceMillis: assignment.NoRebalance}
	byTopic := map[string][]int32{}
	tasks := map[assignment.TopicPartition]assignment.Task{}
	for _, t := range mine.Active {
		for _, topic := range g.subtopology(t).Sources {
			byTopic[topic] = append(byTopic[topic], t.Partition)
			tasks[assignment.TopicPartition{Topic: topic, Partition: t.Partition}] = t
		}
	}
	outer := kmsg.NewConsumerMemberAssignment()
	outer.Version = 3
	for _, topic := range sortedKeys(byTopic) {
		slices.Sort(byTopic[topic])
		assigned := kmsg.NewConsumerMemberAssignmentTopic()
		assigned.Topic, assigned.Partitions = topic, byTopic[topic]
		outer.Topics = append(outer.Topics, assigned)
		for _, p := range byTopic[topic] {
			info.Active = append(info.Active, tasks[assignment.TopicPartition{Topic: topic, Partition: p}])
		}
	}
	for _, t := range mine.Standby {
		standby := assignment.StandbyTask{Task: t}
		for _, topic := range g.subtopology(t).Sources {
			standby.Partitions = append(standby.Partitions, assignment.TopicPartition{Topic: topic, Partition: t.Partition})
		}
		info.Standby = append(info.Standby, standby)
	}
	outer.UserData = EncodeAssignment(info)
	return outer.AppendTo(nil)
}

func sortedKeys(m map[string][]int32) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// describeStreams fills in the description of a streams group: while it rebalances, members still run their old tasks
// and have a target.
func (g *group) describeStreams(described *kmsg.StreamsGroupDescribeResponseGroup) {
	described.State = "Stable"
	switch {
	case len(g.instances) == 0:
		described.State = "Empty"
	case g.rebalancing:
		described.State = "Reconciling"
	}
	described.Epoch, described.AssignmentEpoch = int32(g.starts), int32(g.starts)
	described.TopologyDescriptionStatus = 1 // Not stored: the default, without a plugin in the broker.
	described.Topology = g.topology()
	for _, in := range g.instances {
		for thread := range g.Threads {
			m := kmsg.NewStreamsGroupDescribeResponseGroupMember()
			m.MemberID, m.ClientID = g.memberID(in, thread), g.clientID(in, thread)
			m.ClientHost, m.InstanceID, m.ProcessID = "/"+in.host, g.instanceID(in, thread), in.process
			m.Assignment = streamsAssignment(g.thread(in.current, thread))
			m.TargetAssignment = streamsAssignment(g.thread(in.target, thread))
			described.Members = append(described.Members, m)
		}
	}
}

// topology gives the subtopologies as the members sent them: changelogs without a number of partitions.
func (g *group) topology() *kmsg.StreamsGroupDescribeResponseGroupTopology {
	topology := kmsg.NewStreamsGroupDescribeResponseGroupTopology()
	for i, s := range g.Subtopologies {
		sub := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
		sub.SubtopologyID, sub.SourceTopics = strconv.Itoa(i), s.Sources
		for _, store := range s.Stores {
			info := kmsg.NewTopicInfo()
			info.Topic = g.changelog(store)
			for key, value := range store.configs() {
				config := kmsg.NewTopicInfoConfig()
				config.Key, config.Value = key, value
				info.Configs = append(info.Configs, config)
			}
			sub.StateChangelogTopics = append(sub.StateChangelogTopics, info)
		}
		topology.Subtopologies = append(topology.Subtopologies, sub)
	}
	return &topology
}

// streamsAssignment puts tasks into the form of the streams protocol.
func streamsAssignment(tasks assignment.Tasks) kmsg.StreamsAssignment {
	a := kmsg.NewStreamsAssignment()
	a.ActiveTasks, a.StandbyTasks = taskIDs(tasks.Active), taskIDs(tasks.Standby)
	return a
}

// taskIDs puts sorted tasks together by subtopology.
func taskIDs(tasks []assignment.Task) []kmsg.TaskIDs {
	var ids []kmsg.TaskIDs
	for _, t := range tasks {
		if len(ids) == 0 || ids[len(ids)-1].SubtopologyID != t.Subtopology {
			id := kmsg.NewTaskIDs()
			id.SubtopologyID = t.Subtopology
			ids = append(ids, id)
		}
		last := &ids[len(ids)-1]
		last.Partitions = append(last.Partitions, t.Partition)
	}
	return ids
}
