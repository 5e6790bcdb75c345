// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// specNotes returns the parts of the spec with no effect.
func specNotes(f *Facts, w *memplan.Workload) []string {
	var notes []string
	known := func(name string) bool {
		return storeIndex(w.GlobalStores, name) >= 0 ||
			slices.ContainsFunc(w.Subtopologies, func(s memplan.Subtopology) bool { return storeIndex(s.Stores, name) >= 0 })
	}
	for i := range f.App.Spec.Streams.Stores {
		if name := f.App.Spec.Streams.Stores[i].Name; w.Tasks() > 0 && !known(name) {
			notes = append(notes, fmt.Sprintf("store %s of `streams.stores` is not counted: it has no changelog topic, so set its `subtopology`", name))
		}
	}
	if f.Container.PodResources && hasRange(&f.App.Spec.Memory) {
		notes = append(notes, podLevelText)
	}
	for _, pin := range f.App.Spec.Memory.Pins {
		if pin.Region == v1alpha1.RegionHeap && w.JVM.HeapMode != memplan.HeapPlanned {
			notes = append(notes, "the pin of the heap has no effect: the application sets its heap itself, or the plan cannot be injected")
		}
	}
	return notes
}

// reportNotes returns the findings and errors of the reports.
func reportNotes(f *Facts, described *describedTopology) []string {
	var notes []string
	seen := map[string]bool{}
	pods := slices.SortedFunc(slices.Values(f.Pods), func(a, b Pod) int { return cmp.Compare(a.UID, b.UID) })
	for i := range pods {
		p := &pods[i]
		if p.Report.Answered() {
			notes = append(notes, fmt.Sprintf("pod %s: %s", p.Name, p.Report.Err.Message()))
		}
		r := p.Report.Report
		if r == nil {
			continue
		}
		if !withinLimit(r, p) {
			notes = append(notes, fmt.Sprintf("pod %s reports more memory than its limit: its figures do not count", p.Name))
		}
		if a := r.Allocator; a.Name == "glibc" && a.Arenas == 0 && !seen["MALLOC_ARENA_MAX"] {
			seen["MALLOC_ARENA_MAX"] = true
			notes = append(notes, unlimitedArenasText(p))
		}
		for _, finding := range r.Findings {
			if !seen[finding.Reason] { // one is enough: the others are alike, or in that pod's log
				seen[finding.Reason] = true
				notes = append(notes, fmt.Sprintf("agent of %s: %s: %s", p.Name, finding.Reason, finding.Message))
			}
		}
	}
	if percent := f.Measured.HeapPercent; percent > 0 {
		notes = append(notes, ownHeapText(percent))
	}
	group := &f.Reports.Group
	if group.Guessed {
		notes = append(notes, fmt.Sprintf("the pods run several applications; %s has the most tasks and is planned for: set `kafka.applicationId` to choose another",
			group.Group.ApplicationID))
	}
	if described != nil && f.Reports.Usable {
		for _, a := range described.pieces.Assumptions {
			if !confirmed(group.Group.Subtopologies, a.Text) {
				notes = append(notes, "topology, "+a.String())
			}
		}
	}
	return notes
}

// confirmed returns whether an assumption on the kind of a store is confirmed or corrected by an open store. An open store does not show the
// number of segments of a windowed one: only its changelog topic does.
func confirmed(subtopologies []assignment.Subtopology, assumption string) bool {
	for _, s := range subtopologies {
		for _, open := range s.Stores {
			windowed := open.Kind == assignment.Window || open.Kind == assignment.JoinWindow
			if !windowed && strings.HasPrefix(assumption, "store "+open.Name+" counts as ") {
				return true
			}
		}
	}
	return false
}

// ResolvedFact is a fact that a plan is made of.
type ResolvedFact struct {
	Name   string          `json:"name"`
	Value  string          `json:"value"`
	Source v1alpha1.Source `json:"source"`
	// OverrideWith is the setting that replaces it; empty without one.
	OverrideWith string `json:"overrideWith,omitempty"`
}

