// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitIsTheTopDownAlgorithm(t *testing.T) {
	w := with(keyValueApp(8), exactBatch, flags(t, "-Xmx1000m"))
	w.Threads = Known(2, App)
	w.Records.Average = Known(Bytes(1000), Measured)
	plan := PlanFor(w, onlyCap(2, 4, 6), DefaultPolicy(), 3*GiB)
	s := plan.Split
	restore := MiB*3 + 1000*1200 // three changelogs a thread, and a poll of records
	want := Split{
		Threads: 2, Process: 48 * MiB, Heap: 652 * MiB, HeapPerThread: 326 * MiB,
		Producer: 32 * MiB, Consumer: 2*MiB + restore, Buffer: 2 * 2000 * 1200,
		CacheRequired: (10*MiB).Scale(1064+350+1000+16, 1064).Scale(1, 2),
		Native:        3*GiB - (3*GiB).Scale(1, 10) - 1000*MiB,
	}
	want.Allocable = want.HeapPerThread - want.Producer - want.Consumer
	want.Cache = want.Allocable - want.Buffer
	want.JVM, want.State, want.StateRequired = s.JVM, want.Native-s.JVM, s.StateRequired
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("split (-want +got):\n%s", d)
	}
	state := rocksDB(plan)
	for _, region := range []Region{RegionStoreFixed, RegionCompaction, RegionRestoreBatches, RegionIterators, RegionAllocator} {
		state += plan.line(region).Bound
	}
	if s.StateRequired != state {
		t.Errorf("stores require %v, the lines have %v", s.StateRequired, state)
	}
}

func TestTheSplitAgreesWithTheVerdict(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		plan := PlanFor(w, g.load(w), g.policy(), g.anyLimit())
		s := plan.Split
		if got, want := s.State-s.StateRequired, plan.Limit-plan.Headroom-plan.Bound; got != want {
			t.Errorf("State leaves %v, the limit %v", got, want)
		}
		heapDeficit, slack := false, Bytes(6*s.Threads) // shares of a thread are rounded up
		for _, deficit := range plan.Deficits {
			heapDeficit = heapDeficit || deficit.Pool == Heap
		}
		if left := (s.Cache - s.CacheRequired) * Bytes(s.Threads); heapDeficit && left > slack || !heapDeficit && left < -slack {
			t.Errorf("Cache leaves %v, heap too small: %v", left, heapDeficit)
		}
	})
}

func TestNegativeCacheAndStateWarn(t *testing.T) {
	w := with(keyValueApp(4), flags(t, "-Xmx32m"))
	plan := PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 200*MiB)
	requireWarning(t, plan, "the heap may be too small: producers, consumers and record queues exceed it by 76.1 MiB per thread, even without a record cache")
	requireWarning(t, plan, "native memory may be too small: the JVM exceeds it by 171.7 MiB, even without a state store")
	if plan.Split.Cache >= 0 || plan.Split.State >= 0 {
		t.Errorf("split %+v, want both negative", plan.Split)
	}
}

func TestDeficitsNameTheCure(t *testing.T) {
	cases := map[string]struct {
		flags string
		limit Bytes
		want  string
	}{
		"a larger limit":    {limit: 512 * MiB, want: "the limit of 512 MiB is too small by"},
		"which one":         {limit: 512 * MiB, want: " MiB holds the load"},
		"a larger heap":     {flags: "-Xmx64m", limit: 2 * GiB, want: "the heap of 64 MiB is too small: its lines take"},
		"a lower share":     {flags: "-XX:MaxRAMPercentage=95", limit: 2 * GiB, want: "no limit holds the load, since the heap's percentage, headroom and page cache leave no room; lower MaxRAMPercentage"},
		"heap and limit":    {flags: "-Xmx64m", limit: 128 * MiB, want: "; the limit of 128 MiB is too small"},
		"a limit of 0":      {limit: 0, want: "the limit of 0 B is too small"},
		"a negative limit ": {limit: -5, want: "the limit of 0 B is too small"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for _, s := range PlanFor(with(keyValueApp(4), flags(t, c.flags)), onlyCap(1, 4, 4), DefaultPolicy(), c.limit).Deficits {
				texts = append(texts, s.Message)
			}
			if got := strings.Join(texts, "; "); !strings.Contains(got, c.want) {
				t.Errorf("deficits %q, want %q", got, c.want)
			}
		})
	}
}

