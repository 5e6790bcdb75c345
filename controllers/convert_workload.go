// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// workloadOf puts the facts together field by field: what the pods report, else what the group shows, else what the spec says, else
// Kafka's defaults. What could
// not be understood comes back as sentences; the rest of the workload holds all the same.
func workloadOf(obs *observation) (memplan.Workload, []string) {
	streams := &obs.app.Spec.Streams
	group := obs.group.latest.Group
	version, versionErr := versionOf(streams, group)
	if reported, known := obs.reportedVersion(); known {
		version, versionErr = reported, nil
	}
	w := memplan.NewWorkload(version)
	applyRecords(&w, &streams.Records)
	propertiesErr := w.ApplyProperties(obs.propertiesOf())
	if obs.appSettings() == nil { // else: what the application does not set is at Kafka's defaults, whatever the spec says
		applySpec(&w, streams)
	}
	applyGroup(&w, group)
	applyTopology(&w, streams, group, obs.topology)
	w.Bounded = obs.bounded || obs.proven()
	jvm, jvmErr := jvmOf(obs)
	w.JVM = jvm
	w.Allocator = allocatorOf(obs)
	if c := obs.container; c != nil {
		w.StateDir = memplan.StateDir{InMemory: c.stateInMemory, Persistent: c.statePersistent}
	}
	w.Application.LiveSet = believed(w.Application.LiveSet, obs.measured.ApplicationHeap, obs.measured.Age)
	if q := obs.app.Spec.JVM.ApplicationHeap; q != nil {
		w.Application.LiveSet = specBytes(q)
	}
	if c := obs.container; c != nil && c.limit != nil && w.JVM.HeapMode == memplan.HeapPlanned {
		// All that is known is that the application gets along with the heap that its template gives it: the plan takes none of it away.
		w.JVM.LeastHeap = w.JVM.HeapUnder(memplan.Bytes(c.limit.Value()))
	}
	if q := obs.app.Spec.JVM.ApplicationNative; q != nil {
		w.Application.Native = specBytes(q)
	}
	applyReports(&w, obs)
	return w, invalidTexts(versionErr, propertiesErr, jvmErr)
}

// notesOn says what of the spec is not counted, and why.
func notesOn(obs *observation, w memplan.Workload) []string {
	var notes []string
	known := func(name string) bool {
		has := func(s memplan.Store) bool { return s.Name == name }
		return slices.ContainsFunc(w.GlobalStores, has) ||
			slices.ContainsFunc(w.Subtopologies, func(s memplan.Subtopology) bool { return slices.ContainsFunc(s.Stores, has) })
	}
	for i := range obs.app.Spec.Streams.Stores {
		if name := obs.app.Spec.Streams.Stores[i].Name; w.Tasks() > 0 && !known(name) {
			notes = append(notes, fmt.Sprintf("store %s of `streams.stores` is not counted: no changelog topic shows it, so its `subtopology` must be set", name))
		}
	}
	for _, pin := range obs.app.Spec.Memory.Pins {
		if pin.Region == v1alpha1.RegionHeap && w.JVM.HeapMode != memplan.HeapPlanned {
			notes = append(notes, "the pin of the heap has no effect: the application sets its heap itself, or the plan cannot be injected")
		}
	}
	return notes
}

func specBytes(q *resource.Quantity) memplan.Fact[memplan.Bytes] {
	return memplan.Known(memplan.Bytes(q.Value()), memplan.Spec)
}

func versionOf(streams *v1alpha1.StreamsSpec, group *assignment.Group) (memplan.Fact[memplan.Version], error) {
	switch {
	case streams.Version != "":
		version, err := memplan.ParseVersion(streams.Version)
		return memplan.Known(version, memplan.Spec), err
	case group != nil && group.VersionHint != "":
		version, err := memplan.ParseVersion(group.VersionHint)
		return memplan.Known(version, memplan.Assumed), err
	default:
		return memplan.Fact[memplan.Version]{}, nil
	}
}

// applySpec takes what the user says of the application as a whole.
func applySpec(w *memplan.Workload, streams *v1alpha1.StreamsSpec) {
	if streams.Threads > 0 {
		w.Threads = memplan.Known(int(streams.Threads), memplan.Spec)
	}
	if streams.StandbyReplicas != nil {
		w.Standbys = memplan.Known(int(*streams.StandbyReplicas), memplan.Spec)
	}
	if streams.WarmupReplicas != nil {
		w.WarmUps = memplan.Known(int(*streams.WarmupReplicas), memplan.Spec)
	}
	if g, ok := guarantees[streams.ProcessingGuarantee]; ok {
		w.Guarantee = memplan.Known(g, memplan.Spec)
	}
	if p, ok := protocols[streams.GroupProtocol]; ok {
		w.Protocol = memplan.Known(p, memplan.Spec)
	}
}