// Facts returns the facts that the plan is made of, with their sources.
func (p *Plan) Facts() []ResolvedFact {
	w := &p.resolved.planned
	c := &w.Clients
	return []ResolvedFact{
		{Name: "version of kafka-streams", Value: versionText(w.Version.Value), Source: sourceOf(w.Version.From), OverrideWith: "`streams.version`"},
		number("stream threads", w.Threads, "`num.stream.threads`, or `streams.threads`"),
		number("standbys", w.Standbys, "`num.standby.replicas`, or `streams.standbyReplicas`"),
		number("warm-ups", w.WarmUps, "`max.warmup.replicas`, or `streams.warmupReplicas`"),
		named("group protocol", w.Protocol, map[memplan.Protocol]string{memplan.Classic: "classic", memplan.Streams: "streams"}, "`streams.groupProtocol`"),
		named("processing guarantee", w.Guarantee, map[memplan.Guarantee]string{
			memplan.AtLeastOnce: "at_least_once", memplan.ExactlyOnceV1: "exactly_once", memplan.ExactlyOnceV2: "exactly_once_v2",
		}, "`streams.processingGuarantee`"),
		number("brokers", w.Brokers, "`--bootstrap-servers`"),
		named("TLS", w.TLS, map[bool]string{true: "yes", false: "no"}, "`security.protocol`"),
		amount("average record", w.Records.Average, "`streams.records.averageSize`"),
		amount("largest record", w.Records.Largest, "`streams.records.largestSize`"),
		amount("largest batch", w.Records.LargestBatch, "`streams.records.largestBatchSize`"),
		amount("buffer.memory", c.Producer.BufferMemory, ""),
		amount("batch.size", c.Producer.BatchSize, ""),
		{Name: "compression.type", Value: string(c.Producer.Compression.Value), Source: sourceOf(c.Producer.Compression.From)},
		amount("fetch.max.bytes", c.Main.FetchMaxBytes, ""),
		amount("max.partition.fetch.bytes", c.Main.MaxPartitionFetchBytes, ""),
		number("max.poll.records", c.Main.MaxPollRecords, ""),
		number("buffered.records.per.partition", c.BufferedRecordsPerPartition, ""),
		amount("record cache", c.RecordCache, "`statestore.cache.max.bytes`"),
		amount("application's own live heap", w.Application.LiveSet, "`jvm.applicationHeap`"),
		amount("application's own native memory", w.Application.Native, "`jvm.applicationNative`"),
		named("allocator", w.Allocator, map[memplan.Allocator]string{
			memplan.Glibc: "glibc", memplan.GlibcArenas: "glibc with MALLOC_ARENA_MAX", memplan.Jemalloc: "jemalloc", memplan.Musl: "musl",
		}, "the container's env"),
		named("state directory", memplan.Known(w.StateDir, memplan.App), map[memplan.StateDir]string{
			{}: "on disk, deleted with the pod", {Persistent: true}: "on disk, persistent",
			{InMemory: true}: "in memory", {InMemory: true, Persistent: true}: "in memory",
		}, "the container's volumes"),
		named("size of the heap", memplan.Known(w.JVM.HeapMode, memplan.App), map[memplan.HeapMode]string{
			memplan.HeapPercent: "the JVM's own percentage", memplan.HeapFixed: w.JVM.MaxHeap.Value.String(), memplan.HeapPlanned: "planned",
		}, "the JVM's flags"),
		number("CPUs", w.JVM.CPUs, "the container's CPU limit"),
		{Name: "version of the JVM", Value: jvmVersionText(w.JVM.Version.Value), Source: sourceOf(w.JVM.Version.From), OverrideWith: "`jvm.version`"},
	}
}

func versionText(v memplan.Version) string {
	if v == (memplan.Version{}) {
		return "unknown, counts as the newest"
	}
	return v.String()
}

func jvmVersionText(version int) string {
	if version == 0 {
		return "unknown"
	}
	return strconv.Itoa(version)
}

func number(name string, fact memplan.Fact[int], overrideWith string) ResolvedFact {
	return ResolvedFact{Name: name, Value: strconv.Itoa(fact.Value), Source: sourceOf(fact.From), OverrideWith: overrideWith}
}

func amount(name string, fact memplan.Fact[memplan.Bytes], overrideWith string) ResolvedFact {
	return ResolvedFact{Name: name, Value: fact.Value.String(), Source: sourceOf(fact.From), OverrideWith: overrideWith}
}

func named[T comparable](name string, fact memplan.Fact[T], names map[T]string, overrideWith string) ResolvedFact {
	value, known := names[fact.Value]
	if !known {
		value = fmt.Sprint(fact.Value)
	}
	return ResolvedFact{Name: name, Value: value, Source: sourceOf(fact.From), OverrideWith: overrideWith}
}
