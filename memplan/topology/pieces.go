// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"maps"
	"slices"

	"streamweir.dev/streamweir/memplan"
)

// Known is what is known from elsewhere: from the cluster, the changelog topics, or the one who asks.
type Known struct {
	// ApplicationID is application.id: the cluster's names of internal topics begin with it.
	ApplicationID string
	// Partitions of topics. Internal topics with the application id before them or without.
	Partitions map[string]int
	// Tasks of subtopologies by ID. They take the place of what the partitions give.
	Tasks map[string]int
	// Stores by name. They take the place of what the names tell.
	Stores map[string]memplan.Store
}

// Assumption is something that the description does not tell, and how it was counted.
type Assumption struct {
	// Line of the description that it is about; 0 where it is about something that the description does not have.
	Line int
	Text string
}

// String is the assumption with its line.
func (a Assumption) String() string {
	if a.Line == 0 {
		return a.Text
	}
	return fmt.Sprintf("line %d: %s", a.Line, a.Text)
}

// Pieces are the parts of a [memplan.Workload] that a topology gives.
type Pieces struct {
	Subtopologies []memplan.Subtopology
	GlobalStores  []memplan.Store
	// Assumptions by line.
	Assumptions []Assumption
}

// Pieces counts the topology's tasks, partitions and stores. A subtopology has as many tasks as the largest of its source topics has
// partitions (PartitionGrouper). A topic whose partitions are not known has as many as the largest that is; it is an error if none is.
func (t Topology) Pieces(known Known) (Pieces, error) {
	if err := known.check(); err != nil {
		return Pieces{}, err
	}
	c := newCounter(t, known)
	if err := c.countTasks(); err != nil {
		return Pieces{}, err
	}
	var result Pieces
	for i, s := range t.Subtopologies {
		result.Subtopologies = append(result.Subtopologies, memplan.Subtopology{
			ID: s.ID, Tasks: c.tasks[i], InputPartitions: c.inputs(i), WrittenPartitions: c.written(s), Stores: c.stores(s),
		})
	}
	for _, g := range t.GlobalStores {
		result.GlobalStores = append(result.GlobalStores, c.global(g))
	}
	c.unused()
	slices.SortStableFunc(c.assumed, func(a, b Assumption) int { return a.Line - b.Line })
	result.Assumptions = c.assumed
	return result, nil
}

// maxPartitions is the largest partition count of Kafka's protocol (int32).
const maxPartitions = 1<<31 - 1

func (k Known) check() error {
	for _, topic := range slices.Sorted(maps.Keys(k.Partitions)) {
		if n := k.Partitions[topic]; n < 1 || n > maxPartitions {
			return fmt.Errorf("topic %s has %d partitions: give a number from 1 to %d", quoted(topic), n, maxPartitions)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.Tasks)) {
		if n := k.Tasks[id]; n < 1 || n > maxPartitions {
			return fmt.Errorf("sub-topology %s has %d tasks: give a number from 1 to %d", quoted(id), n, maxPartitions)
		}
	}
	return nil
}

// stores are the stores of one task.
func (c *counter) stores(s Subtopology) []memplan.Store {
	var stores []memplan.Store
	processors := s.lookup()
	for _, store := range s.Stores {
		c.used[store.Name] = true
		if given, ok := c.known.Stores[store.Name]; ok {
			given.Name = store.Name
			stores = append(stores, given)
			continue
		}
		kind, told := processors.kindOf(store)
		if !told {
			c.assumeKind(store, kind)
		}
		stores = append(stores, storeOf(store.Name, kind))
	}
	return stores
}

func (c *counter) assumeKind(store Store, kind memplan.StoreKind) {
	if kind == memplan.Suppress {
		c.assume(store.Line, "store %s counts as the buffer of a suppress(), on the heap: its name is that of its processor and \"-store\", "+
			"and a table comes before it; if it is a table, say so", store.Name)
		return
	}
	c.assume(store.Line, "store %s counts as a window store of 3 segments: its name does not tell whether it has windows; "+
		"its changelog topic does (cleanup.policy), or say which kind it is", store.Name)
}

// global is a global store. Its table is key-value (StreamsBuilder#globalTable), and its cache counts as on.
func (c *counter) global(g GlobalStore) memplan.Store {
	c.used[g.Name] = true
	store, given := c.known.Stores[g.Name]
	if !given {
		store = storeOf(g.Name, memplan.TimestampedKeyValue)
	}
	store.Name = g.Name
	if store.Partitions == 0 {
		store.Partitions = c.known.Partitions[g.Topic]
	}
	if store.Partitions == 0 {
		c.assume(g.Line, "global store %s: the partitions of topic %s are not known, so no number of partitions limits its fetches", g.Name, g.Topic)
	}
	return store
}

// unused names what is known about stores and subtopologies that the description does not have.
func (c *counter) unused() {
	for _, name := range slices.Sorted(maps.Keys(c.known.Stores)) {
		if !c.used[name] {
			c.assume(0, "store %s is not in the description, and is left out: give the description of the running application", name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.known.Tasks)) {
		if !slices.ContainsFunc(c.t.Subtopologies, func(s Subtopology) bool { return s.ID == id }) {
			c.assume(0, "sub-topology %s is not in the description, and is left out: give the description of the running application", quoted(id))
		}
	}
}
