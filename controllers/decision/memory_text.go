// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// AnnotationMemory on the plan's ConfigMap holds the memory that must outlive the operator's process, the StreamApp and the workload. Long
// JSON is compressed. Its facts only change with the assignment or the image, so a quiet pass does not write it.
const AnnotationMemory = "streamweir.dev/memory"

const (
	// longMemory is the length from which the text is compressed.
	longMemory = 4 << 10
	// maxMemory is the longest text. An object may have 256 KiB of annotations.
	maxMemory = 128 << 10
	// maxUnpacked and maxTasks bound the decoded memory. The longest text has no more than a third of these tasks.
	maxUnpacked = 8 << 20
	maxTasks    = 1_000_000
	// packedPrefix begins a compressed text.
	packedPrefix = "gzip:"
)

// storedMemory is the content of [AnnotationMemory].
type storedMemory struct {
	// Target is the workload that the memory is about.
	Target   string                   `json:"target"`
	Tasks    *int32                   `json:"tasks,omitempty"`
	Images   []v1alpha1.ImageStatus   `json:"images,omitempty"`
	Measured v1alpha1.MeasuredRegions `json:"measured,omitzero"`
	Topology string                   `json:"topology,omitempty"`
	// Subtopologies are those of the topology.
	Subtopologies []storedSubtopology `json:"subtopologies,omitempty"`
	NotBounded    []types.UID         `json:"notBounded,omitempty"`
	// Kafka has the facts of the Kafka group.
	Kafka *assignment.Group `json:"kafka,omitempty"`
	// Loads are the loads of pods by UID.
	Loads map[types.UID]storedLoad `json:"loads,omitempty"`
}

type storedSubtopology struct {
	ID     string        `json:"id"`
	Tasks  int32         `json:"tasks"`
	Stores []storedStore `json:"stores,omitempty"`
}

type storedStore struct {
	Name     string               `json:"name"`
	Kind     assignment.StoreKind `json:"kind"`
	InMemory bool                 `json:"inMemory,omitempty"`
}

// storedLoad has the tasks of a pod: ranges of partitions by subtopology, such as "0-5,9".
type storedLoad struct {
	Pod     string            `json:"pod"`
	Threads int               `json:"threads,omitempty"`
	Active  map[string]string `json:"active,omitempty"`
	Standby map[string]string `json:"standby,omitempty"`
}

// memoryText returns the text for [AnnotationMemory]. The present text stays if it has the same content.
func memoryText(app *v1alpha1.StreamApp, m *Memory, present *corev1.ConfigMap) string {
	stored := storedMemory{Target: TargetOf(app).String(), Tasks: m.Tasks, Images: m.Images, Measured: m.Measured}
	if known := m.Assignment; known != nil {
		stored.Topology = known.Topology.Hash
		stored.Kafka = known.Kafka
		stored.NotBounded = known.NotBounded
		for _, s := range known.Topology.Subtopologies {
			stored.Subtopologies = append(stored.Subtopologies, storeSubtopology(s))
		}
		stored.Loads = map[types.UID]storedLoad{}
		for uid, load := range known.Loads {
			stored.Loads[uid] = storeLoad(load)
		}
	}
	text := packMemory(&stored)
	if present == nil {
		return text
	}
	before, readable := unpackMemory(present.Annotations[AnnotationMemory])
	now, _ := unpackMemory(text)
	if readable && reflect.DeepEqual(before, now) {
		return present.Annotations[AnnotationMemory]
	}
	return text
}

// packMemory encodes the memory. Loads are left out first if it is too long: with the topology alone, every silent pod counts with the heaviest
// load of the others.
func packMemory(stored *storedMemory) string {
	for _, cut := range []func(){
		func() {}, func() { stored.Loads = nil }, func() { stored.Kafka = nil },
		func() { stored.Subtopologies = nil; stored.Topology = "" },
	} {
		cut()
		data, err := json.Marshal(stored)
		if err != nil {
			return ""
		}
		text := string(data)
		if len(text) > longMemory {
			text = packedPrefix + compressed(data)
		}
		if len(text) <= maxMemory {
			return text
		}
	}
	return ""
}

