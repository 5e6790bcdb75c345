// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"encoding/hex"
	"strconv"
)

// LatestVersion is the newest version of SubscriptionInfo and AssignmentInfo: 11, of Kafka Streams 3.2 and later
// (StreamsAssignmentProtocolVersions).
const LatestVersion = 11

// latestOffset is the offset sum of an active task of the member (Task.LATEST_OFFSET in Kafka Streams).
const latestOffset = -2

// TaskOffset is a task whose state a member has, with its position.
type TaskOffset struct {
	// Task is the task.
	Task Task
	// Sum is the sum of the positions in the changelogs: -2 for a running active task, -3 if unknown. Before version 7 members send no sums:
	// then it is -2 for active tasks and 0 for copies.
	Sum int64
}

// SubscriptionInfo is the message of a member of a classic group to the leader (SubscriptionInfoData.json of Kafka Streams).
type SubscriptionInfo struct {
	// Version is the version of the encoding, and LatestVersion the latest known to the member, 0 in versions 1 and 2.
	Version, LatestVersion int32
	// ProcessID is the UUID of the member's KafkaStreams client.
	ProcessID string
	// Tasks are the tasks whose state the process has, running or left on disk, in the order of the message. A process may report them through
	// one of its members only.
	Tasks []TaskOffset
	// ErrorCode is the error of the member, 0 for none and before version 9.
	ErrorCode int32
}

// DecodeSubscription decodes a SubscriptionInfo, versions 1 to 11. An error contains field and offset.
func DecodeSubscription(data []byte) (SubscriptionInfo, error) {
	r := &reader{data: data}
	info := SubscriptionInfo{Version: r.streamsVersion("SubscriptionInfo.version")}
	version := info.Version
	if version >= 3 {
		info.LatestVersion = r.int32("SubscriptionInfo.latestSupportedVersion")
	}
	info.ProcessID = r.uuid("SubscriptionInfo.processId")
	if version <= 6 {
		info.Tasks = r.tasksWithSum("SubscriptionInfo.prevTasks", latestOffset, info.Tasks)
		info.Tasks = r.tasksWithSum("SubscriptionInfo.standbyTasks", 0, info.Tasks)
	}
	if version >= 2 {
		r.bytes("SubscriptionInfo.userEndPoint", true)
	}
	switch {
	case version >= 10:
		info.Tasks = r.offsetSums()
	case version >= 7:
		info.Tasks = r.groupedOffsetSums()
	}
	if version >= 8 {
		r.int8("SubscriptionInfo.uniqueField")
	}
	if version >= 9 {
		info.ErrorCode = r.int32("SubscriptionInfo.errorCode")
	}
	if version >= 11 {
		for range r.count("SubscriptionInfo.clientTags", 8) {
			r.bytes("SubscriptionInfo.clientTags.key", false)
			r.bytes("SubscriptionInfo.clientTags.value", false)
		}
	}
	return info, r.end()
}

// streamsVersion reads the version of a SubscriptionInfo or AssignmentInfo.
func (r *reader) streamsVersion(field string) int32 {
	v := r.int32(field)
	if r.err == nil && (v < 1 || v > LatestVersion) {
		r.at -= 4
		r.fail(field, "version %d is unknown, supported are 1 to %d", v, LatestVersion)
	}
	return v
}

// uuid reads 16 bytes into text form.
func (r *reader) uuid(field string) string {
	data := r.take(field, 16)
	if data == nil {
		return ""
	}
	digits := hex.EncodeToString(data)
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// tasksWithSum reads the tasks of versions 1 to 6, without sums.
func (r *reader) tasksWithSum(field string, sum int64, tasks []TaskOffset) []TaskOffset {
	for range r.count(field, 8) {
		subtopology := r.int32(field)
		tasks = append(tasks, TaskOffset{r.newTask(field, "", subtopology, r.int32(field)), sum})
	}
	return tasks
}

// offsetSums reads the tasks of version 10 and later.
func (r *reader) offsetSums() []TaskOffset {
	var tasks []TaskOffset
	for range r.count("SubscriptionInfo.taskOffsetSums", 18) {
		subtopology := r.int32("SubscriptionInfo.taskOffsetSums.topicGroupId")
		partition := r.int32("SubscriptionInfo.taskOffsetSums.partition")
		sum := r.int64("SubscriptionInfo.taskOffsetSums.offsetSum")
		topology := r.text("SubscriptionInfo.taskOffsetSums.namedTopology", true)
		tasks = append(tasks, TaskOffset{r.newTask("SubscriptionInfo.taskOffsetSums", topology, subtopology, partition), sum})
	}
	return tasks
}

// groupedOffsetSums reads the tasks of versions 7 to 9, grouped by subtopology.
func (r *reader) groupedOffsetSums() []TaskOffset {
	var tasks []TaskOffset
	for range r.count("SubscriptionInfo.taskOffsetSums", 8) {
		subtopology := r.int32("SubscriptionInfo.taskOffsetSums.topicGroupId")
		for range r.count("SubscriptionInfo.taskOffsetSums.partitionToOffsetSum", 12) {
			partition := r.int32("SubscriptionInfo.taskOffsetSums.partition")
			sum := r.int64("SubscriptionInfo.taskOffsetSums.offsetSum")
			tasks = append(tasks, TaskOffset{r.newTask("SubscriptionInfo.taskOffsetSums", "", subtopology, partition), sum})
		}
	}
	return tasks
}

// newTask returns a task. Negative numbers are a fault. The name of a named topology precedes the number, as in TaskId.toString of Kafka
// Streams.
func (r *reader) newTask(field, topology string, subtopology, partition int32) Task {
	if subtopology < 0 || partition < 0 {
		r.fail(field, "task %d_%d must not have negative numbers", subtopology, partition)
	}
	id := strconv.Itoa(int(subtopology))
	if topology != "" {
		id = topology + "__" + id
	}
	return Task{Subtopology: id, Partition: partition}
}