// applyRecords takes what the user says of the records.
func applyRecords(w *memplan.Workload, records *v1alpha1.RecordsSpec) {
	if q := records.AverageSize; q != nil {
		w.Records.Average = specBytes(q)
	}
	if q := records.LargestSize; q != nil {
		w.Records.Largest = specBytes(q)
	}
	if q := records.LargestBatchSize; q != nil {
		w.Records.LargestBatch = specBytes(q)
	}
}

var protocols = map[v1alpha1.GroupProtocol]memplan.Protocol{
	v1alpha1.ClassicProtocol: memplan.Classic, v1alpha1.StreamsProtocol: memplan.Streams,
}

var guarantees = map[v1alpha1.ProcessingGuarantee]memplan.Guarantee{
	v1alpha1.AtLeastOnce: memplan.AtLeastOnce, v1alpha1.ExactlyOnce: memplan.ExactlyOnceV1, v1alpha1.ExactlyOnceV2: memplan.ExactlyOnceV2,
}

// applyGroup takes what the broker shows of the application as a whole.
func applyGroup(w *memplan.Workload, group *assignment.Group) {
	if group == nil {
		return
	}
	w.Protocol = memplan.Known(memplan.Classic, memplan.Measured)
	if group.Protocol == assignment.Streams {
		w.Protocol = memplan.Known(memplan.Streams, memplan.Measured)
		w.WarmUps = memplan.Known(0, memplan.Default) // the broker's assignor has none up to 4.4
	}
	if group.Standbys != nil && (group.Protocol == assignment.Streams || w.Standbys.From != memplan.Spec) {
		w.Standbys = memplan.Known(int(*group.Standbys), memplan.Measured)
	}
	if group.Brokers > 0 {
		w.Brokers = memplan.Known(group.Brokers, memplan.Measured)
	}
	w.TLS = memplan.Known(group.TLS, memplan.Assumed) // the operator's own way to the brokers
	threads := 0
	for _, p := range group.Processes {
		threads = max(threads, p.Threads)
	}
	if threads > 0 {
		w.Threads = memplan.Known(threads, memplan.Measured)
	}
}

// applyTopology gives the workload its subtopologies and stores. A pod's own description of its topology, with the tasks and the open
// stores that pods report, says most; then the broker, then a description that somebody has. The spec fills in what they do not show.
func applyTopology(w *memplan.Workload, streams *v1alpha1.StreamsSpec, group *assignment.Group, described *describedTopology) {
	switch {
	case group != nil && described != nil:
		w.GlobalStores = slices.Clone(described.pieces.GlobalStores)
		for _, s := range described.pieces.Subtopologies {
			w.Subtopologies = append(w.Subtopologies, refineSubtopology(s, group))
		}
	case group != nil:
		for _, s := range group.Subtopologies {
			w.Subtopologies = append(w.Subtopologies, subtopologyOf(s))
		}
		for _, name := range group.GlobalStores {
			w.GlobalStores = append(w.GlobalStores, memplan.Store{Name: name, Kind: memplan.TimestampedKeyValue})
		}
	case described != nil:
		w.GlobalStores = slices.Clone(described.pieces.GlobalStores)
		for _, s := range described.pieces.Subtopologies {
			s.Stores = slices.Clone(s.Stores)
			w.Subtopologies = append(w.Subtopologies, s)
		}
	}
	for i := range streams.Subtopologies {
		applySubtopology(w, &streams.Subtopologies[i], group != nil || described != nil)
	}
	for i := range streams.Stores {
		applyStore(w, &streams.Stores[i])
	}
}

func subtopologyOf(s assignment.Subtopology) memplan.Subtopology {
	result := memplan.Subtopology{ID: s.ID, Tasks: int(s.Tasks), InputPartitions: max(1, len(s.SourceTopics))}
	for _, sink := range s.SinkTopics {
		result.WrittenPartitions += int(sink.Partitions)
	}
	for _, c := range s.Changelogs {
		result.Stores = append(result.Stores, storeOf(c))
	}
	for _, open := range s.Stores {
		if !slices.ContainsFunc(result.Stores, func(known memplan.Store) bool { return known.Name == open.Name }) {
			result.Stores = append(result.Stores, memplan.Store{Name: open.Name, Kind: memplan.TimestampedKeyValue, Caching: true})
		}
		refineOpen(&result.Stores[slices.IndexFunc(result.Stores, func(known memplan.Store) bool { return known.Name == open.Name })], open)
	}
	for _, name := range s.UnloggedStores {
		result.Stores = append(result.Stores, memplan.Store{Name: name, Kind: memplan.TimestampedKeyValue, Caching: true, Unlogged: true})
	}
	return result
}

