// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/memplan"
)

// aPlan returns a plan with a line of each kind.
func aPlan() *memplan.Plan {
	line := func(region memplan.Region, pool memplan.Pool, bound, expected memplan.Bytes) memplan.Line {
		return memplan.Line{Region: region, Pool: pool, Name: string(region), Bound: bound, Expected: expected}
	}
	return &memplan.Plan{Limit: 1000, Heap: 300, Lines: []memplan.Line{
		line(memplan.RegionProducer, memplan.Heap, 100, 10), line(memplan.RegionHeapReserve, memplan.Heap, 200, 200),
		line(memplan.RegionMetaspace, memplan.Native, 120, 60), line(memplan.RegionBlockCache, memplan.Native, 200, 190),
		line(memplan.RegionThreadStacks, memplan.Native, 10, 5),
		line(memplan.RegionKernel, memplan.Native, 2, 2), line(memplan.RegionKernelObjects, memplan.Native, 3, 3),
		line(memplan.RegionSockets, memplan.Native, 4, 4), line(memplan.RegionPageCache, memplan.Native, 50, 50),
	}}
}

func TestCompareCountsAnonymousNativeLinesOnly(t *testing.T) {
	phases := []phaseResult{
		{Name: phaseLoad, peaks: peaks{Samples: 3, Anon: 500, Metaspace: 40, Cache: 100, Stores: 4}},
		{Name: phaseSteady, peaks: peaks{Samples: 5, Anon: 555, Metaspace: 35, Cache: 180, Stores: 9}},
	}
	s := &scenario{Name: "s", Title: "a scenario", Cache: 200}
	m := measurement{Scenario: "s", Heap: 300, HeapLive: 250, Phases: phases}
	got := compare(s, aPlan(), &m)
	want := result{
		measurement: m, Title: "a scenario", Cache: 200, Stores: 9, Bound: 330, Expected: 255, Peak: 255, HeapLines: 100, KernelBound: 9,
		Lines: []lineResult{
			{Region: memplan.RegionMetaspace, Name: "metaspace", Bound: 120, Expected: 60, Measured: 40},
			{Region: memplan.RegionBlockCache, Name: "block-cache", Bound: 200, Expected: 190, Measured: 180},
			{Region: memplan.RegionThreadStacks, Name: "thread-stacks", Bound: 10, Expected: 5},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(phaseResult{}, result{})); diff != "" {
		t.Error(diff)
	}
}

func resultOf(bound, expected, peak, heap, live, kills int64) result {
	return result{measurement: measurement{Heap: heap, HeapLive: live, OOMKills: kills}, Bound: bound, Expected: expected, Peak: peak}
}

func TestVerdict(t *testing.T) {
	tests := map[string]struct {
		result result
		want   string
	}{
		"everything is within its bound":        {resultOf(110, 100, 100, 5, 5, 0), "holds"},
		"expected is 10 % above":                {resultOf(200, 110, 100, 0, 0, 0), "holds"},
		"expected is far above":                 {resultOf(200, 125, 100, 0, 0, 0), "bound holds; expected peak +25 %"},
		"expected is far below":                 {resultOf(200, 80, 100, 0, 0, 0), "bound holds; expected peak -20 %"},
		"the peak is above the bound":           {resultOf(99, 95, 100, 0, 0, 0), "peak above the bound"},
		"an OOM kill":                           {resultOf(110, 100, 100, 0, 0, 1), "OOM-killed"},
		"a live set above the heap":             {resultOf(110, 100, 100, 5, 6, 0), "live set above the heap"},
		"no measurement":                        {resultOf(110, 100, 0, 0, 0, 0), "holds"},
		"a kill is worse than a high peak":      {resultOf(99, 0, 100, 0, 0, 1), "OOM-killed"},
		"a high peak is worse than a deviation": {resultOf(99, 50, 100, 0, 0, 0), "peak above the bound"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.result.verdict(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestNoBoundIsBelowAMeasurement compares the plans of the current planner with all measurements in docs/calibration.
func TestNoBoundIsBelowAMeasurement(t *testing.T) {
	all, err := compared("../../../docs/calibration")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there are no measurements")
	}
	for i := range all {
		r := &all[i]
		t.Run(r.Scenario, func(t *testing.T) {
			if r.Peak > r.Bound {
				t.Errorf("measured %s MiB, the bound is %s", mib(r.Peak), mib(r.Bound))
			}
			if r.HeapLive > r.Heap || r.OOMKills > 0 {
				t.Errorf("live set %s MiB of a heap of %s, %d OOM kills", mib(r.HeapLive), mib(r.Heap), r.OOMKills)
			}
		})
	}
}

func TestPeaksKeepTheLargestAndTheLeastPageCache(t *testing.T) {
	var p peaks
	p.add(&sample{memory: memory{Anon: 5, File: 30, Kernel: 2}, figures: figures{HeapUsed: 7, Threads: 20}, CacheUsage: 4})
	p.add(&sample{memory: memory{Anon: 9, File: 10, Kernel: 1}, figures: figures{HeapUsed: 6, Threads: 25}, Stores: 3})
	want := peaks{Samples: 2, Anon: 9, File: 30, LeastFile: 10, Kernel: 2, HeapUsed: 7, Threads: 25, Cache: 4, Stores: 3}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	other := peaks{Samples: 4, Anon: 2, File: 50, LeastFile: 20, Direct: 8}
	p.merge(&other)
	want.Samples = 6
	want.File = 50
	want.Direct = 8
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("merged: %s", diff)
	}
	empty := peaks{}
	empty.merge(&want)
	if diff := cmp.Diff(want, empty); diff != "" {
		t.Errorf("merged into nothing: %s", diff)
	}
	p.merge(&peaks{})
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("merged with nothing: %s", diff)
	}
}

func TestKeepReplacesTheResultOfTheSameName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "results.jsonl")
	name := func(m *measurement) string { return m.Scenario }
	for _, r := range []measurement{{Scenario: "a", Limit: 1}, {Scenario: "b", Limit: 2}, {Scenario: "a", Limit: 3}} {
		if err := keep(path, &r, name); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readLines[measurement](path)
	if err != nil {
		t.Fatal(err)
	}
	want := []measurement{{Scenario: "a", Limit: 3}, {Scenario: "b", Limit: 2}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(phaseResult{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadLinesRejectsAnotherType(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := writeLines(path, []string{"no result"}); err != nil {
		t.Fatal(err)
	}
	if _, err := readLines[measurement](path); err == nil {
		t.Error("a string was read as a measurement")
	}
}

func TestTrendHasARowForEachFullTenMinutes(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one := func(minutes float64, phase string, anon int64) sample {
		return sample{At: at.Add(time.Duration(minutes * float64(time.Minute))), Phase: phase, memory: memory{Anon: anon}, CacheUsage: 10, Stores: 2,
			figures: figures{Metaspace: 1, CodeCache: 2, Direct: 3, Processed: int64(minutes)}}
	}
	samples := []sample{
		one(0, phaseLoad, 900), one(1, phaseSteady, 110), one(6, phaseSteady, 130), one(10.9, phaseSteady, 120),
		one(11, phaseSteady, 140), one(20.9, phaseSteady, 160), one(22, phaseSteady, 500),
	}
	want := []trendResult{
		{From: 0, Mean: 20, Most: 30, Cache: 10, JVM: 6, Stores: 2, Processed: 10},
		{From: 10, Mean: 50, Most: 60, Cache: 10, JVM: 6, Stores: 2, Processed: 20},
	}
	if diff := cmp.Diff(want, trendOf(samples, 100)); diff != "" {
		t.Error(diff)
	}
	if rows := trendOf(nil, 100); len(rows) != 0 {
		t.Errorf("no samples gave %v", rows)
	}
}

func TestSlopeIsInBytesAnHourAfterSettling(t *testing.T) {
	rows := []trendResult{{From: 0, Mean: 1}, {From: 10, Mean: 500}, {From: 20, Mean: 1000}, {From: 50, Mean: 1030}, {From: 80, Mean: 1060}}
	if got := slope(rows); got < 59.9 || got > 60.1 {
		t.Errorf("got %v, want 60", got)
	}
	if got := slope(rows[:3]); got != 0 {
		t.Errorf("one row after settling: got %v, want 0", got)
	}
}

func TestStallsAreTheLongestTimeWithoutProgressInAPhase(t *testing.T) {
	s := newStalls()
	note := func(name string, at, processed int64) {
		s.note(name, &figures{At: at, Processed: processed, State: "RUNNING"})
	}
	s.enter("one", 0)
	note("a", 100, 1)
	note("a", 200, 2)
	note("b", 200, 1)
	note("a", 300, 2)
	note("a", 900, 2) // frozen
	note("a", 1000, 3)
	if got := s.in("one"); got != 800 {
		t.Errorf("in one: %d ms, want 800", got)
	}
	s.enter("two", 5000)
	note("b", 5400, 2) // the time before belongs to the previous phase
	note("a", 5100, 4)
	if got := s.in("two"); got != 400 {
		t.Errorf("in two: %d ms, want 400", got)
	}
	if got := s.in("three"); got != 0 {
		t.Errorf("an unknown phase: %d ms", got)
	}
}

func TestAStallWithARebalanceCountsSeparately(t *testing.T) {
	s := newStalls()
	s.enter("one", 0)
	for _, f := range []figures{
		{At: 100, Processed: 1, State: "RUNNING"}, {At: 200, Processed: 1, State: "RUNNING"}, {At: 300, Processed: 1, State: "REBALANCING"},
		{At: 900, Processed: 1, State: "RUNNING"}, {At: 1000, Processed: 2, State: "RUNNING"}, {At: 1300, Processed: 3, State: "RUNNING"},
	} {
		s.note("a", &f)
	}
	if got := s.in(inRebalance); got != 900 {
		t.Errorf("in the rebalance: %d ms, want 900", got)
	}
	if got := s.in("one"); got != 300 {
		t.Errorf("outside: %d ms, want 300", got)
	}
}