func TestAHeapOfTheMissingSizeFits(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		w.Bounded = false // a larger heap leaves the configs as they are
		w.JVM.HeapMode, w.JVM.MaxHeap = HeapFixed, Known(Bytes(2+g.IntN(400))*MiB, App)
		load, policy := g.load(w), g.policy()
		plan := PlanFor(w, load, policy, 64*GiB)
		if plan.Verdict != HeapTooSmall || plan.Deficits[0].Missing > 16*GiB {
			return
		}
		w.JVM.MaxHeap.Value = (plan.Heap + plan.Deficits[0].Missing).alignUp(MiB)
		if got := PlanFor(w, load, policy, 64*GiB).Verdict; got != Fits {
			t.Errorf("a heap of %v misses %v, one of %v has the verdict %d", plan.Heap, plan.Deficits[0].Missing, w.JVM.MaxHeap.Value, got)
		}
		if w.JVM.MaxHeap.Value -= maxHeapAlignment; w.JVM.MaxHeap.Value > plan.Heap && PlanFor(w, load, policy, 64*GiB).Fits() {
			t.Errorf("a heap of %v misses %v, but %v fits", plan.Heap, plan.Deficits[0].Missing, w.JVM.MaxHeap.Value)
		}
	})
}

func TestPlannedHeap(t *testing.T) {
	planned := func(w *Workload) { w.JVM.HeapMode = HeapPlanned }
	live := func(b Bytes) func(*Workload) { return func(w *Workload) { w.Application.LiveSet = Known(b, Measured) } }
	pinned := func(w *Workload) { w.JVM.MaxHeap = Known(300*MiB, Spec) }
	one := onlyCap(1, 1, 1)
	cases := map[string]struct {
		w     Workload
		limit Bytes
		want  Bytes
	}{
		"not below the JVM's own heap":             {w: with(keyValueApp(1), planned), limit: 4 * GiB, want: GiB},
		"more for its lines":                       {w: with(keyValueApp(1), planned, live(900*MiB)), limit: 3 * GiB, want: 1376 * MiB},
		"less for the native side":                 {w: with(keyValueApp(1), planned, live(0)), want: 0},
		"as pinned":                                {w: with(keyValueApp(1), planned, pinned), limit: 4 * GiB, want: 300 * MiB},
		"never below its lines, whatever is short": {w: with(keyValueApp(1), planned, live(900*MiB)), limit: 256 * MiB, want: 1376 * MiB},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.limit == 0 {
				c.limit = RequiredLimit(c.w, one, DefaultPolicy())
			}
			plan := PlanFor(c.w, one, DefaultPolicy(), c.limit)
			if c.want > 0 && plan.Heap != c.want {
				t.Errorf("heap %v, want %v", plan.Heap, c.want)
			}
			if c.want == 0 && (!plan.Fits() || plan.Heap >= c.w.JVM.HeapUnder(c.limit)) {
				t.Errorf("heap %v, fits: %v; want it to fit with less than the JVM's %v", plan.Heap, plan.Fits(), c.w.JVM.HeapUnder(c.limit))
			}
		})
	}
}

func TestConfigs(t *testing.T) {
	options := func(plan Plan) string {
		var all []string
		for _, c := range plan.Configs {
			if c.Kind == JVMOption {
				all = append(all, strings.TrimSuffix(c.Name+"="+c.Value, "=")+" "+c.From.String())
			}
		}
		return strings.Join(all, ", ")
	}
	cases := map[string]struct {
		change func(*JVM)
		want   string
	}{
		"a heap of the JVM's own is left alone": {change: func(*JVM) {}, want: ""},
		"a heap that the application set, too":  {change: func(j *JVM) { j.HeapMode, j.MaxHeap = HeapFixed, Known(GiB, App) }, want: ""},
		"a planned heap is a percentage of the planned limit": {
			change: func(j *JVM) { j.HeapMode = HeapPlanned },
			want:   "-XX:+IgnoreUnrecognizedVMOptions derived, -XX:MaxRAM=4294967296 derived, -XX:MaxRAMPercentage=25.0000 derived, -XX:MinRAMPercentage=25.0000 derived",
		},
		"JDK 27 has no MaxRAM": {
			change: func(j *JVM) { j.HeapMode, j.Version = HeapPlanned, Known(27, Measured) },
			want:   "-XX:+IgnoreUnrecognizedVMOptions derived, -XX:MaxRAMPercentage=25.0000 derived, -XX:MinRAMPercentage=25.0000 derived",
		},
		"a pinned heap": {
			change: func(j *JVM) { j.HeapMode, j.MaxHeap = HeapPlanned, Known(2*GiB, Spec) },
			want:   "-XX:+IgnoreUnrecognizedVMOptions spec, -XX:MaxRAM=4294967296 spec, -XX:MaxRAMPercentage=50.0000 spec, -XX:MinRAMPercentage=50.0000 spec",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := keyValueApp(1)
			c.change(&w.JVM)
			if got := options(PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 4*GiB)); got != c.want {
				t.Errorf("options %q, want %q", got, c.want)
			}
		})
	}
	t.Run("no options without a limit", func(t *testing.T) {
		w := keyValueApp(1)
		w.JVM.HeapMode = HeapPlanned
		if got := options(PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 0)); got != "" {
			t.Errorf("options %q, want none", got)
		}
	})
}

