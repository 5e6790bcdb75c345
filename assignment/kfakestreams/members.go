// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kfakestreams

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// describeClassic adds the state and the members of a classic group. As from a real broker, members have metadata only in the state Stable.
func (g *group) describeClassic(described *kmsg.DescribeGroupsResponseGroup) {
	described.ProtocolType = "consumer"
	switch {
	case len(g.instances) == 0:
		described.State = "Empty"
	case g.rebalancing:
		described.State = "PreparingRebalance"
	default:
		described.State = "Stable"
		described.Protocol = "stream"
	}
	for _, in := range g.instances {
		for thread := range g.Threads {
			member := kmsg.NewDescribeGroupsResponseGroupMember()
			member.MemberID = g.memberID(in, thread)
			member.ClientID = g.clientID(in, thread)
			member.ClientHost = "/" + in.host
			member.InstanceID = g.instanceID(in, thread)
			if !g.rebalancing {
				member.ProtocolMetadata = g.metadata(in, thread)
				member.MemberAssignment = g.assigned(in, thread)
			}
			described.Members = append(described.Members, member)
		}
	}
}

// metadata returns the subscription of a member. The first thread of an instance reports the state of the whole process.
func (g *group) metadata(in *instance, thread int) []byte {
	info := assignment.SubscriptionInfo{Version: g.version(), LatestVersion: assignment.LatestVersion, ProcessID: in.process}
	if thread == 0 {
		info.Tasks = g.offsets(in)
	}
	userData, err := EncodeSubscription(info)
	if err != nil || in.garbled {
		userData = []byte{0, 0, 0, 11, 0xde, 0xad}
	}
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Version = 3
	metadata.UserData = userData
	for _, subtopology := range g.Subtopologies {
		metadata.Topics = append(metadata.Topics, subtopology.Sources...)
	}
	slices.Sort(metadata.Topics)
	return metadata.AppendTo(nil)
}

// version returns the version of the messages.
func (g *group) version() int32 { return cmp.Or(g.Version, assignment.LatestVersion) }

// offsets returns the tasks whose state an instance has.
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

// subtopology returns the subtopology of a task.
func (g *group) subtopology(t assignment.Task) Subtopology {
	i, err := strconv.Atoi(t.Subtopology)
	if err != nil {
		return Subtopology{}
	}
	return g.Subtopologies[i]
}

// assigned returns the assignment of a member: its partitions, and the task of each of them in their order.
func (g *group) assigned(in *instance, thread int) []byte {
	own := g.thread(in.current, thread)
	info := assignment.AssignmentInfo{Version: g.version(), CommonVersion: assignment.LatestVersion,
		NextRebalanceMillis: assignment.NoRebalance}
	byTopic := map[string][]int32{}
	tasks := map[assignment.TopicPartition]assignment.Task{}
	for _, t := range own.Active {
		for _, topic := range g.subtopology(t).Sources {
			byTopic[topic] = append(byTopic[topic], t.Partition)
			tasks[assignment.TopicPartition{Topic: topic, Partition: t.Partition}] = t
		}
	}
	outer := kmsg.NewConsumerMemberAssignment()
	outer.Version = 3
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
		slices.Sort(byTopic[topic])
		assigned := kmsg.NewConsumerMemberAssignmentTopic()
		assigned.Topic = topic
		assigned.Partitions = byTopic[topic]
		outer.Topics = append(outer.Topics, assigned)
		for _, partition := range byTopic[topic] {
			info.Active = append(info.Active, tasks[assignment.TopicPartition{Topic: topic, Partition: partition}])
		}
	}
	for _, t := range own.Standby {
		standby := assignment.StandbyTask{Task: t}
		for _, topic := range g.subtopology(t).Sources {
			standby.Partitions = append(standby.Partitions, assignment.TopicPartition{Topic: topic, Partition: t.Partition})
		}
		info.Standby = append(info.Standby, standby)
	}
	outer.UserData = EncodeAssignment(info)
	return outer.AppendTo(nil)
}

// describeStreams adds the state and the members of a streams group. During a rebalance members run their old tasks and have a target.
func (g *group) describeStreams(described *kmsg.StreamsGroupDescribeResponseGroup) {
	described.State = "Stable"
	switch {
	case len(g.instances) == 0:
		described.State = "Empty"
	case g.rebalancing:
		described.State = "Reconciling"
	}
	described.Epoch = int32(g.starts)
	described.AssignmentEpoch = int32(g.starts)
	described.TopologyDescriptionStatus = 1 // Not stored: the default, without a plugin in the broker.
	described.Topology = g.topology()
	for _, in := range g.instances {
		for thread := range g.Threads {
			member := kmsg.NewStreamsGroupDescribeResponseGroupMember()
			member.MemberID = g.memberID(in, thread)
			member.ClientID = g.clientID(in, thread)
			member.ClientHost = "/" + in.host
			member.InstanceID = g.instanceID(in, thread)
			member.ProcessID = in.process
			member.Assignment = streamsAssignment(g.thread(in.current, thread))
			member.TargetAssignment = streamsAssignment(g.thread(in.target, thread))
			described.Members = append(described.Members, member)
		}
	}
}

// topology returns the subtopologies in the form of the members: changelogs without a number of partitions.
func (g *group) topology() *kmsg.StreamsGroupDescribeResponseGroupTopology {
	topology := kmsg.NewStreamsGroupDescribeResponseGroupTopology()
	for i, subtopology := range g.Subtopologies {
		sub := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
		sub.SubtopologyID = strconv.Itoa(i)
		sub.SourceTopics = subtopology.Sources
		for _, store := range subtopology.Stores {
			info := kmsg.NewTopicInfo()
			info.Topic = g.changelog(store)
			for key, value := range store.configs() {
				config := kmsg.NewTopicInfoConfig()
				config.Key = key
				config.Value = value
				info.Configs = append(info.Configs, config)
			}
			sub.StateChangelogTopics = append(sub.StateChangelogTopics, info)
		}
		topology.Subtopologies = append(topology.Subtopologies, sub)
	}
	return &topology
}

// streamsAssignment converts tasks to the form of the streams protocol.
func streamsAssignment(tasks assignment.Tasks) kmsg.StreamsAssignment {
	described := kmsg.NewStreamsAssignment()
	described.ActiveTasks = taskIDs(tasks.Active)
	described.StandbyTasks = taskIDs(tasks.Standby)
	return described
}

// taskIDs groups sorted tasks by subtopology.
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
