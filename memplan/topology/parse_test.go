// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/memplan/topology"
)

// description is a file of testdata.
func description(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// operators are the descriptions of operators.txt, by name.
func operators(t testing.TB) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, part := range strings.Split(description(t, "operators"), "##### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		texts[name] = text
	}
	return texts
}

func parse(t testing.TB, text string) topology.Topology {
	t.Helper()
	parsed, err := topology.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestParseDescriptionsFromTheField(t *testing.T) {
	tests := map[string]struct {
		stores      []int // of each subtopology
		shared      []string
		repartition []string
		dynamic     []string
	}{
		"repartition-optimized": {
			stores: []int{0, 5}, shared: []string{"other-join-store", "join-store"}, repartition: []string{"count-groupByKey-repartition"},
		},
		"repartition-unoptimized": {
			stores: []int{0, 3, 1, 1}, shared: []string{"other-join-store", "join-store"},
			repartition: []string{
				"count-groupByKey-repartition", "join-left-repartition", "aggregate-groupByKey-repartition", "reduce-groupByKey-repartition",
			},
		},
		"stream-stream-join-repartition": {
			stores: []int{0, 2, 2},
			shared: []string{
				"KSTREAM-JOINOTHER-0000000010-store", "KSTREAM-JOINTHIS-0000000009-store",
				"KSTREAM-JOINOTHER-0000000019-store", "KSTREAM-JOINTHIS-0000000018-store",
			},
			repartition: []string{"first-join-left-repartition", "second-join-left-repartition"},
		},
		"stream-stream-join-shared-repartition": {
			stores: []int{0, 4},
			shared: []string{
				"KSTREAM-JOINTHIS-0000000009-store", "KSTREAM-JOINOTHER-0000000010-store",
				"KSTREAM-JOINTHIS-0000000018-store", "KSTREAM-JOINOTHER-0000000019-store",
			},
			repartition: []string{"KSTREAM-MAP-0000000003-repartition"},
		},
		"suppress-named":   {stores: []int{0, 2}, repartition: []string{"counts-repartition"}},
		"suppress-unnamed": {stores: []int{0, 2}, repartition: []string{"counts-repartition"}},
		"cogrouped": {
			stores: []int{0, 1, 1},
			shared: []string{"COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000005", "COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000012"},
			repartition: []string{
				"COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000005-repartition", "COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000012-repartition",
			},
		},
		"to-table-foreign-key-join": {
			stores: []int{1, 2},
			shared: []string{
				"KSTREAM-TOTABLE-STATE-STORE-0000000002", "KSTREAM-TOTABLE-STATE-STORE-0000000005",
				"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010",
			},
			repartition: []string{
				"KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic", "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
			},
		},
		"dynamic-sink":        {stores: []int{0}, dynamic: []string{"io.axual.ksml.user.UserTopicNameExtractor"}},
		"branching-no-header": {stores: []int{0, 0, 0}},
		"extractor-no-header": {stores: []int{0, 0, 0, 0}, dynamic: []string{"io.axual.ksml.user.UserTopicNameExtractor@713529c2"}},
		"kafka-1.1":           {stores: []int{0, 1}, repartition: []string{"Counts-repartition"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			parsed := parse(t, description(t, name))
			var stores []int
			var shared, dynamic []string
			for _, s := range parsed.Subtopologies {
				stores = append(stores, len(s.Stores))
				for _, store := range s.Stores {
					if len(store.Processors) > 1 {
						shared = append(shared, store.Name)
					}
				}
				for _, sink := range s.Sinks {
					if sink.Extractor != "" {
						dynamic = append(dynamic, sink.Extractor)
					}
				}
			}
			if d := cmp.Diff(tc.stores, stores); d != "" {
				t.Errorf("stores of each sub-topology (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.shared, shared); d != "" {
				t.Errorf("stores named by two processors (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.repartition, parsed.RepartitionTopics()); d != "" {
				t.Errorf("repartition topics (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.dynamic, dynamic); d != "" {
				t.Errorf("sinks with an extractor (-want +got):\n%s", d)
			}
			if len(parsed.GlobalStores) > 0 {
				t.Errorf("global stores %v, want none", parsed.GlobalStores)
			}
		})
	}
}

func TestParseTheWholeOfASubtopology(t *testing.T) {
	const text = "2026-01-01 INFO Topologies:\r\n" +
		"   Sub-topology: 7\r\n" +
		"    Source: in (topics: in-(a|b), [0-9]+)\r\n      --> count\r\n" +
		"    Source: odd (topics: [x.y, x_z])\r\n      --> count\r\n" +
		"    Processor: count (stores: [counts, other])\r\n      --> out, any\r\n      <-- in, odd\r\n" +
		"    Sink: any (extractor class: Router (topic: [x]) --> y)\r\n      <-- count\r\n" +
		"    Sink: out (topic: result)\r\n      <-- count\r\n"
	want := topology.Topology{Subtopologies: []topology.Subtopology{{
		ID: "7", Line: 2,
		Sources: []topology.Source{
			{Name: "in", Line: 3, Pattern: "in-(a|b), [0-9]+"},
			{Name: "odd", Line: 5, Topics: []string{"x.y", "x_z"}},
		},
		Processors: []topology.Processor{{
			Name: "count", Line: 7, Stores: []string{"counts", "other"}, Predecessors: []string{"in", "odd"}, Successors: []string{"out", "any"},
		}},
		Sinks: []topology.Sink{
			{Name: "any", Line: 10, Extractor: "Router (topic: [x]) --> y"},
			{Name: "out", Line: 12, Topic: "result"},
		},
		Stores: []topology.Store{
			{Name: "counts", Line: 7, Processors: []string{"count"}},
			{Name: "other", Line: 7, Processors: []string{"count"}},
		},
	}}}
	if d := cmp.Diff(want, parse(t, text)); d != "" {
		t.Errorf("topology (-want +got):\n%s", d)
	}
}

func TestParseSourcesAndGlobalStores(t *testing.T) {
	const end = "\n      --> none\n"
	tests := map[string]struct {
		text string
		want topology.Topology
	}{
		"brackets that are a character class, as no topic has such a name": {
			text: "Sub-topology: 0\nSource: s (topics: [a-z*])" + end,
			want: oneSource(topology.Source{Name: "s", Line: 2, Pattern: "[a-z*]"}),
		},
		"a pattern that could be a topic, as it has no brackets": {
			text: "Sub-topology: 0\nSource: s (topics: in.a)" + end,
			want: oneSource(topology.Source{Name: "s", Line: 2, Pattern: "in.a"}),
		},
		"a topic called none": {
			text: "Sub-topology: 0\nSource: s (topics: [none])" + end,
			want: oneSource(topology.Source{Name: "s", Line: 2, Topics: []string{"none"}}),
		},
		"two topics in the format of 1.1": {
			text: "Sub-topology: 0\nSource: s(topics: a, b) --> none",
			want: oneSource(topology.Source{Name: "s", Line: 2, Topics: []string{"a", "b"}}),
		},
		"a pattern in the format of 1.1": {
			text: "Sub-topology: 0\nSource: s(topics: a.*) --> none",
			want: oneSource(topology.Source{Name: "s", Line: 2, Pattern: "a.*"}),
		},
		"a node without successors as 0.11 prints it": {
			text: "Sub-topologies: \n  Sub-topology: 0\nSource: s(topics: a) --> \n",
			want: oneSource(topology.Source{Name: "s", Line: 3, Topics: []string{"a"}}),
		},
		"global stores in the format of 1.1": {
			text: "Sub-topologies:\n  none\nGlobal Stores:\n  GlobalStore: KSTREAM-SOURCE-0000000001(topic: ref) -> KTABLE-SOURCE-0000000002(store: ref-store)\n",
			want: topology.Topology{GlobalStores: []topology.GlobalStore{{Name: "ref-store", Line: 4, Topic: "ref"}}},
		},
		"named topologies, each with its own numbers and names": {
			text: "Topology: a:\n Sub-topology: 0\nSource: s (topics: [x])" + end + "\nTopology: b:\n Sub-topology: 0\nSource: s (topics: [y])" + end,
			want: topology.Topology{Subtopologies: []topology.Subtopology{
				{ID: "a__0", Line: 2, Sources: []topology.Source{{Name: "s", Line: 3, Topics: []string{"x"}}}},
				{ID: "b__0", Line: 7, Sources: []topology.Source{{Name: "s", Line: 8, Topics: []string{"y"}}}},
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.text)
			if len(got.Subtopologies) == 1 { // where it begins is not what these cases are about
				got.Subtopologies[0].Line = 0
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("topology (-want +got):\n%s", d)
			}
		})
	}
}

func oneSource(s topology.Source) topology.Topology {
	return topology.Topology{Subtopologies: []topology.Subtopology{{ID: "0", Sources: []topology.Source{s}}}}
}

func TestParseWhatKafkaStreamsPrints(t *testing.T) {
	texts := operators(t)
	t.Run("global tables between sub-topologies", func(t *testing.T) {
		got := parse(t, texts["global tables between sub-topologies"])
		want := []topology.GlobalStore{{Name: "ref-store", Line: 11, Topic: "ref"}, {Name: "ref2-STATE-STORE-0000000003", Line: 17, Topic: "ref2"}}
		if d := cmp.Diff(want, got.GlobalStores); d != "" {
			t.Errorf("global stores (-want +got):\n%s", d)
		}
		if len(got.Subtopologies) != 2 || got.Subtopologies[1].ID != "3" {
			t.Errorf("sub-topologies %v, want 0 and 3", got.Subtopologies)
		}
	})
	t.Run("names with parentheses", func(t *testing.T) {
		got := parse(t, texts["odd names"]).Subtopologies[0]
		if got.Sources[0].Name != "s (topics: [x])" || got.Processors[0].Name != "p q (stores: [])" || got.Stores[0].Name != "m1" {
			t.Errorf("source %q, processor %q, stores %v", got.Sources[0].Name, got.Processors[0].Name, got.Stores)
		}
	})
	t.Run("an extractor with a toString of its own", func(t *testing.T) {
		if got := parse(t, texts["extractor with toString"]).Subtopologies[0].Sinks[0].Extractor; got != "my (odd) ex, [x]" {
			t.Errorf("extractor %q", got)
		}
	})
	t.Run("an empty topology", func(t *testing.T) {
		if _, err := topology.Parse(texts["empty"]); err == nil || !strings.HasPrefix(err.Error(), "line 1: the topology is empty") {
			t.Errorf("error %v", err)
		}
	})
}

func TestParseErrors(t *testing.T) {
	const head = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [in])\n      --> p\n"
	const whole = head + "    Processor: p (stores: [])\n      --> none\n      <-- s\n"
	tests := map[string]struct{ text, want string }{
		"nothing":                    {"", "line 1: the text is empty: it must be the output of Topology#describe()"},
		"a header alone":             {"Sub-topologies:\n  none\nGlobal Stores:\n  none\n", "line 1: the topology is empty: describe it after all its nodes are added"},
		"another text":               {"apiVersion: v1\n", "line 1: \"apiVersion: v1\" is not a line of Topology#describe(): the text must be its complete output and nothing else"},
		"a line too much":            {whole + strings.Repeat("x", 99), "line 8: \"" + strings.Repeat("x", 60) + "...\" is not a line of Topology#describe(): the text must be its complete output and nothing else"},
		"an id that is no number":    {"Sub-topology: a", "line 1: sub-topology \"a\": its id is a number, as in \"Sub-topology: 0\""},
		"an id that is too large":    {"Sub-topology: 2147483648", "line 1: sub-topology \"2147483648\": its id is a number, as in \"Sub-topology: 0\""},
		"two descriptions":           {whole + whole, "line 8: \"Topologies:\" is not a line of Topology#describe(): the text must be its complete output and nothing else"},
		"a sub-topology twice":       {whole + "Sub-topology: 0", "line 8: duplicate sub-topology 0, first on line 2: the text must describe one application"},
		"a node before all":          {"Source: s (topics: [in])", "line 1: a source before the first \"Sub-topology: \" line: the text is incomplete"},
		"an arrow before all":        {"Sub-topology: 0\n--> x", "line 2: an arrow before the first node of its sub-topology: the text is incomplete"},
		"a node without a name":      {"Sub-topology: 0\nSource:  (topics: [in])", "line 2: a source without a name"},
		"a node without parentheses": {"Sub-topology: 0\nSink: k", "line 2: sink \"k\" has no \"(topic: ...)\""},
		"a node that is cut off":     {"Sub-topology: 0\nSource: s (topics: [in", "line 2: source \"s (topics: [in\" has no \")\" at its end: the line is cut off"},
		"a source of nothing":        {"Sub-topology: 0\nSource: s(topics: ) --> none", "line 2: source \"s\" has an empty name in parentheses: the line is cut off"},
		"a sink to nowhere":          {"Sub-topology: 0\nSink: k (topic: )\n<-- none", "line 2: sink \"k\" has an empty name in parentheses: the line is cut off"},
		"a store without a name":     {"Sub-topology: 0\nProcessor: p (stores: [a, ])\n<-- none", "line 2: processor \"p\" has an empty name in parentheses: the line is cut off"},
		"a text that is cut off":     {head + "    Processor: p (stores: [])\n      --> none\n", "line 5: processor \"p\" has no arrow: the text is cut off"},
		"a text cut between nodes":   {head, "line 3: \"s\" is connected to \"p\", but sub-topology 0 has no such node: the text is incomplete"},
		"no source":                  {"Topologies:\nSub-topology: 4\nProcessor: p (stores: [])\n--> none\n<-- none", "line 2: sub-topology 4 has no source: the text is incomplete"},
		"a sub-topology of nothing":  {"Topologies:\nSub-topology: 4\n", "line 2: sub-topology 4 has no source: the text is incomplete"},
		"a node twice":               {whole + "Sub-topology: 1\nSource: s (topics: [in])\n--> none", "line 9: duplicate node \"s\", first on line 3"},
		"an arrow twice":             {head + "--> p", "line 5: source \"s\" has a duplicate arrow"},
		"a source with an origin":    {"Sub-topology: 0\nSource: s (topics: [in])\n<-- p", "line 3: source \"s\" has a \"<--\": a source has no predecessors"},
		"a sink that leads on":       {"Sub-topology: 0\nSink: k (topic: out)\n--> p", "line 3: sink \"k\" has a \"-->\": a sink has no successors"},
		"an arrow into a source":     {whole + "Source: s2 (topics: [a])\n--> s", "line 8: \"s2\" leads to source \"s\": only topics lead to sources"},
		"a circle of two":            {head + "Processor: p (stores: [])\n--> q\n<-- s, q\nProcessor: q (stores: [])\n--> p, r\n<-- p\nProcessor: r (stores: [])\n--> none\n<-- q", "line 5: \"p\" leads back to itself: a topology has cycles through topics only"},
		"a circle of one":            {head + "Processor: p (stores: [])\n--> p\n<-- s, p", "line 5: \"p\" leads back to itself: a topology has cycles through topics only"},
		"a global store cut off":     {"Sub-topology: 3 for global store (will not generate tasks)\nSource: s (topics: [ref])\n--> none", "line 1: global store 3 has no topic or no store: the text is incomplete"},
		"an old global store":        {"Global Stores:\nGlobalStore: s(topic: x)", "line 2: a global store must be \"GlobalStore: SOURCE(topic: TOPIC) -> PROCESSOR(store: STORE)\""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := topology.Parse(tc.text)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != tc.want {
				t.Errorf("error %q\n want %q", err, tc.want)
			}
		})
	}
}

// TestParseWhatLayoutMeans gives each description in other layouts: the same comes out of them.
func TestParseWhatLayoutMeans(t *testing.T) {
	for name, text := range operators(t) {
		if name == "empty" {
			continue
		}
		want := parse(t, text)
		for layout, changed := range map[string]string{
			"lines of Windows":    strings.ReplaceAll(text, "\n", "\r\n"),
			"tabs, and one level": strings.ReplaceAll(text, "\n ", "\n\t"),
			"a word before it":    "12:00 INFO " + text,
			"the old header":      strings.Replace(text, "Topologies:", "Sub-topologies:", 1),
		} {
			if d := cmp.Diff(want, parse(t, changed)); d != "" {
				t.Errorf("%s with %s (-want +got):\n%s", name, layout, d)
			}
		}
	}
}