func TestWarnings(t *testing.T) {
	store := func(s Store) func(*Workload) { return func(w *Workload) { w.Subtopologies[0].Stores = []Store{s} } }
	cases := map[string]struct {
		w    Workload
		want string
	}{
		"buffer.memory below batch.size": {w: with(keyValueApp(1), func(w *Workload) { w.Clients.Producer.BufferMemory = Known(KiB, App) }), want: "buffer.memory of 1 KiB is less than batch.size of 16 KiB"},
		"a record above buffer.memory":   {w: with(keyValueApp(1), func(w *Workload) { w.Records.Largest = Known(64*MiB, Spec) }), want: "RecordTooLargeException"},
		"a producer for each task":       {w: with(keyValueApp(1), version(3, 4, 0), func(w *Workload) { w.Guarantee = Known(ExactlyOnceV1, App) }), want: "use exactly_once_v2"},
		"in-memory stores of no size":    {w: with(keyValueApp(1), store(Store{InMemory: true})), want: "stores of unknown size on the heap (1) are not counted"},
		"suppress buffers of no size":    {w: with(keyValueApp(1), store(Store{Kind: Suppress})), want: "stores of unknown size on the heap (1) are not counted"},
		"stores of no known size":        {w: keyValueApp(1), want: "stores of unknown size (1): their index"},
		"a state directory in memory":    {w: with(keyValueApp(1), func(w *Workload) { w.StateDir.InMemory = true }), want: "the state directory is in memory, and its stores of unknown size (1) are not counted"},
		"glibc's arenas":                 {w: keyValueApp(1), want: "up to 124.7 MiB more than it accounts for; set MALLOC_ARENA_MAX=2 or load jemalloc"},
		"jemalloc, perhaps": {
			w: with(keyValueApp(1), func(w *Workload) { w.Allocator = Known(Jemalloc, Assumed) }), want: "jemalloc is configured but was not found in the process",
		},
		"glibc's arenas, surely": {w: with(keyValueApp(1), malloc(Glibc)), want: "load jemalloc to save up to 124.7 MiB"},
		"uncommitted writes have no end": {w: with(keyValueApp(1), version(4, 4, 0), func(w *Workload) {
			w.Clients.TransactionalStores, w.Clients.Uncommitted = Known(true, App), Known(Bytes(-1), App)
		}), want: "statestore.uncommitted.max.bytes is -1"},
		"2.2 leaks":                   {w: with(keyValueApp(1), version(2, 2, 0)), want: "KAFKA-8637"},
		"2.4 with compression":        {w: with(keyValueApp(1), version(2, 4, 1), codec(LZ4, 0)), want: "KAFKA-9700"},
		"2.5 with zstd":               {w: with(keyValueApp(1), version(2, 5, 1), codec(Zstd, 3)), want: "KAFKA-9703"},
		"2.7 leaks":                   {w: with(keyValueApp(1), version(2, 7, 1)), want: "KAFKA-12500"},
		"4.1.0 leaks":                 {w: with(keyValueApp(1), version(4, 1, 0)), want: "KAFKA-19748: range scans, session and sliding windows and joins leak native memory; upgrade to 4.1.1"},
		"4.2.0 opens old directories": {w: with(keyValueApp(1), version(4, 2, 0), func(w *Workload) { w.StateDir.Persistent = true }), want: "KAFKA-17411"},
		"4.2.0 leaks":                 {w: with(keyValueApp(1), version(4, 2, 0)), want: "KAFKA-20398"},
		"4.3.0 leaks":                 {w: with(keyValueApp(1), version(4, 3, 0)), want: "upgrade to 4.3.1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			requireWarning(t, PlanFor(c.w, onlyCap(1, 1, 1), DefaultPolicy(), 2*GiB), c.want)
		})
	}
}

func TestNoWarningWithoutCause(t *testing.T) {
	w := with(keyValueApp(1), version(4, 4, 0))
	w.Subtopologies[0].Stores[0].Size = Known(MiB, Measured)
	w.Allocator = Known(Jemalloc, Measured)
	if plan := PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 4*GiB); len(plan.Warnings) > 0 || !plan.Fits() {
		t.Errorf("warnings %q, verdict %d", plan.Warnings, plan.Verdict)
	}
	for _, compression := range []Compression{"", NoCompression} {
		w := with(keyValueApp(1), version(2, 4, 1), codec(compression, 0))
		for _, warning := range PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 4*GiB).Warnings {
			if strings.Contains(warning, "KAFKA-97") {
				t.Errorf("compression %q: %s", compression, warning)
			}
		}
	}
}

