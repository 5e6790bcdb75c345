// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/memplan"
)

func TestTableIsAligned(t *testing.T) {
	rows := table{head: []string{"name", "MiB"}}
	rows.add("a long name", "7")
	rows.add("b", "12345")
	want := "" +
		"| name        |   MiB |\n" +
		"|-------------|------:|\n" +
		"| a long name |     7 |\n" +
		"| b           | 12345 |\n"
	if diff := cmp.Diff(want, rows.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPartOfADocumentIsReplaced(t *testing.T) {
	begin, end := marks("one")
	document := "before\n" + begin + "old\n" + end + "after\n"
	once, err := replacePart(document, "one", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + begin + "\nnew\n\n" + end + "after\n"; once != want {
		t.Errorf("got %q, want %q", once, want)
	}
	if twice, err := replacePart(once, "one", "new\n"); err != nil || twice != once {
		t.Errorf("a second time changed it: %q, %v", twice, err)
	}
	if _, err := replacePart(document, "two", "new"); err == nil {
		t.Error("a missing part was replaced")
	}
}

func TestTheDocumentIsGeneratedFromTheResults(t *testing.T) {
	const root = "../../../docs/"
	text, err := os.ReadFile(root + "calibration.md")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "calibration.md")
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&options{document: copied, results: root + "calibration"}).writeTables(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(got)); diff != "" {
		t.Errorf("run `make calibrate-table`: %s", diff)
	}
}

func TestScenarioTablesShowSumsAndLines(t *testing.T) {
	folder := t.TempDir()
	const mebi = int64(memplan.MiB)
	m := measurement{
		Scenario: "session", Heap: 200 * mebi, HeapLive: 90 * mebi,
		Phases: []phaseResult{
			{Name: phaseLoad, peaks: peaks{Samples: 1, Anon: 1}},
			{Name: phaseRestore, peaks: peaks{Samples: 1, Anon: 401 * mebi, Kernel: 3 * mebi, Stores: 29, Metaspace: 31 * mebi}},
		},
	}
	if err := keep(filepath.Join(folder, "scenarios.jsonl"), &m, func(m *measurement) string { return m.Scenario }); err != nil {
		t.Fatal(err)
	}
	got, err := scenarioTables(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| sessions ", " 29 |", " 201 |", "failure and restore", " 90 |", "| 31 of ", " 3 of "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestThroughputTableHasTheMedianOfTheRatios(t *testing.T) {
	folder := t.TempDir()
	all := []throughputResult{{Mode: withDefaults, Pair: 0, HotPart: 0.5, Rate: 1}}
	for pair, ratio := range []float64{0.9, 1.1, 0.98} {
		all = append(all, throughputResult{Mode: withDefaults, Pair: pair + 1, HotPart: 0.5, Rate: 1000, PerCPU: 100},
			throughputResult{Mode: bounded, Pair: pair + 1, HotPart: 0.5, Rate: 1000 * ratio, PerCPU: 99, Keys: 10, Hot: 5})
	}
	if err := writeLines(filepath.Join(folder, "throughput.jsonl"), all); err != nil {
		t.Fatal(err)
	}
	got, err := throughputTable(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Hot set of 0.5 times the cache: median ratio 0.98, per CPU second 0.99; the target is at least 0.95."; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestCascadeTableShowsResultsAndEvents(t *testing.T) {
	folder := t.TempDir()
	all := []cascadeResult{
		{Mode: withDefaults, OOMKilled: 2, Instances: 3, Watched: 80, Events: []event{{Second: 12, What: "cascade-0 is OOM-killed"}}},
		{Mode: bounded, Instances: 3, Watched: 600, Rebalance: 14, Stall: 900, StallRebalance: 4200},
	}
	if err := writeLines(filepath.Join(folder, "cascade.jsonl"), all); err != nil {
		t.Fatal(err)
	}
	got, err := cascadeTable(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 of 3", "- 12: cascade-0 is OOM-killed", "never", "14 s", "4.2 s", "0.9 s"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if all[0].stable() || !all[1].stable() {
		t.Errorf("stable = %t and %t, want false and true", all[0].stable(), all[1].stable())
	}
}

func TestStartTableHasMedians(t *testing.T) {
	folder := t.TempDir()
	var all []startResult
	for _, first := range []int64{100, 300, 200} {
		all = append(all, startResult{Mode: withDefaults, First: first, Metaspace: 32 << 20}, startResult{Mode: bounded, First: first + 50})
	}
	if err := writeLines(filepath.Join(folder, "start.jsonl"), all); err != nil {
		t.Fatal(err)
	}
	got, err := startTable(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| default RocksDB memory |        200 |", "|        250 |", "32.0"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 2: {3, 1, 2}, 2.5: {4, 1, 2, 3}, 7: {7}} {
		if got := median(values); got != want {
			t.Errorf("of %v: %v, want %v", values, got, want)
		}
	}
}
