// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/internal/golden"
	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/memplan/topology"
)

// files are the descriptions from the field, and the partitions of some of their topics.
var files = map[string]map[string]int{
	"repartition-optimized":                 {"input": 12, "outputTopic_0": 6, "outputTopic_1": 6, "outputTopic_2": 6, "joinedOutputTopic": 3},
	"repartition-unoptimized":               {"input": 12, "outputTopic_0": 6, "outputTopic_1": 6, "outputTopic_2": 6, "joinedOutputTopic": 3},
	"stream-stream-join-repartition":        {"topic": 8, "topic2": 8, "topic3": 4, "out-one": 2, "out-two": 2},
	"stream-stream-join-shared-repartition": {"topic": 8, "topic2": 8},
	"suppress-named":                        {"input": 5, "output-suppressed": 1},
	"suppress-unnamed":                      {"input": 5, "app-counts-repartition": 9, "output-suppressed": 1},
	"cogrouped":                             {"one": 3, "two": 5, "three": 2},
	"to-table-foreign-key-join":             {"input1": 6, "input2": 10, "output": 6},
	"dynamic-sink":                          {"ksml_sensordata_avro": 4, "a": 2, "b": 3, "app-counts-changelog": 100},
	"branching-no-header":                   {"ksml_sensordata_blue": 1, "ksml_sensordata_red": 2, "ksml_sensordata_avro": 3},
	"extractor-no-header":                   {"ksml_sensordata_sensor0": 1, "ksml_sensordata_sensor1": 2, "ksml_sensordata_sensor2": 3, "ksml_sensordata_avro": 4},
	"kafka-1.1":                             {"streams-plaintext-input": 1},
}

// TestPiecesOfDescriptionsFromTheField compares the parts of each description with a readable file.
func TestPiecesOfDescriptionsFromTheField(t *testing.T) {
	for name, partitions := range files {
		t.Run(name, func(t *testing.T) {
			got := report(pieces(t, description(t, name), topology.Known{ApplicationID: "app", Partitions: partitions}))
			golden.Compare(t, name+".golden", got)
		})
	}
}

// kinds are the names of the kinds that a topology gives.
var kinds = map[memplan.StoreKind]string{
	memplan.TimestampedKeyValue: "timestamped key-value", memplan.Window: "window", memplan.JoinWindow: "join window",
	memplan.OuterJoinList: "outer join list", memplan.ForeignKeySubscription: "foreign-key subscription",
	memplan.TimeOrderedBuffer: "time-ordered buffer", memplan.Suppress: "suppress",
}

// report writes pieces for people.
func report(p topology.Pieces) string {
	var b strings.Builder
	for _, s := range p.Subtopologies {
		fmt.Fprintf(&b, "sub-topology %s: %d tasks, each reads %d partitions; %d partitions written\n", s.ID, s.Tasks, s.InputPartitions, s.WrittenPartitions)
		for _, store := range s.Stores {
			fmt.Fprintf(&b, "  %s: %s, %d instances, caching %t\n", store.Name, kinds[store.Kind], store.Instances(), store.Caching)
		}
	}
	for _, store := range p.GlobalStores {
		fmt.Fprintf(&b, "global store %s: %s, %d partitions\n", store.Name, kinds[store.Kind], store.Partitions)
	}
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "assumed: %s\n", a)
	}
	return b.String()
}

