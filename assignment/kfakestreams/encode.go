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

// EncodeSubscription writes a SubscriptionInfo as Kafka Streams does, versions 1 to 11, without an endpoint and without
// client tags. It is the reverse of [assignment.DecodeSubscription]; a process ID that is no UUID is an error.
func EncodeSubscription(s assignment.SubscriptionInfo) ([]byte, error) {
	process, err := hex.DecodeString(strings.ReplaceAll(s.ProcessID, "-", ""))
	if err != nil || len(process) != 16 {
		return nil, fmt.Errorf("process ID %q must be a UUID", s.ProcessID)
	}
	v := s.Version
	w := writer{}
	w.int32(v)
	if v >= 3 {
		w.int32(s.LatestVersion)
	}
	w.data = append(w.data, process...)
	if v <= 6 {
		w.previousTasks(s.Tasks)
	}
	if v >= 2 {
		w.int32(0) // No endpoint.
	}
	switch {
	case v >= 10:
		w.offsetSums(s.Tasks)
	case v >= 7:
		w.groupedOffsetSums(s.Tasks)
	}
	if v >= 8 {
		w.data = append(w.data, 0) // The unique field.
	}
	if v >= 9 {
		w.int32(s.ErrorCode)
	}
	if v >= 11 {
		w.int32(0) // No client tags.
	}
	return w.data, nil
}

// EncodeAssignment writes an AssignmentInfo as Kafka Streams does, versions 1 to 11, without hosts for interactive
// queries. It is the reverse of [assignment.DecodeAssignment].
func EncodeAssignment(a assignment.AssignmentInfo) []byte {
	v := a.Version
	w := writer{}
	w.int32(v)
	if v >= 3 {
		w.int32(a.CommonVersion)
	}
	w.int32(int32(len(a.Active)))
	for _, t := range a.Active {
		w.task(t, v)
	}
	w.int32(int32(len(a.Standby)))
	for _, s := range a.Standby {
		w.task(s.Task, v)
		w.int32(int32(len(s.Partitions)))
		for _, p := range s.Partitions {
			w.text(p.Topic)
			w.int32(p.Partition)
		}
	}
	switch {
	case v >= 6:
		w.int32(0, 0, 0) // Topic dictionary, hosts of active tasks, hosts of standbys.
	case v == 5:
		w.int32(0, 0) // Topic dictionary, hosts.
	case v >= 2:
		w.int32(0) // Hosts.
	}
	if v >= 4 {
		w.int32(a.ErrorCode)
	}
	if v >= 7 {
		w.int64(a.NextRebalanceMillis)
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

// split gives the parts of a task's subtopology: the name of a named topology, mostly none, and the number.
func split(t assignment.Task) (string, int32) {
	topology, number := "", t.Subtopology
	if i := strings.LastIndex(number, "__"); i >= 0 {
		topology, number = number[:i], number[i+2:]
	}
	n, _ := strconv.ParseInt(number, 10, 32) // The classic protocol has numbers only.
	return topology, int32(n)
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
