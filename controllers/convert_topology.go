// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"streamweir.dev/streamweir/api/v1alpha1"
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