func TestPieces(t *testing.T) {
	chain := "Sub-topology: 0\nSource: s (topics: [in])\n--> k\nSink: k (topic: a-repartition)\n<-- s\n" +
		"Sub-topology: 1\nSource: s1 (topics: [a-repartition])\n--> k1\nSink: k1 (topic: b-repartition)\n<-- s1\n" +
		"Sub-topology: 2\nSource: s2 (topics: [b-repartition, other])\n--> k2\nSink: k2 (topic: out)\n<-- s2\n"
	circle := "Sub-topology: 0\nSource: s (topics: [b-repartition])\n--> k\nSink: k (topic: a-repartition)\n<-- s\n" +
		"Sub-topology: 1\nSource: s1 (topics: [a-repartition])\n--> k1\nSink: k1 (topic: b-repartition)\n<-- s1\n"
	pattern := "Sub-topology: 0\nSource: s (topics: in-(a|b)+)\n--> k\nSink: k (topic: out)\n<-- s\n"
	lookahead := "Sub-topology: 0\nSource: s (topics: (?!x).*)\n--> k\nSink: k (topic: out)\n<-- s\n"
	global := operators(t)["global tables between sub-topologies"]
	tests := map[string]struct {
		text  string
		known topology.Known
		want  string
	}{
		"repartition topics take the tasks that write them, down a chain": {
			chain, topology.Known{Partitions: map[string]int{"in": 6, "other": 4, "out": 1}},
			"sub-topology 0: 6 tasks, each reads 1 partitions; 6 partitions written\n" +
				"sub-topology 1: 6 tasks, each reads 1 partitions; 6 partitions written\n" +
				"sub-topology 2: 6 tasks, each reads 2 partitions; 1 partitions written\n" +
				"assumed: line 7: topic a-repartition counts 6 partitions, the number of tasks that write it: Repartitioned, or a join with another topic, may set another number\n" +
				"assumed: line 12: topic b-repartition counts 6 partitions, the number of tasks that write it: Repartitioned, or a join with another topic, may set another number\n",
		},
		"the cluster's repartition topic counts, with the prefix of the application id": {
			chain, topology.Known{ApplicationID: "app", Partitions: map[string]int{"in": 6, "app-a-repartition": 9, "b-repartition": 2, "other": 4, "out": 1}},
			"sub-topology 0: 6 tasks, each reads 1 partitions; 9 partitions written\n" +
				"sub-topology 1: 9 tasks, each reads 1 partitions; 2 partitions written\n" +
				"sub-topology 2: 4 tasks, each reads 2 partitions; 1 partitions written\n",
		},
		"tasks that are known count, and partitions that are not": {
			chain, topology.Known{Tasks: map[string]int{"0": 2, "1": 3, "2": 5, "9": 1}},
			"sub-topology 0: 2 tasks, each reads 1 partitions; 3 partitions written\n" +
				"sub-topology 1: 3 tasks, each reads 1 partitions; 5 partitions written\n" +
				"sub-topology 2: 5 tasks, each reads 2 partitions; 5 partitions written\n" +
				"assumed: sub-topology \"9\" is not in the description and not counted: the description must be that of the running application\n" +
				"assumed: line 14: topic out counts 5 partitions, the largest known number: its own is not known\n",
		},
		"topics that feed each other": {
			circle, topology.Known{Partitions: map[string]int{"x": 7}},
			"sub-topology 0: 7 tasks, each reads 1 partitions; 7 partitions written\n" +
				"sub-topology 1: 7 tasks, each reads 1 partitions; 7 partitions written\n" +
				"assumed: line 1: sub-topology 0 counts 7 tasks, the largest known number: the sizes of its source topics depend on each other\n" +
				"assumed: line 2: topic b-repartition counts 7 partitions, the number of tasks that write it: Repartitioned, or a join with another topic, may set another number\n" +
				"assumed: line 6: sub-topology 1 counts 7 tasks, the largest known number: the sizes of its source topics depend on each other\n" +
				"assumed: line 7: topic a-repartition counts 7 partitions, the number of tasks that write it: Repartitioned, or a join with another topic, may set another number\n",
		},
		"a pattern matches the whole name of a topic": {
			pattern, topology.Known{Partitions: map[string]int{"in-a": 4, "in-ab": 6, "in-abc": 50, "pin-a": 60, "out": 2}},
			"sub-topology 0: 6 tasks, each reads 2 partitions; 2 partitions written\n",
		},
		"a pattern that nothing known matches": {
			pattern, topology.Known{Partitions: map[string]int{"out": 2}},
			"sub-topology 0: 2 tasks, each reads 1 partitions; 2 partitions written\n" +
				"assumed: line 2: source s counts as one topic of 2 partitions: no known topic matches its pattern in-(a|b)+\n",
		},
		"a pattern that only Java knows": {
			lookahead, topology.Known{Partitions: map[string]int{"in": 3, "out": 2}},
			"sub-topology 0: 3 tasks, each reads 1 partitions; 2 partitions written\n" +
				"assumed: line 2: source s counts as one topic of 3 partitions: no known topic matches its pattern (?!x).*\n",
		},
		"a sink with an extractor, and no topic known": {
			"Sub-topology: 0\nSource: s (topics: [in])\n--> k\nSink: k (extractor class: X)\n<-- s\n", topology.Known{Tasks: map[string]int{"0": 3}},
			"sub-topology 0: 3 tasks, each reads 1 partitions; 3 partitions written\n" +
				"assumed: line 4: sink k counts 3 partitions, those of all known topics without another sink: its extractor chooses the topic by record\n",
		},
		"global stores, one of a topic that is known": {
			global, topology.Known{Partitions: map[string]int{"l": 2, "z": 3, "o": 1, "q": 1, "ref": 8}},
			"sub-topology 0: 2 tasks, each reads 1 partitions; 1 partitions written\n" +
				"sub-topology 3: 3 tasks, each reads 1 partitions; 1 partitions written\n" +
				"global store ref-store: timestamped key-value, 8 partitions\n" +
				"global store ref2-STATE-STORE-0000000003: timestamped key-value, 0 partitions\n" +
				"assumed: line 17: global store ref2-STATE-STORE-0000000003: the partitions of topic ref2 are not known, so no number of partitions limits its fetches\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, report(pieces(t, tc.text, tc.known))); d != "" {
				t.Errorf("pieces (-want +got):\n%s", d)
			}
		})
	}
}