// storeOf counts a key-value store as timestamped and cached: the DSL's default, and the more expensive.
func storeOf(c assignment.Changelog) memplan.Store {
	from := memplan.Measured
	if c.Assumed {
		from = memplan.Assumed
	}
	store := memplan.Store{Name: c.Store, RetentionMs: memplan.Known(c.Retention.Milliseconds(), from)}
	switch c.Kind {
	case assignment.KeyValue:
		store.Kind, store.Caching = memplan.TimestampedKeyValue, true
	case assignment.Window:
		store.Kind, store.Caching = memplan.Window, true
	case assignment.Session:
		store.Kind, store.Caching = memplan.Session, true
	case assignment.JoinWindow:
		store.Kind = memplan.JoinWindow
	case assignment.OuterJoinList:
		store.Kind = memplan.OuterJoinList
	case assignment.ForeignKeySubscription:
		store.Kind = memplan.ForeignKeySubscription
	case assignment.Suppress:
		store.Kind, store.InMemory = memplan.Suppress, true
	case assignment.Versioned:
		store.Kind = memplan.Versioned
	}
	return store
}

// applySubtopology adds to a subtopology what no other source shows of it. Where there is no other source the spec defines it.
func applySubtopology(w *memplan.Workload, s *v1alpha1.Subtopology, known bool) {
	id := strconv.Itoa(int(*s.ID))
	i := slices.IndexFunc(w.Subtopologies, func(known memplan.Subtopology) bool { return known.ID == id })
	if i < 0 {
		if known {
			return // the application has no such tasks, whatever the spec says
		}
		w.Subtopologies = append(w.Subtopologies, memplan.Subtopology{ID: id, Tasks: int(s.Tasks), InputPartitions: 1})
		i = len(w.Subtopologies) - 1
	}
	if s.InputPartitionsPerTask > 0 {
		w.Subtopologies[i].InputPartitions = int(s.InputPartitionsPerTask)
	}
	if s.WrittenPartitions != nil {
		w.Subtopologies[i].WrittenPartitions = int(*s.WrittenPartitions)
	}
}

// applyStore corrects what the changelog topic shows of a store, or adds a store that it cannot show.
func applyStore(w *memplan.Workload, s *v1alpha1.Store) {
	if s.Kind == v1alpha1.StoreGlobal {
		i := slices.IndexFunc(w.GlobalStores, func(known memplan.Store) bool { return known.Name == s.Name })
		if i < 0 {
			w.GlobalStores = append(w.GlobalStores, memplan.Store{Name: s.Name, Kind: memplan.TimestampedKeyValue})
			i = len(w.GlobalStores) - 1
		}
		refineStore(&w.GlobalStores[i], s)
		return
	}
	for i := range w.Subtopologies {
		stores := w.Subtopologies[i].Stores
		if j := slices.IndexFunc(stores, func(known memplan.Store) bool { return known.Name == s.Name }); j >= 0 {
			refineStore(&stores[j], s)
			return
		}
	}
	if s.Subtopology == nil {
		return
	}
	id := strconv.Itoa(int(*s.Subtopology))
	if i := slices.IndexFunc(w.Subtopologies, func(known memplan.Subtopology) bool { return known.ID == id }); i >= 0 {
		store := memplan.Store{Name: s.Name, Kind: memplan.TimestampedKeyValue, Caching: true}
		refineStore(&store, s)
		w.Subtopologies[i].Stores = append(w.Subtopologies[i].Stores, store)
	}
}

func refineStore(store *memplan.Store, s *v1alpha1.Store) {
	if kind, ok := storeKinds[s.Kind]; ok {
		store.Kind = kind
	}
	if s.RetentionSeconds > 0 {
		store.RetentionMs = memplan.Known(int64(s.RetentionSeconds)*1000, memplan.Spec)
	}
	if s.SegmentSeconds > 0 {
		store.SegmentIntervalMs = memplan.Known(int64(s.SegmentSeconds)*1000, memplan.Spec)
	}
	if s.Storage != "" {
		store.InMemory = s.Storage == v1alpha1.StorageInMemory
	}
	if s.Caching != "" {
		store.Caching = s.Caching == v1alpha1.CachingEnabled
	}
	if s.Size != nil {
		store.Size = specBytes(s.Size)
	}
}

var storeKinds = map[v1alpha1.StoreKind]memplan.StoreKind{
	v1alpha1.StoreKeyValue: memplan.TimestampedKeyValue, v1alpha1.StoreWindow: memplan.Window, v1alpha1.StoreSession: memplan.Session,
	v1alpha1.StoreVersioned: memplan.Versioned, v1alpha1.StoreJoinWindow: memplan.JoinWindow, v1alpha1.StoreOuterJoinList: memplan.OuterJoinList,
	v1alpha1.StoreForeignKeySubscription: memplan.ForeignKeySubscription, v1alpha1.StoreTimeOrderedBuffer: memplan.TimeOrderedBuffer,
	v1alpha1.StoreTimeOrderedWindow: memplan.TimeOrderedWindow,
	v1alpha1.StoreSuppress:          memplan.Suppress,
}
