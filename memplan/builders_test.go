// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// release is a workload of a version with nothing but defaults.
func release(major, minor, patch int) Workload {
	return NewWorkload(Known(Version{major, minor, patch}, Spec))
}

// keyValueApp has one subtopology with one cached timestamped store a task.
func keyValueApp(tasks int) Workload {
	w := release(4, 2, 1)
	w.Subtopologies = []Subtopology{{
		ID: "0", Tasks: tasks, InputPartitions: 1,
		Stores: []Store{{Name: "counts", Kind: TimestampedKeyValue, Caching: true}},
	}}
	return w
}

// tasksOf are the tasks of subtopology "0" for the partitions between from (inclusive) and to (exclusive).
func tasksOf(from, to int) []Task {
	var tasks []Task
	for p := from; p < to; p++ {
		tasks = append(tasks, Task{Subtopology: "0", Partition: int32(p)})
	}
	return tasks
}

// activePod runs active tasks only.
func activePod(name string, threads int, tasks []Task) Pod {
	return Pod{Name: name, Threads: threads, Current: Tasks{Active: tasks}}
}

// evenly deals tasks out to pods, in turn.
func evenly(w Workload, pods, threads int) Assignment {
	a := Assignment{Pods: make([]Pod, pods)}
	for i := range a.Pods {
		a.Pods[i] = Pod{Name: fmt.Sprintf("pod-%d", i), Threads: threads}
	}
	next := 0
	for _, s := range w.Subtopologies {
		for p := range s.Tasks {
			at := &a.Pods[next%pods].Current
			at.Active = append(at.Active, Task{Subtopology: s.ID, Partition: int32(p)})
			next++
		}
	}
	return a
}

// loadAfter is the load of one pod after a number of other pods failed.
func loadAfter(w Workload, a Assignment, pod string, failures int) Load {
	return LoadsAfter(w, a, failures)[slices.IndexFunc(a.Pods, func(p Pod) bool { return p.Name == pod })]
}

// observed is the present load of one pod.
func observed(w Workload, a Assignment, pod string) Load {
	return observedLoads(w, a)[slices.IndexFunc(a.Pods, func(p Pod) bool { return p.Name == pod })]
}

// line is the line of a region; the zero line if the plan has none.
func (p Plan) line(region Region) Line {
	for _, l := range p.Lines {
		if l.Region == region {
			return l
		}
	}
	return Line{}
}

// generator makes random but possible inputs from a seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, seed))} }