func TestPinsReplaceLines(t *testing.T) {
	policy := DefaultPolicy()
	policy.Pins = map[Region]Bytes{RegionMetaspace: 77 * MiB, RegionPageCache: 99 * MiB, RegionBlockCache: 11 * MiB}
	plan := PlanFor(keyValueApp(4), onlyCap(1, 4, 4), policy, 2*GiB)
	for region, want := range policy.Pins {
		got := plan.line(region)
		if got.Bound != want || got.Expected != want || got.From != Spec {
			t.Errorf("%s: %+v, want %v from spec", region, got, want)
		}
	}
	if without := RequiredLimit(keyValueApp(4), onlyCap(1, 4, 4), DefaultPolicy()); plan.RequiredLimit >= without {
		t.Errorf("required %v with pins, %v without", plan.RequiredLimit, without)
	}
}

func TestTheRequiredLimitCrossesTheChangeOfCollector(t *testing.T) {
	w := with(keyValueApp(8), flags(t, "-Xmx512m"))
	w.Application.Native = Known(Bytes(0), Measured)
	load := onlyCap(1, 4, 4)
	serial := RequiredLimit(w, load, DefaultPolicy())
	w.Application.Native = Known((1785*MiB-serial).Scale(85, 100), Measured) // so that it just fits below 1792 MiB
	below := RequiredLimit(w, load, DefaultPolicy())
	if below < 1750*MiB || below >= serverClass {
		t.Fatalf("required %v, the test wants it just below %v", below, serverClass)
	}
	above := newProcess(&w, load, DefaultPolicy()).atDefaults().requiredLimit(serverClass)
	if above <= serverClass {
		t.Errorf("required %v from %v on, but G1 takes more than Serial", above, serverClass)
	}
	plan := PlanFor(w, load, DefaultPolicy(), serverClass)
	if plan.Fits() || plan.Collector != G1 || plan.RequiredLimit != above {
		t.Errorf("at %v: verdict %d with %v, required %v, want %v", serverClass, plan.Verdict, plan.Collector, plan.RequiredLimit, above)
	}
}

func TestSurvives(t *testing.T) {
	w := keyValueApp(12)
	w.Protocol = Known(Streams, Measured)
	a := evenly(w, 3, 1)
	required := func(failures int) Bytes { return RequiredLimit(w, loadAfter(w, a, "pod-0", failures), DefaultPolicy()) }
	limits := func(limit Bytes) map[string]Bytes {
		all := map[string]Bytes{}
		for _, pod := range a.Pods {
			all[pod.Name] = limit
		}
		return all
	}
	cases := map[string]struct {
		limits map[string]Bytes
		want   int
	}{
		"not even now":                      {limits: limits(required(0) - MiB), want: -1},
		"no failure":                        {limits: limits(required(0)), want: 0},
		"one failure":                       {limits: limits(required(1)), want: 1},
		"two failures":                      {limits: limits(required(2)), want: 2},
		"pods without a limit tolerate all": {limits: nil, want: 2},
		"one pod with a small limit":        {limits: map[string]Bytes{"pod-1": required(1)}, want: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := survives(w, a, DefaultPolicy(), c.limits); got != c.want {
				t.Errorf("tolerates %d, want %d", got, c.want)
			}
		})
	}
	if got := survives(w, Assignment{}, DefaultPolicy(), nil); got != -1 {
		t.Errorf("no pods tolerate %d failures, want -1", got)
	}
}

func TestBootstrapRequiresOnlyTheLimit(t *testing.T) {
	jvm := NewJVM()
	jvm.HeapMode = HeapPlanned
	for _, limit := range []Bytes{768 * MiB, 1 * GiB, 4 * GiB} {
		plan := Bootstrap(jvm, DefaultPolicy(), limit)
		if !plan.Fits() {
			t.Errorf("%v: %v", limit, plan.Deficits)
		}
		if plan.Heap < jvm.HeapUnder(limit).Scale(9, 10) && limit > GiB {
			t.Errorf("%v: heap %v, the JVM takes %v", limit, plan.Heap, jvm.HeapUnder(limit))
		}
		if unused := plan.Limit - plan.Headroom - plan.Bound; unused > 2*MiB {
			t.Errorf("%v: %v is left over, want it in the cache", limit, unused)
		}
	}
}

func ExamplePlanFor() {
	w := NewWorkload(Known(Version{4, 4, 0}, Spec))
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 12, InputPartitions: 1, Stores: []Store{{Kind: TimestampedKeyValue, Caching: true}}}}
	plan := PlanFor(w, ColdStart(w, 1), DefaultPolicy(), 1*GiB)
	fmt.Println(plan.Fits(), plan.RequiredLimit > 1*GiB)
	// Output: false true
}
