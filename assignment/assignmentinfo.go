// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import "math"

// NoRebalance is the value of NextRebalanceMillis for no follow-up rebalance (Java's Long.MAX_VALUE).
const NoRebalance = math.MaxInt64

// StandbyTask is a standby (or warm-up) and the partitions that its task reads.
type StandbyTask struct {
	Task       Task
	Partitions []TopicPartition
}

// AssignmentInfo is what the leader of a classic group tells a member (AssignmentInfo of Kafka Streams).
type AssignmentInfo struct { //nolint:revive // Its name in Kafka Streams.
	// Version of the encoding, and the latest that all members know (0 in versions 1 and 2, which do not say).
	Version, CommonVersion int32
	// Active has one entry for each partition assigned, in the order of the partitions sorted by topic and number: a
	// task that reads several topics is there several times.
	Active []Task
	// Standby has the standbys, and warm-ups, which look the same.
	Standby []StandbyTask
	// ErrorCode of the assignment, 0 for none (version 4 and later; AssignorError of Kafka Streams).
	ErrorCode int32
	// NextRebalanceMillis is when the member is to ask for a follow-up rebalance, in milliseconds since 1970: 0 is at
	// once, [NoRebalance] is never (always so before version 7).
	NextRebalanceMillis int64
}

// DecodeAssignment reads an AssignmentInfo, versions 1 to 11. An error names field and offset.
func DecodeAssignment(data []byte) (AssignmentInfo, error) {
	r := &reader{data: data}
	a := AssignmentInfo{Version: r.streamsVersion("AssignmentInfo.usedVersion"), NextRebalanceMillis: NoRebalance}
	v := a.Version
	if v >= 3 {
		a.CommonVersion = r.int32("AssignmentInfo.commonlySupportedVersion")
	}
	size := taskSize(v)
	for range r.count("AssignmentInfo.activeTasks", size) {
		a.Active = append(a.Active, r.task("AssignmentInfo.activeTasks", v))
	}
	for range r.count("AssignmentInfo.standbyTasks", size+4) {
		task := r.task("AssignmentInfo.standbyTasks", v)
		a.Standby = append(a.Standby, StandbyTask{task, r.topicPartitions("AssignmentInfo.standbyTasks.partitions")})
	}
	r.hosts(v)
	if v >= 4 {
		a.ErrorCode = r.int32("AssignmentInfo.errCode")
	}
	if v >= 7 {
		a.NextRebalanceMillis = r.int64("AssignmentInfo.nextRebalanceMs")
	}
	return a, r.end()
}

// taskSize is the least number of bytes that a TaskId takes: two int32, from version 10 on also a length.
func taskSize(version int32) int {
	if version >= 10 {
		return 12
	}
	return 8
}

// task reads a TaskId.
func (r *reader) task(field string, version int32) Task {
	subtopology, partition := r.int32(field), r.int32(field)
	var topology string
	if version >= 10 {
		topology = r.javaChars(field)
	}
	return r.newTask(field, topology, subtopology, partition)
}

// topicPartitions reads a list of partitions with their topics written out.
func (r *reader) topicPartitions(field string) []TopicPartition {
	var partitions []TopicPartition
	for range r.count(field, 6) {
		topic := r.javaUTF(field)
		partitions = append(partitions, TopicPartition{topic, r.int32(field)})
	}
	return partitions
}

// hosts reads over the maps from application servers to partitions (interactive queries), which are of no use here.
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

// hostsByDictionary reads over one map of version 5 and later, whose topics are numbers of the dictionary.
func (r *reader) hostsByDictionary(field string) {
	for range r.count(field, 10) {
		r.hostInfo()
		r.take(field+".partitions", 8*r.count(field+".partitions", 8))
	}
}

// hostInfo reads over a host and its port.
func (r *reader) hostInfo() {
	r.javaUTF("AssignmentInfo.host")
	r.int32("AssignmentInfo.port")
}
