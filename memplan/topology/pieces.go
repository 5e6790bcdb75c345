// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"maps"
	"slices"

	"streamweir.dev/streamweir/memplan"
)

// Known has facts from other sources: the cluster, the changelog topics, or the user.
type Known struct {
	// ApplicationID is application.id, the prefix of internal topics in the cluster.
	ApplicationID string
	// Partitions are those of topics; internal topics with or without the prefix of the application id.
	Partitions map[string]int
	// Tasks are those of subtopologies by ID. They override the partitions.
	Tasks map[string]int
	// Stores are stores by name. They override the kinds of the names.
	Stores map[string]memplan.Store
}

// Assumption is a fact that the description lacks, and its assumed value.
type Assumption struct {
	// Line is the line of the description; 0 for a fact that is not about the description.
	Line int
	Text string
}

// String returns the assumption with its line.
func (a Assumption) String() string {
	if a.Line == 0 {
		return a.Text
	}
	return fmt.Sprintf("line %d: %s", a.Line, a.Text)
}

// Pieces are the parts of a [memplan.Workload] from a topology.
type Pieces struct {
	Subtopologies []memplan.Subtopology
	GlobalStores  []memplan.Store
	// Assumptions are sorted by line.
	Assumptions []Assumption
}

// Pieces counts the topology's tasks, partitions and stores. A subtopology has as many tasks as its largest source topic has partitions
// (PartitionGrouper). A topic of unknown size counts as the largest known topic; without any, the result is an error.
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
			return fmt.Errorf("topic %s has %d partitions: it must be a number of 1 to %d", quoted(topic), n, maxPartitions)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.Tasks)) {
		if n := k.Tasks[id]; n < 1 || n > maxPartitions {
			return fmt.Errorf("sub-topology %s has %d tasks: it must be a number of 1 to %d", quoted(id), n, maxPartitions)
		}
	}
	return nil
}

// stores returns the stores of one task.
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
		kind, determined := processors.kindOf(store)
		if !determined {
			c.assumeKind(store, kind)
		}
		stores = append(stores, storeOf(store.Name, kind))
	}
	return stores
}

func (c *counter) assumeKind(store Store, kind memplan.StoreKind) {
	if kind == memplan.Suppress {
		c.assume(store.Line, "store %s counts as the buffer of a suppress(), on the heap: its name is that of its processor and \"-store\", "+
			"after a table; if it is a table, set its kind", store.Name)
		return
	}
	c.assume(store.Line, "store %s counts as a window store of 3 segments: its name does not show whether it has windows; "+
		"its changelog topic does (cleanup.policy), or set its kind", store.Name)
}

// global returns a global store. Its table is key-value (StreamsBuilder#globalTable), and its cache counts as on.
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

// unused adds an assumption for each known store and subtopology that is not in the description.
func (c *counter) unused() {
	for _, name := range slices.Sorted(maps.Keys(c.known.Stores)) {
		if !c.used[name] {
			c.assume(0, "store %s is not in the description and not counted: the description must be that of the running application", name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.known.Tasks)) {
		if !slices.ContainsFunc(c.t.Subtopologies, func(s Subtopology) bool { return s.ID == id }) {
			c.assume(0, "sub-topology %s is not in the description and not counted: the description must be that of the running application", quoted(id))
		}
	}
}