// pick is one of the values.
func pick[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// store is a random store.
func (g generator) store() Store {
	return Store{
		Kind:        pick(g, KeyValue, TimestampedKeyValue, Window, Session, Versioned, JoinWindow, OuterJoinList, TimeOrderedWindow, Suppress),
		RetentionMs: Known(int64(g.IntN(4))*3_600_000, Spec),
		InMemory:    g.IntN(5) == 0,
		Caching:     g.IntN(2) == 0,
		Unlogged:    g.IntN(5) == 0,
		Size:        Known(Bytes(g.IntN(3))*100*MiB, Measured),
		MaxSuppress: Known(Bytes(g.IntN(2))*10*MiB, App),
	}
}

// workload is a random workload.
func (g generator) workload() Workload {
	w := NewWorkload(Known(pick(g, Version{2, 7, 0}, Version{3, 6, 0}, Version{3, 9, 1}, Version{4, 2, 0}, Version{4, 4, 0}), App))
	for i := range 1 + g.IntN(4) {
		s := Subtopology{ID: fmt.Sprint(i), Tasks: 1 + g.IntN(12), InputPartitions: 1 + g.IntN(3), WrittenPartitions: g.IntN(50)}
		for range g.IntN(4) {
			s.Stores = append(s.Stores, g.store())
		}
		w.Subtopologies = append(w.Subtopologies, s)
	}
	if g.IntN(3) == 0 {
		w.GlobalStores = []Store{{Kind: TimestampedKeyValue, Partitions: g.IntN(5)}}
	}
	w.Protocol = Known(pick(g, Classic, Streams), App)
	w.Guarantee = Known(pick(g, AtLeastOnce, ExactlyOnceV2, ExactlyOnceV1), App)
	w.Standbys = Known(g.IntN(3), App)
	w.WarmUps = Known(1+g.IntN(3), App)
	w.Threads = Known(1+g.IntN(4), App)
	w.Brokers = Known(1+g.IntN(5), Measured)
	w.TLS = Known(g.IntN(2) == 0, App)
	w.StateDir = StateDir{InMemory: g.IntN(4) == 0, Persistent: g.IntN(2) == 0}
	w.Clients.Producer.Compression = Known(pick(g, NoCompression, Gzip, Snappy, LZ4, Zstd), App)
	w.Clients.TransactionalStores = Known(g.IntN(2) == 0, App)
	w.JVM = g.jvm()
	w.Bounded = g.IntN(2) == 0
	if g.IntN(4) == 0 {
		w.RocksDB.OwnCache, w.RocksDB.OwnCaches = Known(Bytes(g.IntN(256))*MiB, Measured), g.IntN(2) == 0
	}
	w.Application.LiveSet = Known(Bytes(g.IntN(200))*MiB, pick(g, Assumed, Measured))
	w.Records.Average = Known(Bytes(g.IntN(2000)), pick(g, Assumed, Measured))
	w.Allocator = Known(pick(g, Glibc, GlibcArenas, Jemalloc, Musl), pick(g, Assumed, App))
	return w
}

// jvm is a random JVM.
func (g generator) jvm() JVM {
	jvm := NewJVM()
	jvm.Collector = Known(pick(g, AutoCollector, Serial, Parallel, G1, ZGC, Shenandoah), App)
	jvm.CPUs = Known(1+g.IntN(4), App)
	switch g.IntN(4) {
	case 0:
		jvm.HeapMode, jvm.MaxHeap = HeapFixed, Known(Bytes(64+g.IntN(4096))*MiB, App)
	case 1:
		jvm.MaxRAMPercentage = Known(float64(1+g.IntN(95)), App)
		jvm.MinRAMPercentage = Known(float64(1+g.IntN(95)), App)
	case 2:
		jvm.HeapMode = HeapPlanned
	}
	return jvm
}

// policy is a random policy.
func (g generator) policy() Policy {
	p := DefaultPolicy()
	p.HeadroomPercent = g.IntN(30)
	if g.IntN(4) == 0 {
		p.Pins = map[Region]Bytes{pick(g, RegionMetaspace, RegionCollector, RegionPageCache, RegionBlockCache, RegionRecordCache): Bytes(g.IntN(300)) * MiB}
	}
	return p
}

// load is a random load of a workload.
func (g generator) load(w Workload) Load {
	l := Load{Threads: 1 + g.IntN(5), Caps: make([]Cap, len(w.Subtopologies))}
	for i, s := range w.Subtopologies {
		total := g.IntN(s.Tasks + 1)
		l.Caps[i] = Cap{Active: g.IntN(total + 1), Total: total}
		l.Active += l.Caps[i].Active
		l.Total += l.Caps[i].Total
	}
	l.Active = g.IntN(l.Active + 1)
	return l
}

// assignment deals the tasks of a workload, with standbys, to random pods.
func (g generator) assignment(w Workload, pods int) Assignment {
	a := Assignment{Pods: make([]Pod, pods)}
	for i := range a.Pods {
		a.Pods[i] = Pod{Name: fmt.Sprintf("pod-%d", i), Threads: w.Threads.Value}
	}
	for _, s := range w.Subtopologies {
		for p := range s.Tasks {
			task := Task{Subtopology: s.ID, Partition: int32(p)}
			order := g.Perm(pods)
			owner := &a.Pods[order[0]]
			owner.Current.Active = append(owner.Current.Active, task)
			for _, i := range order[1:min(1+w.Standbys.Value, pods)] {
				a.Pods[i].Current.Standby = append(a.Pods[i].Current.Standby, task)
			}
			if g.IntN(10) == 0 {
				to := &a.Pods[g.IntN(pods)].Target
				to.Active = append(to.Active, task)
			}
		}
	}
	return a
}