// compressed returns data as base64 of gzip.
func compressed(data []byte) string {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(data) // a buffer accepts everything
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// unpackMemory decodes a text; false if it cannot be read.
func unpackMemory(text string) (storedMemory, bool) {
	data := []byte(text)
	if packed, found := strings.CutPrefix(text, packedPrefix); found {
		reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
		if err != nil {
			return storedMemory{}, false
		}
		if data, err = io.ReadAll(io.LimitReader(reader, maxUnpacked)); err != nil {
			return storedMemory{}, false
		}
	}
	var stored storedMemory
	if err := json.Unmarshal(data, &stored); err != nil {
		return storedMemory{}, false
	}
	return stored, stored.Target != ""
}

// readMemory reads the memory about a StreamApp's target from the plan's ConfigMap, which may be nil; false if it has none that can be read.
func readMemory(app *v1alpha1.StreamApp, plan *corev1.ConfigMap) (storedMemory, *KnownAssignment, bool) {
	if plan == nil {
		return storedMemory{}, nil, false
	}
	stored, readable := unpackMemory(plan.Annotations[AnnotationMemory])
	if !readable || stored.Target != TargetOf(app).String() {
		return storedMemory{}, nil, false
	}
	if stored.Kafka == nil && len(stored.Subtopologies)+len(stored.Loads)+len(stored.NotBounded) == 0 {
		return stored, nil, true
	}
	known := &KnownAssignment{Topology: KnownTopology{Hash: stored.Topology}, Kafka: stored.Kafka, NotBounded: stored.NotBounded}
	for _, s := range stored.Subtopologies {
		known.Topology.Subtopologies = append(known.Topology.Subtopologies, s.subtopology())
	}
	left := maxTasks
	for uid, s := range stored.Loads {
		load, err := s.load(&left)
		if err != nil {
			return storedMemory{}, nil, false
		}
		if known.Loads == nil {
			known.Loads = map[types.UID]assignment.PodLoad{}
		}
		known.Loads[uid] = load
	}
	return stored, known, true
}

func storeSubtopology(s assignment.Subtopology) storedSubtopology {
	stored := storedSubtopology{ID: s.ID, Tasks: s.Tasks}
	for _, store := range s.Stores {
		stored.Stores = append(stored.Stores, storedStore{Name: store.Name, Kind: store.Kind, InMemory: store.InMemory})
	}
	return stored
}

func (s *storedSubtopology) subtopology() assignment.Subtopology {
	result := assignment.Subtopology{ID: s.ID, Tasks: max(0, s.Tasks), Stateful: len(s.Stores) > 0}
	for _, store := range s.Stores {
		result.Stores = append(result.Stores, assignment.OpenStore{Name: store.Name, Kind: store.Kind, InMemory: store.InMemory})
	}
	return result
}

func storeLoad(load assignment.PodLoad) storedLoad {
	return storedLoad{Pod: load.Pod, Threads: load.Threads, Active: partitionRanges(load.Tasks.Active), Standby: partitionRanges(load.Tasks.Standby)}
}

// load decodes a load. left is the number of tasks that may still be decoded.
func (s *storedLoad) load(left *int) (assignment.PodLoad, error) {
	load := assignment.PodLoad{Pod: s.Pod, Threads: max(0, s.Threads)}
	var err error
	if load.Tasks.Active, err = tasksOfRanges(s.Active, left); err != nil {
		return load, err
	}
	load.Tasks.Standby, err = tasksOfRanges(s.Standby, left)
	return load, err
}

// partitionRanges returns the partitions of sorted tasks by subtopology.
func partitionRanges(tasks []assignment.Task) map[string]string {
	ranges := map[string]string{}
	for i := 0; i < len(tasks); {
		first, last := tasks[i], tasks[i]
		for i++; i < len(tasks) && tasks[i] == (assignment.Task{Subtopology: last.Subtopology, Partition: last.Partition + 1}); i++ {
			last = tasks[i]
		}
		text := strconv.Itoa(int(first.Partition))
		if last != first {
			text += "-" + strconv.Itoa(int(last.Partition))
		}
		if before := ranges[first.Subtopology]; before != "" {
			text = before + "," + text
		}
		ranges[first.Subtopology] = text
	}
	return ranges
}

// tasksOfRanges decodes ranges of partitions. left is the number of tasks that may still be decoded.
func tasksOfRanges(ranges map[string]string, left *int) ([]assignment.Task, error) {
	var tasks []assignment.Task
	for subtopology, text := range ranges {
		for part := range strings.SplitSeq(text, ",") {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			first, firstErr := strconv.ParseInt(from, 10, 32)
			last, lastErr := strconv.ParseInt(to, 10, 32)
			malformed := firstErr != nil || lastErr != nil || first < 0
			if malformed || last < first || last-first >= int64(*left) {
				return nil, fmt.Errorf("a range of partitions is %q", part)
			}
			*left -= int(last - first + 1)
			for partition := first; partition <= last; partition++ {
				tasks = append(tasks, assignment.Task{Subtopology: subtopology, Partition: int32(partition)})
			}
		}
	}
	return sortedTasks(tasks), nil
}
