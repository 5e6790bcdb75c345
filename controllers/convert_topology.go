// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/memplan/topology"
)

// describedTopology is what the text of Topology#describe() gives, with the partitions that are known of its topics.
type describedTopology struct{ pieces topology.Pieces }

// describeTopology reads the text for a StreamApp. Tasks and kinds of stores that its spec names take the place of what the text tells.
// factor multiplies all partitions.
func describeTopology(app *v1alpha1.StreamApp, text string, partitions map[string]int32, factor float64) (*describedTopology, error) {
	parsed, err := topology.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	known := topology.Known{
		ApplicationID: cmp.Or(app.Spec.Kafka.ApplicationID, app.Name),
		Partitions:    map[string]int{}, Tasks: map[string]int{}, Stores: map[string]memplan.Store{},
	}
	for topic, n := range partitions {
		known.Partitions[topic] = int(times(n, factor))
	}
	for i := range app.Spec.Streams.Subtopologies {
		s := &app.Spec.Streams.Subtopologies[i]
		known.Tasks[strconv.Itoa(int(*s.ID))] = int(s.Tasks)
	}
	for i := range app.Spec.Streams.Stores {
		if s := &app.Spec.Streams.Stores[i]; s.Kind != "" && s.Kind != v1alpha1.StoreGlobal {
			known.Stores[s.Name] = storeOfSpec(s)
		}
	}
	pieces, err := parsed.Pieces(known)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return &describedTopology{pieces}, nil
}

// describeReported reads the topology that the pods report, with the tasks that they have. Without it the group counts alone.
func (o *observation) describeReported() {
	group, text := o.group.latest.Group, o.topologyText()
	if !o.reports.usable || text == "" || o.topology != nil {
		return
	}
	parsed, err := topology.Parse(text)
	if err != nil {
		return
	}
	known := topology.Known{ApplicationID: group.ApplicationID, Partitions: map[string]int{}, Tasks: map[string]int{}, Stores: map[string]memplan.Store{}}
	for _, s := range group.Subtopologies {
		known.Tasks[s.ID] = int(s.Tasks)
		for _, t := range slices.Concat(s.SourceTopics, s.SinkTopics) {
			if t.Partitions > 0 {
				known.Partitions[t.Name] = int(t.Partitions)
			}
		}
	}
	if pieces, err := parsed.Pieces(known); err == nil {
		o.topology = &describedTopology{pieces}
	}
}

// refineSubtopology puts what the group shows into what the topology's description tells.
func refineSubtopology(s memplan.Subtopology, group *assignment.Group) memplan.Subtopology {
	s.Stores = slices.Clone(s.Stores)
	i := slices.IndexFunc(group.Subtopologies, func(g assignment.Subtopology) bool { return g.ID == s.ID })
	if i < 0 {
		return s
	}
	shown := subtopologyOf(group.Subtopologies[i])
	s.Tasks = max(s.Tasks, shown.Tasks)
	for _, store := range shown.Stores {
		if j := slices.IndexFunc(s.Stores, func(known memplan.Store) bool { return known.Name == store.Name }); j < 0 {
			s.Stores = append(s.Stores, store)
		} else if store.RetentionMs.Value > 0 {
			s.Stores[j].RetentionMs = store.RetentionMs
		}
	}
	for _, open := range group.Subtopologies[i].Stores {
		if j := slices.IndexFunc(s.Stores, func(known memplan.Store) bool { return known.Name == open.Name }); j >= 0 {
			refineOpen(&s.Stores[j], open)
		}
	}
	return s
}

// familyOf is the kind of a store as its metrics tell it: how it is stored, not what for.
func familyOf(kind memplan.StoreKind) memplan.StoreKind {
	switch kind {
	case memplan.Window, memplan.JoinWindow, memplan.TimeOrderedWindow:
		return memplan.Window
	case memplan.Session, memplan.Suppress:
		return kind
	default:
		return memplan.KeyValue
	}
}

// refineOpen corrects a store by how it was opened: on disk or on the heap is known then, and the family of its kind.
func refineOpen(store *memplan.Store, open assignment.OpenStore) {
	store.InMemory = open.InMemory || open.Kind == assignment.Suppress
	kind := storeOf(assignment.Changelog{Store: open.Name, Kind: open.Kind}).Kind
	if familyOf(kind) != familyOf(store.Kind) {
		store.Kind = kind
	}
}

// storeOfSpec is a store of which only the spec tells. Joins and buffers have no cache, in the DSL.
func storeOfSpec(s *v1alpha1.Store) memplan.Store {
	store := memplan.Store{Name: s.Name, Kind: memplan.TimestampedKeyValue}
	refineStore(&store, s)
	if s.Caching == "" {
		cached := []memplan.StoreKind{memplan.TimestampedKeyValue, memplan.Window, memplan.Session}
		store.Caching = slices.Contains(cached, store.Kind)
	}
	store.InMemory = store.InMemory || store.Kind == memplan.Suppress
	return store
}
