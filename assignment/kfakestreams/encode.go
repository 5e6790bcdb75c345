// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kfakestreams

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"streamweir.dev/streamweir/assignment"
)

// EncodeSubscription encodes a SubscriptionInfo as Kafka Streams does, versions 1 to 11, without endpoint and client tags. It is the
// reverse of [assignment.DecodeSubscription]. The process ID must be a UUID.
func EncodeSubscription(info assignment.SubscriptionInfo) ([]byte, error) {
	process, err := hex.DecodeString(strings.ReplaceAll(info.ProcessID, "-", ""))
	if err != nil || len(process) != 16 {
		return nil, fmt.Errorf("process ID %q must be a UUID", info.ProcessID)
	}
	version := info.Version
	w := writer{}
	w.int32(version)
	if version >= 3 {
		w.int32(info.LatestVersion)
	}
	w.data = append(w.data, process...)
	if version <= 6 {
		w.previousTasks(info.Tasks)
	}
	if version >= 2 {
		w.int32(0) // No endpoint.
	}
	switch {
	case version >= 10:
		w.offsetSums(info.Tasks)
	case version >= 7:
		w.groupedOffsetSums(info.Tasks)
	}
	if version >= 8 {
		w.data = append(w.data, 0) // The unique field.
	}
	if version >= 9 {
		w.int32(info.ErrorCode)
	}
	if version >= 11 {
		w.int32(0) // No client tags.
	}
	return w.data, nil
}

// EncodeAssignment encodes an AssignmentInfo as Kafka Streams does, versions 1 to 11, without hosts for interactive queries. It is the
// reverse of [assignment.DecodeAssignment].
func EncodeAssignment(info assignment.AssignmentInfo) []byte {
	version := info.Version
	w := writer{}
	w.int32(version)
	if version >= 3 {
		w.int32(info.CommonVersion)
	}
	w.int32(int32(len(info.Active)))
	for _, task := range info.Active {
		w.task(task, version)
	}
	w.int32(int32(len(info.Standby)))
	for _, standby := range info.Standby {
		w.task(standby.Task, version)
		w.int32(int32(len(standby.Partitions)))
		for _, partition := range standby.Partitions {
			w.text(partition.Topic)
			w.int32(partition.Partition)
		}
	}
	switch {
	case version >= 6:
		w.int32(0, 0, 0) // Topic dictionary, hosts of active tasks, hosts of standbys.
	case version == 5:
		w.int32(0, 0) // Topic dictionary, hosts.
	case version >= 2:
		w.int32(0) // Hosts.
	}
	if version >= 4 {
		w.int32(info.ErrorCode)
	}
	if version >= 7 {
		w.int64(info.NextRebalanceMillis)
	}
	return w.data
}

// writer writes big-endian fields.
type writer struct {
	data []byte
}

func (w *writer) int16(v int16) { w.data = binary.BigEndian.AppendUint16(w.data, uint16(v)) }
func (w *writer) int64(v int64) { w.data = binary.BigEndian.AppendUint64(w.data, uint64(v)) }

func (w *writer) int32(values ...int32) {
	for _, v := range values {
		w.data = binary.BigEndian.AppendUint32(w.data, uint32(v))
	}
}

// text writes a length of two bytes and UTF-8.
func (w *writer) text(s string) {
	w.int16(int16(len(s)))
	w.data = append(w.data, s...)
}

// task writes a TaskId.
func (w *writer) task(t assignment.Task, version int32) {
	topology, subtopology := split(t)
	w.int32(subtopology, t.Partition)
	if version < 10 {
		return
	}
	chars := utf16.Encode([]rune(topology))
	w.int32(int32(len(chars)))
	for _, c := range chars {
		w.int16(int16(c))
	}
}

// split returns the name of a named topology, usually none, and the number of a task's subtopology.
func split(t assignment.Task) (string, int32) {
	topology := ""
	digits := t.Subtopology
	if i := strings.LastIndex(digits, "__"); i >= 0 {
		topology = digits[:i]
		digits = digits[i+2:]
	}
	number, _ := strconv.ParseInt(digits, 10, 32) // The classic protocol has numbers only.
	return topology, int32(number)
}

// previousTasks writes the tasks of versions 1 to 6: active ones, then copies.
func (w *writer) previousTasks(tasks []assignment.TaskOffset) {
	var active, standby writer
	var counts [2]int32
	for _, t := range tasks {
		_, subtopology := split(t.Task)
		if t.Sum == latestOffset {
			counts[0]++
			active.int32(subtopology, t.Task.Partition)
			continue
		}
		counts[1]++
		standby.int32(subtopology, t.Task.Partition)
	}
	w.int32(counts[0])
	w.data = append(w.data, active.data...)
	w.int32(counts[1])
	w.data = append(w.data, standby.data...)
}

// groupedOffsetSums writes the tasks of versions 7 to 9, each in a group of its own.
func (w *writer) groupedOffsetSums(tasks []assignment.TaskOffset) {
	w.int32(int32(len(tasks)))
	for _, t := range tasks {
		_, subtopology := split(t.Task)
		w.int32(subtopology, 1, t.Task.Partition)
		w.int64(t.Sum)
	}
}

// offsetSums writes the tasks of versions 10 and 11.
func (w *writer) offsetSums(tasks []assignment.TaskOffset) {
	w.int32(int32(len(tasks)))
	for _, t := range tasks {
		topology, subtopology := split(t.Task)
		w.int32(subtopology, t.Task.Partition)
		w.int64(t.Sum)
		if topology == "" {
			w.int16(-1)
			continue
		}
		w.text(topology)
	}
}
