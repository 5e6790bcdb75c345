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

// latestOffset is the offset sum of a task that is active on the member (Task.LATEST_OFFSET in Kafka Streams).
const latestOffset = -2

// TaskOffset is what a member says of a task whose state it has.
type TaskOffset struct {
	Task Task
	// Sum of the changelogs' positions: -2 is an active task that runs, -3 is not known. Members before version 7 give
	// no sums: then it is -2 for active tasks, and 0 for copies.
	Sum int64
}

// SubscriptionInfo is what a member of a classic group tells the leader (SubscriptionInfoData.json of Kafka Streams).
type SubscriptionInfo struct {
	// Version of the encoding, and the latest that the member knows (0 in versions 1 and 2, which do not say).
	Version, LatestVersion int32
	// ProcessID is the UUID of the member's KafkaStreams client.
	ProcessID string
	// Tasks are those whose state the process has, running or left on disk, in the order sent. A process may report
	// through one of its members only.
	Tasks []TaskOffset
	// ErrorCode that the member reports, 0 for none (version 9 and later).
	ErrorCode int32
}

// DecodeSubscription reads a SubscriptionInfo, versions 1 to 11. An error names field and offset.
func DecodeSubscription(data []byte) (SubscriptionInfo, error) {
	r := &reader{data: data}
	s := SubscriptionInfo{Version: r.streamsVersion("SubscriptionInfo.version")}
	v := s.Version
	if v >= 3 {
		s.LatestVersion = r.int32("SubscriptionInfo.latestSupportedVersion")
	}
	s.ProcessID = r.uuid("SubscriptionInfo.processId")
	if v <= 6 {
		s.Tasks = r.tasksWithSum("SubscriptionInfo.prevTasks", latestOffset, s.Tasks)
		s.Tasks = r.tasksWithSum("SubscriptionInfo.standbyTasks", 0, s.Tasks)
	}
	if v >= 2 {
		r.bytes("SubscriptionInfo.userEndPoint", true)
	}
	switch {
	case v >= 10:
		s.Tasks = r.offsetSums()
	case v >= 7:
		s.Tasks = r.groupedOffsetSums()
	}
	if v >= 8 {
		r.int8("SubscriptionInfo.uniqueField")
	}
	if v >= 9 {
		s.ErrorCode = r.int32("SubscriptionInfo.errorCode")
	}
	if v >= 11 {
		for range r.count("SubscriptionInfo.clientTags", 8) {
			r.bytes("SubscriptionInfo.clientTags.key", false)
			r.bytes("SubscriptionInfo.clientTags.value", false)
		}
	}
	return s, r.end()
}

// streamsVersion reads the version of a SubscriptionInfo or AssignmentInfo.
func (r *reader) streamsVersion(field string) int32 {
	v := r.int32(field)
	if r.err == nil && (v < 1 || v > LatestVersion) {
		r.at -= 4
		r.fail(field, "version %d is not known, only 1 to %d", v, LatestVersion)
	}
	return v
}

// uuid reads 16 bytes into text form.
func (r *reader) uuid(field string) string {
	b := r.take(field, 16)
	if b == nil {
		return ""
	}
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// tasksWithSum reads the tasks of versions 1 to 6, which have no sums.
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

// groupedOffsetSums reads the tasks of versions 7 to 9, which are grouped by subtopology.
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

// newTask makes a task, whose numbers must not be negative; the name of a named topology goes before the number, as in
// TaskId.toString of Kafka Streams.
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
