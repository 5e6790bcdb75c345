// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"

	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/memplan/topology"
)

// The word count of Kafka's quickstart: two sub-topologies, one store. Of the store is known that it has no windows.
func ExampleTopology_Pieces() {
	parsed, err := topology.Parse(`Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
      --> KSTREAM-FLATMAPVALUES-0000000001
    Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
      --> KSTREAM-SINK-0000000004
      <-- KSTREAM-SOURCE-0000000000
    Sink: KSTREAM-SINK-0000000004 (topic: counts-repartition)
      <-- KSTREAM-FLATMAPVALUES-0000000001

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000006 (topics: [counts-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [counts])
      --> none
      <-- KSTREAM-SOURCE-0000000006
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	pieces, err := parsed.Pieces(topology.Known{
		Partitions: map[string]int{"lines": 12},
		Stores:     map[string]memplan.Store{"counts": {Kind: memplan.TimestampedKeyValue, Caching: true}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := memplan.NewWorkload(memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.App))
	w.Subtopologies, w.GlobalStores = pieces.Subtopologies, pieces.GlobalStores
	fmt.Println(w.Tasks(), "tasks")
	for _, a := range pieces.Assumptions {
		fmt.Println(a)
	}
	// Output:
	// 24 tasks
	// line 12: topic counts-repartition counts 12 partitions, the number of tasks that write it: Repartitioned, or a join with another topic, may set another number
}
