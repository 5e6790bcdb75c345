// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"streamweir.dev/streamweir/memplan/topology"
)

// names that the DSL allows.
var legal = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// describe prints a topology as Kafka Streams 4.4.0 does; ok is false where a name is not one of the DSL's.
func describe(t topology.Topology) (text string, ok bool) {
	var b strings.Builder
	ok = true
	name := func(names ...string) string {
		for _, n := range names {
			ok = ok && legal.MatchString(n) && n != "none"
		}
		return strings.Join(names, ", ")
	}
	arrow := func(names []string) string {
		if len(names) == 0 {
			return "none"
		}
		return name(names...)
	}
	b.WriteString("Topologies:\n ")
	for _, s := range t.Subtopologies {
		fmt.Fprintf(&b, "  Sub-topology: %s\n", s.ID)
		into := map[string][]string{}
		for _, p := range s.Processors {
			for _, before := range p.Predecessors {
				into[before] = append(into[before], p.Name)
			}
		}
		for _, source := range s.Sources {
			topics := "[" + name(source.Topics...) + "]"
			if source.Pattern != "" {
				topics = source.Pattern
			}
			fmt.Fprintf(&b, "    Source: %s (topics: %s)\n      --> %s\n", name(source.Name), topics, arrow(into[source.Name]))
			ok = ok && (source.Pattern == "" || !strings.ContainsAny(source.Pattern, "()[]\r<> ")) && len(source.Topics)+len(source.Pattern) > 0
		}
		for _, p := range s.Processors {
			fmt.Fprintf(&b, "    Processor: %s (stores: [%s])\n      --> %s\n      <-- %s\n", name(p.Name), name(p.Stores...), arrow(p.Successors), arrow(p.Predecessors))
		}
		for _, sink := range s.Sinks {
			kind, to := "topic", sink.Topic
			if sink.Topic == "" {
				kind, to = "extractor class", sink.Extractor
			}
			ok = ok && legal.MatchString(to)
			fmt.Fprintf(&b, "    Sink: %s (%s: %s)\n      <-- none\n", name(sink.Name), kind, to)
		}
		b.WriteString("\n")
		ok = ok && !strings.Contains(s.ID, "__")
	}
	for i, g := range t.GlobalStores {
		fmt.Fprintf(&b, "  Sub-topology: %d for global store (will not generate tasks)\n    Source: global-source-%d (topics: [%s])\n      --> global-processor-%d\n"+
			"    Processor: global-processor-%d (stores: [%s])\n      --> none\n      <-- global-source-%d\n", 1<<30+i, i, name(g.Topic), i, i, name(g.Name), i)
	}
	return b.String(), ok
}

var ignoreLines = cmp.Options{
	cmpopts.IgnoreFields(topology.Subtopology{}, "Line"), cmpopts.IgnoreFields(topology.Source{}, "Line"), cmpopts.IgnoreFields(topology.Processor{}, "Line"),
	cmpopts.IgnoreFields(topology.Sink{}, "Line"), cmpopts.IgnoreFields(topology.Store{}, "Line"), cmpopts.IgnoreFields(topology.GlobalStore{}, "Line"),
	cmpopts.EquateEmpty(),
}

func TestParseReadsWhatIsPrintedAgain(t *testing.T) {
	texts := operators(t)
	for name := range files {
		texts[name] = description(t, name)
	}
	read := 0
	for name, text := range texts {
		parsed, err := topology.Parse(text)
		if err != nil {
			continue
		}
		printed, ok := describe(parsed)
		if !ok {
			continue
		}
		read++
		if d := cmp.Diff(parsed, parse(t, printed), ignoreLines); d != "" {
			t.Errorf("%s printed and read again (-before +after):\n%s", name, d)
		}
	}
	if want := 35; read < want {
		t.Errorf("only %d of %d descriptions were read again, want %d", read, len(texts), want)
	}
}

// FuzzParse reads any text: it is refused with the number of a line, or it gives a topology of which every part is sound.
func FuzzParse(f *testing.F) {
	for _, text := range operators(f) {
		if len(text) < 700 { // short texts are changed sooner
			f.Add(text)
		}
	}
	f.Add(description(f, "kafka-1.1"))
	f.Add("Sub-topologies:\n none\nGlobal Stores:\n GlobalStore: a(topic: b) -> c(store: d)")
	f.Add("Topology: x:\n Sub-topology: 0\n Source: s(topics: a) --> p\n Processor: p(stores: []) --> p <-- s, p")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := topology.Parse(text)
		if err != nil {
			var line int
			if _, scanErr := fmt.Sscanf(err.Error(), "line %d: ", &line); scanErr != nil || line < 1 || line > strings.Count(text, "\n")+1 {
				t.Errorf("error %q names no line of the text", err)
			}
			return
		}
		requireSound(t, parsed)
		if printed, ok := describe(parsed); ok {
			if again, _ := describe(parse(t, printed)); again != printed {
				t.Errorf("printed:\n%s\nread and printed again:\n%s", printed, again)
			}
		}
	})
}

// requireSound fails where a topology holds what none can, and counts it.
func requireSound(t *testing.T, parsed topology.Topology) {
	t.Helper()
	if len(parsed.Subtopologies)+len(parsed.GlobalStores) == 0 {
		t.Error("an empty topology without an error")
	}
	got, err := parsed.Pieces(topology.Known{ApplicationID: "app", Partitions: map[string]int{"in": 3, "app-x-repartition": 5}})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range parsed.Subtopologies {
		if len(s.Sources) == 0 {
			t.Errorf("sub-topology %s has no source", s.ID)
		}
		seen := map[string]bool{}
		for _, store := range s.Stores {
			if seen[store.Name] || len(store.Processors) == 0 {
				t.Errorf("store %q is a duplicate, or has no processor", store.Name)
			}
			seen[store.Name] = true
		}
		counted := got.Subtopologies[i]
		if counted.Tasks < 1 || counted.Tasks > 5 || counted.InputPartitions < 1 || counted.WrittenPartitions < 0 || len(counted.Stores) != len(s.Stores) {
			t.Errorf("sub-topology %s counts as %+v", s.ID, counted)
		}
	}
	if len(got.GlobalStores) != len(parsed.GlobalStores) {
		t.Errorf("%d global stores of %d", len(got.GlobalStores), len(parsed.GlobalStores))
	}
}
