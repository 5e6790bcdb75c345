// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/memplan/topology"
)

// pieces counts the parts of a description.
func pieces(t testing.TB, text string, known topology.Known) topology.Pieces {
	t.Helper()
	got, err := parse(t, text).Pieces(known)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// kindsOf are the kinds of all stores by name.
func kindsOf(p topology.Pieces) map[string]memplan.StoreKind {
	kinds := map[string]memplan.StoreKind{}
	for _, s := range p.Subtopologies {
		for _, store := range s.Stores {
			kinds[store.Name] = store.Kind
		}
	}
	return kinds
}

// TestKindsOfWhatKafkaStreamsPrints reads what Kafka Streams 4.4.0 prints for each operator with a store.
func TestKindsOfWhatKafkaStreamsPrints(t *testing.T) {
	const table = memplan.TimestampedKeyValue
	tests := map[string]struct {
		want map[string]memplan.StoreKind
		// wantAssumed is the number of kinds that are not in the text.
		wantAssumed int
	}{
		"windowed count of a pattern":   {map[string]memplan.StoreKind{"KSTREAM-AGGREGATE-STATE-STORE-0000000001": memplan.Window}, 1},
		"session count":                 {map[string]memplan.StoreKind{"KSTREAM-AGGREGATE-STATE-STORE-0000000001": memplan.Window}, 1},
		"count emitted on window close": {map[string]memplan.StoreKind{"KSTREAM-AGGREGATE-STATE-STORE-0000000001": memplan.Window}, 1},
		"windowed cogroup":              {map[string]memplan.StoreKind{"COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000001": memplan.Window}, 1},
		"suppress of a named windowed count": {map[string]memplan.StoreKind{
			"named-win": memplan.Window, "KTABLE-SUPPRESS-STATE-STORE-0000000003": memplan.Suppress,
		}, 1},
		"named suppress": {map[string]memplan.StoreKind{
			"KSTREAM-AGGREGATE-STATE-STORE-0000000001": memplan.Window, "sup-store": memplan.Suppress,
		}, 2},
		"left stream-stream join": {map[string]memplan.StoreKind{
			"KSTREAM-JOINTHIS-0000000004-store": memplan.JoinWindow, "KSTREAM-OUTEROTHER-0000000005-store": memplan.JoinWindow,
			"KSTREAM-OUTERSHARED-0000000004-store": memplan.OuterJoinList,
		}, 0},
		"left join with names": {map[string]memplan.StoreKind{
			"st-this-join-store": memplan.JoinWindow, "st-outer-other-join-store": memplan.JoinWindow, "st-left-shared-join-store": memplan.OuterJoinList,
		}, 0},
		"outer join with names": {map[string]memplan.StoreKind{
			"st-outer-this-join-store": memplan.JoinWindow, "st-outer-other-join-store": memplan.JoinWindow, "st-outer-shared-join-store": memplan.OuterJoinList,
		}, 0},
		"outer join with store names": {map[string]memplan.StoreKind{
			"j-outer-this-join-store": memplan.JoinWindow, "j-outer-other-join-store": memplan.JoinWindow, "j-outer-shared-join-store": memplan.OuterJoinList,
		}, 0},
		"inner join with names": {map[string]memplan.StoreKind{"st-this-join-store": memplan.JoinWindow, "st-other-join-store": memplan.JoinWindow}, 0},
		"self-join, optimized":  {map[string]memplan.StoreKind{"KSTREAM-JOINTHIS-0000000003-store": memplan.JoinWindow}, 0},
		"stream-table join":     {map[string]memplan.StoreKind{"t-STATE-STORE-0000000001": table}, 0},
		"stream-table join with grace": {map[string]memplan.StoreKind{
			"ver": table, "KSTREAM-LEFTJOIN-0000000003-Buffer": memplan.TimeOrderedBuffer,
		}, 0},
		"stream-table join with grace and names": {map[string]memplan.StoreKind{"ver": table, "jj-Buffer": memplan.TimeOrderedBuffer}, 0},
		"table-table join with named stores": {map[string]memplan.StoreKind{
			"l-STATE-STORE-0000000000": table, "r-STATE-STORE-0000000003": table, "mat": table, "fil": table,
		}, 0},
		"foreign-key join": {map[string]memplan.StoreKind{
			"l-STATE-STORE-0000000000": table, "r-STATE-STORE-0000000003": table,
			"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010": memplan.ForeignKeySubscription,
		}, 0},
		"foreign-key join with names": {map[string]memplan.StoreKind{
			"l-STATE-STORE-0000000000": table, "r-STATE-STORE-0000000003": table,
			"fk-subscription-store": memplan.ForeignKeySubscription, "fkm": memplan.Window,
		}, 1},
		"reduce and aggregate": {map[string]memplan.StoreKind{
			"KSTREAM-REDUCE-STATE-STORE-0000000001": memplan.Window, "KSTREAM-AGGREGATE-STATE-STORE-0000000004": memplan.Window,
		}, 2},
		"table operations": {map[string]memplan.StoreKind{
			"l-STATE-STORE-0000000000": table, "KTABLE-AGGREGATE-STATE-STORE-0000000004": table, "mv": table, "ff": table,
			"m-store": memplan.Suppress, // mapValues with the names of a suppress(): assumed, with an assumption
		}, 1},
		// The processor and the store of a reduce have the names of a suppress(), but a source comes before it.
		"named tables": {map[string]memplan.StoreKind{"c2-store": memplan.Window, "red-store": memplan.Window}, 2},
		"one processor with two stores, one of them with its name": {map[string]memplan.StoreKind{"p-store": memplan.Window, "other": memplan.Window}, 2},
		"processor with a store":                                   {map[string]memplan.StoreKind{"mem": memplan.Window}, 1},
	}
	texts := operators(t)
	texts["one processor with two stores, one of them with its name"] = "Sub-topology: 0\nSource: s (topics: [in])\n--> p\n" +
		"Processor: p (stores: [p-store, other])\n--> none\n<-- s\n"
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := pieces(t, texts[name], topology.Known{Tasks: map[string]int{"0": 4, "1": 4, "2": 4}})
			if d := cmp.Diff(tc.want, kindsOf(got)); d != "" {
				t.Errorf("kinds (-want +got):\n%s", d)
			}
			assumed := 0
			for _, a := range got.Assumptions {
				if strings.HasPrefix(a.Text, "store ") {
					assumed++
				}
			}
			if assumed != tc.wantAssumed {
				t.Errorf("%d kinds assumed, want %d: %v", assumed, tc.wantAssumed, got.Assumptions)
			}
		})
	}
}