func TestPiecesTakeWhatIsKnownOfStores(t *testing.T) {
	counts := memplan.Store{Kind: memplan.Session, RetentionMs: memplan.Known[int64](600_000, memplan.Measured), Caching: true}
	got := pieces(t, description(t, "suppress-named"), topology.Known{
		Partitions: map[string]int{"input": 5, "output-suppressed": 1},
		Stores:     map[string]memplan.Store{"counts": counts, "myname-store": {Kind: memplan.Suppress, InMemory: true}, "gone": {}},
	})
	counts.Name = "counts"
	want := []memplan.Store{counts, {Name: "myname-store", Kind: memplan.Suppress, InMemory: true}}
	if d := cmp.Diff(want, got.Subtopologies[1].Stores); d != "" {
		t.Errorf("stores (-want +got):\n%s", d)
	}
	if a := got.Assumptions[0]; a.Line != 0 || !strings.HasPrefix(a.String(), "store gone is not in the description") {
		t.Errorf("first assumption %q", a)
	}
	if len(got.Assumptions) != 2 {
		t.Errorf("assumptions %v, want those of the store that is gone and of the repartition topic", got.Assumptions)
	}
	named := topology.Known{Tasks: map[string]int{"0": 1, "3": 1}, Stores: map[string]memplan.Store{"ref-store": {InMemory: true, Partitions: 2}}}
	global := pieces(t, operators(t)["global tables between sub-topologies"], named).GlobalStores[0]
	if d := cmp.Diff(memplan.Store{Name: "ref-store", InMemory: true, Partitions: 2}, global); d != "" {
		t.Errorf("global store (-want +got):\n%s", d)
	}
}

func TestPiecesErrors(t *testing.T) {
	tests := map[string]struct {
		known topology.Known
		want  string
	}{
		"nothing known":              {topology.Known{}, "line 2: the tasks of sub-topology 0 are not known: set the partitions of its source topics, or its tasks"},
		"a topic without partitions": {topology.Known{Partitions: map[string]int{"input": 0}}, "topic \"input\" has 0 partitions: it must be a number of 1 to 2147483647"},
		"negative partitions":        {topology.Known{Partitions: map[string]int{"input": -3}}, "topic \"input\" has -3 partitions: it must be a number of 1 to 2147483647"},
		"absurd partitions":          {topology.Known{Partitions: map[string]int{"input": 1 << 40}}, "topic \"input\" has 1099511627776 partitions: it must be a number of 1 to 2147483647"},
		"no tasks":                   {topology.Known{Tasks: map[string]int{"0": 0}}, "sub-topology \"0\" has 0 tasks: it must be a number of 1 to 2147483647"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, description(t, "suppress-named")).Pieces(tc.known)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v\n want %s", err, tc.want)
			}
		})
	}
}

// TestMorePartitionsNeverGiveLess grows one topic after the other: nothing that is counted falls.
func TestMorePartitionsNeverGiveLess(t *testing.T) {
	for name, partitions := range files {
		parsed := parse(t, description(t, name))
		known := maps.Clone(partitions)
		topics := slices.Sorted(maps.Keys(known))
		random := rand.New(rand.NewPCG(1, uint64(len(topics))))
		before, err := parsed.Pieces(topology.Known{ApplicationID: "app", Partitions: known})
		for step := 0; err == nil && step < 30; step++ {
			topic := topics[random.IntN(len(topics))]
			known[topic] += 1 + random.IntN(9)
			var after topology.Pieces
			after, err = parsed.Pieces(topology.Known{ApplicationID: "app", Partitions: known})
			for i := range before.Subtopologies {
				b, a := before.Subtopologies[i], after.Subtopologies[i]
				if a.Tasks < b.Tasks || a.InputPartitions < b.InputPartitions || a.WrittenPartitions < b.WrittenPartitions {
					t.Fatalf("%s: after %s grew to %d, sub-topology %s went from %+v to %+v", name, topic, known[topic], a.ID, b, a)
				}
			}
			before = after
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPiecesMakeAPlan plans the memory of a description, and compares a suppress buffer on the heap with one counted as a
// table in RocksDB.
func TestPiecesMakeAPlan(t *testing.T) {
	need := func(stores map[string]memplan.Store) memplan.Bytes {
		got := pieces(t, description(t, "suppress-named"), topology.Known{Partitions: map[string]int{"input": 5, "output-suppressed": 1}, Stores: stores})
		w := memplan.NewWorkload(memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.App))
		w.Subtopologies, w.GlobalStores = got.Subtopologies, got.GlobalStores
		w.Bounded = false
		return memplan.RequiredLimit(w, memplan.ColdStart(w, 1), memplan.DefaultPolicy())
	}
	table := map[string]memplan.Store{"myname-store": {Kind: memplan.TimestampedKeyValue, Caching: true}}
	if heap, native := need(nil), need(table); heap >= native {
		t.Errorf("a suppress buffer takes %v, as a table in RocksDB %v: want less", heap, native)
	}
}
