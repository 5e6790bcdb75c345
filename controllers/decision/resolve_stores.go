// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strconv"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// storeKinds are the planner's kinds of the spec's kinds.
var storeKinds = map[v1alpha1.StoreKind]memplan.StoreKind{
	v1alpha1.StoreKeyValue: memplan.TimestampedKeyValue, v1alpha1.StoreWindow: memplan.Window, v1alpha1.StoreSession: memplan.Session,
	v1alpha1.StoreVersioned: memplan.Versioned, v1alpha1.StoreJoinWindow: memplan.JoinWindow, v1alpha1.StoreOuterJoinList: memplan.OuterJoinList,
	v1alpha1.StoreForeignKeySubscription: memplan.ForeignKeySubscription, v1alpha1.StoreTimeOrderedBuffer: memplan.TimeOrderedBuffer,
	v1alpha1.StoreTimeOrderedWindow: memplan.TimeOrderedWindow,
	v1alpha1.StoreSuppress:          memplan.Suppress,
}

// shownKinds are the planner's kinds of the kinds that changelog topics and metrics show. A key-value store counts as timestamped: that is
// the DSL's default, and the more expensive kind.
var shownKinds = map[assignment.StoreKind]memplan.StoreKind{
	assignment.KeyValue: memplan.TimestampedKeyValue, assignment.Window: memplan.Window, assignment.Session: memplan.Session,
	assignment.JoinWindow: memplan.JoinWindow, assignment.OuterJoinList: memplan.OuterJoinList,
	assignment.ForeignKeySubscription: memplan.ForeignKeySubscription, assignment.Suppress: memplan.Suppress, assignment.Versioned: memplan.Versioned,
}

// cachedKinds are the kinds whose stores have the record cache on by default, in the DSL. Joins and buffers have none.
var cachedKinds = []memplan.StoreKind{memplan.TimestampedKeyValue, memplan.Window, memplan.Session}

// storeIndex returns the index of the store with this name; -1 if there is none.
func storeIndex(stores []memplan.Store, name string) int {
	return slices.IndexFunc(stores, func(s memplan.Store) bool { return s.Name == name })
}

// storeOf converts a store with a changelog topic.
func storeOf(c assignment.Changelog) memplan.Store {
	source := memplan.Measured
	if c.Assumed {
		source = memplan.Assumed
	}
	kind := shownKinds[c.Kind]
	return memplan.Store{
		Name: c.Store, Kind: kind, RetentionMs: memplan.Known(c.Retention.Milliseconds(), source),
		Caching: slices.Contains(cachedKinds, kind), InMemory: kind == memplan.Suppress,
	}
}

// storageKind returns the kind of a store as its metrics show it: the way it is stored.
func storageKind(kind memplan.StoreKind) memplan.StoreKind {
	switch kind {
	case memplan.Window, memplan.JoinWindow, memplan.TimeOrderedWindow:
		return memplan.Window
	case memplan.Session, memplan.Suppress:
		return kind
	default:
		return memplan.KeyValue
	}
}

// refineOpen corrects a store by an open one, which shows whether it is on disk or on the heap, and the way it is stored.
func refineOpen(store *memplan.Store, open assignment.OpenStore) {
	store.InMemory = open.InMemory || open.Kind == assignment.Suppress
	kind := shownKinds[open.Kind]
	if storageKind(kind) != storageKind(store.Kind) {
		store.Kind = kind
	}
}

// applyStore corrects a store by the spec, or adds a store that no other source shows.
func applyStore(w *memplan.Workload, s *v1alpha1.Store) {
	if s.Kind == v1alpha1.StoreGlobal {
		i := storeIndex(w.GlobalStores, s.Name)
		if i < 0 {
			w.GlobalStores = append(w.GlobalStores, memplan.Store{Name: s.Name, Kind: memplan.TimestampedKeyValue})
			i = len(w.GlobalStores) - 1
		}
		refineStore(&w.GlobalStores[i], s)
		return
	}
	for i := range w.Subtopologies {
		stores := w.Subtopologies[i].Stores
		if j := storeIndex(stores, s.Name); j >= 0 {
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

// refineStore sets the facts of the spec.
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
	if size := specBytes(s.Size); size != nil {
		store.Size = *size
	}
}

// storeOfSpec returns a store that only the spec shows.
func storeOfSpec(s *v1alpha1.Store) memplan.Store {
	store := memplan.Store{Name: s.Name, Kind: memplan.TimestampedKeyValue}
	refineStore(&store, s)
	if s.Caching == "" {
		store.Caching = slices.Contains(cachedKinds, store.Kind)
	}
	store.InMemory = store.InMemory || store.Kind == memplan.Suppress
	return store
}