// TestKindsDecideWhereAStoreLives checks the instances of a task for the stores of each kind.
func TestKindsDecideWhereAStoreLives(t *testing.T) {
	tests := map[string]struct {
		file          string
		wantInstances map[string]memplan.Count
		wantHeap      []string
	}{
		"a suppress store is heap, named or not": {
			file: "suppress-named", wantInstances: map[string]memplan.Count{"counts": 3, "myname-store": 0}, wantHeap: []string{"myname-store"},
		},
		"a suppress store under its own name": {
			file:          "suppress-unnamed",
			wantInstances: map[string]memplan.Count{"counts": 3, "KTABLE-SUPPRESS-STATE-STORE-0000000007": 0},
			wantHeap:      []string{"KTABLE-SUPPRESS-STATE-STORE-0000000007"},
		},
		"join stores have segments, without window in their names": {
			file: "stream-stream-join-repartition",
			wantInstances: map[string]memplan.Count{
				"KSTREAM-JOINTHIS-0000000009-store": 3, "KSTREAM-JOINOTHER-0000000010-store": 3,
				"KSTREAM-JOINTHIS-0000000018-store": 3, "KSTREAM-JOINOTHER-0000000019-store": 3,
			},
		},
		"join stores that the application named are known by the processors that write them": {
			file:          "repartition-optimized",
			wantInstances: map[string]memplan.Count{"count-store": 3, "other-join-store": 3, "join-store": 3, "aggregate-store": 3, "reduce-store": 3},
		},
		"the stores of a foreign-key join are one instance each": {
			file: "to-table-foreign-key-join",
			wantInstances: map[string]memplan.Count{
				"KSTREAM-TOTABLE-STATE-STORE-0000000002": 1, "KSTREAM-TOTABLE-STATE-STORE-0000000005": 1,
				"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010": 1,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := pieces(t, description(t, tc.file), topology.Known{Partitions: map[string]int{"any": 4}})
			instances := map[string]memplan.Count{}
			var heap []string
			for _, s := range got.Subtopologies {
				for _, store := range s.Stores {
					instances[store.Name] = store.Instances()
					if store.InMemory {
						heap = append(heap, store.Name)
					}
				}
			}
			if d := cmp.Diff(tc.wantInstances, instances); d != "" {
				t.Errorf("instances (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.wantHeap, heap); d != "" {
				t.Errorf("stores on the heap (-want +got):\n%s", d)
			}
		})
	}
}
