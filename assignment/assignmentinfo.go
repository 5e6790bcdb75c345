// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import "math"

// NoRebalance is the value of NextRebalanceMillis without a follow-up rebalance (Java's Long.MAX_VALUE).
const NoRebalance = math.MaxInt64

// StandbyTask is a standby or a warm-up with its partitions.
type StandbyTask struct {
	// Task is the task.
	Task Task
	// Partitions are the input partitions of the task.
	Partitions []TopicPartition
}

// AssignmentInfo is the message of the leader of a classic group to a member (AssignmentInfo of Kafka Streams).
type AssignmentInfo struct { //nolint:revive // Its name in Kafka Streams.
	// Version is the version of the encoding, and CommonVersion the latest version known to all members, 0 in versions 1 and 2.
	Version, CommonVersion int32
	// Active has one entry for each assigned partition, in the order of the partitions sorted by topic and number. A task with several input
	// topics appears several times.
	Active []Task
	// Standby contains standbys and warm-ups, which have the same form.
	Standby []StandbyTask
	// ErrorCode is the error of the assignment, 0 for none and before version 4 (AssignorError of Kafka Streams).
	ErrorCode int32
	// NextRebalanceMillis is the time of the member's follow-up rebalance in milliseconds since 1970: 0 is at once, [NoRebalance] is never and
	// the value before version 7.
	NextRebalanceMillis int64
}

// DecodeAssignment decodes an AssignmentInfo, versions 1 to 11. An error contains field and offset.
func DecodeAssignment(data []byte) (AssignmentInfo, error) {
	r := &reader{data: data}
	info := AssignmentInfo{Version: r.streamsVersion("AssignmentInfo.usedVersion"), NextRebalanceMillis: NoRebalance}
	version := info.Version
	if version >= 3 {
		info.CommonVersion = r.int32("AssignmentInfo.commonlySupportedVersion")
	}
	size := taskSize(version)
	for range r.count("AssignmentInfo.activeTasks", size) {
		info.Active = append(info.Active, r.task("AssignmentInfo.activeTasks", version))
	}
	for range r.count("AssignmentInfo.standbyTasks", size+4) {
		task := r.task("AssignmentInfo.standbyTasks", version)
		info.Standby = append(info.Standby, StandbyTask{task, r.topicPartitions("AssignmentInfo.standbyTasks.partitions")})
	}
	r.hosts(version)
	if version >= 4 {
		info.ErrorCode = r.int32("AssignmentInfo.errCode")
	}
	if version >= 7 {
		info.NextRebalanceMillis = r.int64("AssignmentInfo.nextRebalanceMs")
	}
	return info, r.end()
}

// taskSize returns the minimum number of bytes of a TaskId: two int32, from version 10 on also a length.
func taskSize(version int32) int {
	if version >= 10 {
		return 12
	}
	return 8
}

// task reads a TaskId.
func (r *reader) task(field string, version int32) Task {
	subtopology := r.int32(field)
	partition := r.int32(field)
	var topology string
	if version >= 10 {
		topology = r.javaChars(field)
	}
	return r.newTask(field, topology, subtopology, partition)
}

// topicPartitions reads a list of partitions with the names of their topics.
func (r *reader) topicPartitions(field string) []TopicPartition {
	var partitions []TopicPartition
	for range r.count(field, 6) {
		topic := r.javaUTF(field)
		partitions = append(partitions, TopicPartition{topic, r.int32(field)})
	}
	return partitions
}

// hosts skips the maps from application servers to partitions (interactive queries).
func (r *reader) hosts(version int32) {
	switch {
	case version < 2:
	case version <= 4:
		for range r.count("AssignmentInfo.partitionsByHost", 10) {
			r.hostInfo()
			r.topicPartitions("AssignmentInfo.partitionsByHost.partitions")
		}
	default:
		for range r.count("AssignmentInfo.topicDictionary", 6) {
			r.int32("AssignmentInfo.topicDictionary.index")
			r.javaUTF("AssignmentInfo.topicDictionary.topic")
		}
		r.hostsByDictionary("AssignmentInfo.partitionsByHost")
		if version >= 6 {
			r.hostsByDictionary("AssignmentInfo.standbyPartitionsByHost")
		}
	}
}

// hostsByDictionary skips one map of version 5 and later, with topics as indexes of the dictionary.
func (r *reader) hostsByDictionary(field string) {
	for range r.count(field, 10) {
		r.hostInfo()
		r.take(field+".partitions", 8*r.count(field+".partitions", 8))
	}
}

// hostInfo skips a host and its port.
func (r *reader) hostInfo() {
	r.javaUTF("AssignmentInfo.host")
	r.int32("AssignmentInfo.port")
}
