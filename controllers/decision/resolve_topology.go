// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/memplan/topology"
)

// describedTopology holds the subtopologies and stores of a text of Topology#describe().
type describedTopology struct{ pieces topology.Pieces }

// describeTopology parses the user's description of the topology, else that of the reports; nil without one. An unreadable text in a report
// counts as none: the group then counts alone.
func describeTopology(f *Facts) (*describedTopology, error) {
	if f.SuppliedTopology != nil {
		return parseTopology(f.SuppliedTopology.Text, suppliedFacts(f.App, f.SuppliedTopology))
	}
	text := topologyText(f.Reports.Client)
	if !f.Reports.Usable || text == "" {
		return nil, nil
	}
	described, err := parseTopology(text, reportedFacts(f.Assignment.Group))
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return described, nil
}

func parseTopology(text string, known topology.Known) (*describedTopology, error) {
	parsed, err := topology.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	pieces, err := parsed.Pieces(known)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return &describedTopology{pieces}, nil
}

// suppliedFacts returns the known facts beside a supplied description. Tasks and kinds of stores in the spec replace those of the text.
func suppliedFacts(app *v1alpha1.StreamApp, supplied *Topology) topology.Known {
	known := topology.Known{
		ApplicationID: cmp.Or(app.Spec.Kafka.ApplicationID, app.Name),
		Partitions:    map[string]int{}, Tasks: map[string]int{}, Stores: map[string]memplan.Store{},
	}
	for topic, n := range supplied.Partitions {
		known.Partitions[topic] = int(Scale(n, supplied.Scale))
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
	return known
}

// reportedFacts returns the known facts beside a reported description.
func reportedFacts(group *assignment.Group) topology.Known {
	known := topology.Known{ApplicationID: group.ApplicationID, Partitions: map[string]int{}, Tasks: map[string]int{}, Stores: map[string]memplan.Store{}}
	for _, s := range group.Subtopologies {
		known.Tasks[s.ID] = int(s.Tasks)
		for _, t := range slices.Concat(s.SourceTopics, s.SinkTopics) {
			if t.Partitions > 0 {
				known.Partitions[t.Name] = int(t.Partitions)
			}
		}
	}
	return known
}

// Scale multiplies a count by a factor, rounds up, and keeps it within Kafka's range. A factor of 0 leaves the count.
func Scale(n int32, factor float64) int32 {
	if factor <= 0 {
		return n
	}
	return int32(min(math.Ceil(float64(n)*factor), math.MaxInt32))
}

// applyTopology sets the subtopologies and stores of the workload. A pod's own description of its topology, with the tasks and the open
// stores that pods report, is the best source; then the group, then a supplied description. The spec adds facts that they do not show.
func applyTopology(w *memplan.Workload, streams *v1alpha1.StreamsSpec, group *assignment.Group, described *describedTopology) {
	if described != nil {
		w.GlobalStores = slices.Clone(described.pieces.GlobalStores)
		for _, s := range described.pieces.Subtopologies {
			w.Subtopologies = append(w.Subtopologies, refineSubtopology(s, group))
		}
	} else if group != nil {
		for _, s := range group.Subtopologies {
			w.Subtopologies = append(w.Subtopologies, subtopologyOf(s))
		}
		for _, name := range group.GlobalStores {
			w.GlobalStores = append(w.GlobalStores, memplan.Store{Name: name, Kind: memplan.TimestampedKeyValue})
		}
	}
	observed := group != nil || described != nil
	for i := range streams.Subtopologies {
		applySubtopology(w, &streams.Subtopologies[i], observed)
	}
	for i := range streams.Stores {
		applyStore(w, &streams.Stores[i])
	}
}

// refineSubtopology returns a described subtopology with the facts of the group, which may be nil.
func refineSubtopology(s memplan.Subtopology, group *assignment.Group) memplan.Subtopology {
	s.Stores = slices.Clone(s.Stores)
	if group == nil {
		return s
	}
	i := slices.IndexFunc(group.Subtopologies, func(g assignment.Subtopology) bool { return g.ID == s.ID })
	if i < 0 {
		return s
	}
	shown := subtopologyOf(group.Subtopologies[i])
	s.Tasks = max(s.Tasks, shown.Tasks)
	for _, store := range shown.Stores {
		if j := storeIndex(s.Stores, store.Name); j < 0 {
			s.Stores = append(s.Stores, store)
		} else if store.RetentionMs.Value > 0 {
			s.Stores[j].RetentionMs = store.RetentionMs
		}
	}
	for _, open := range group.Subtopologies[i].Stores {
		if j := storeIndex(s.Stores, open.Name); j >= 0 {
			refineOpen(&s.Stores[j], open)
		}
	}
	return s
}

// subtopologyOf converts a subtopology of a group.
func subtopologyOf(s assignment.Subtopology) memplan.Subtopology {
	result := memplan.Subtopology{ID: s.ID, Tasks: int(s.Tasks), InputPartitions: max(1, len(s.SourceTopics))}
	for _, sink := range s.SinkTopics {
		result.WrittenPartitions += int(sink.Partitions)
	}
	for _, c := range s.Changelogs {
		result.Stores = append(result.Stores, storeOf(c))
	}
	for _, open := range s.Stores {
		i := storeIndex(result.Stores, open.Name)
		if i < 0 {
			i = len(result.Stores)
			result.Stores = append(result.Stores, memplan.Store{Name: open.Name, Kind: memplan.TimestampedKeyValue, Caching: true})
		}
		refineOpen(&result.Stores[i], open)
	}
	for _, name := range s.UnloggedStores {
		result.Stores = append(result.Stores, memplan.Store{Name: name, Kind: memplan.TimestampedKeyValue, Caching: true, Unlogged: true})
	}
	return result
}

// applySubtopology adds the facts of the spec to a subtopology. Without another source the spec defines it.
func applySubtopology(w *memplan.Workload, s *v1alpha1.Subtopology, observed bool) {
	id := strconv.Itoa(int(*s.ID))
	i := slices.IndexFunc(w.Subtopologies, func(known memplan.Subtopology) bool { return known.ID == id })
	if i < 0 {
		if observed {
			return // the application has no such tasks
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

// neighboursOf returns the other applications whose clients run in the same processes.
func neighboursOf(reports *Reports) []memplan.Neighbour {
	var neighbours []memplan.Neighbour
	for i := range reports.Group.Further {
		further := &reports.Group.Further[i]
		version, err := memplan.ParseVersion(further.Group.VersionHint)
		fact := memplan.Known(version, memplan.Measured)
		if err != nil {
			fact = memplan.Fact[memplan.Version]{}
		}
		group, _ := groupSource(&further.Group) // the version is known already
		w := memplan.NewWorkload(fact)
		group.version = nil
		applySources(&w, map[sourceName]*source{sourceGroup: group, sourceBroker: brokerSource(&further.Group)})
		for _, s := range further.Group.Subtopologies {
			w.Subtopologies = append(w.Subtopologies, subtopologyOf(s))
		}
		neighbours = append(neighbours, memplan.Neighbour{
			ApplicationID: further.Group.ApplicationID, Workload: w, Assignment: memplan.Assignment{Pods: podsOfLoads(further.Loads)},
		})
	}
	return neighbours
}
