// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The heaps were read from OpenJDK 17 and Temurin 25 with -XX:MaxRAM=<limit> and -XX:+PrintFlagsFinal.
func TestHeapUnder(t *testing.T) {
	cases := map[string]struct {
		flags string
		limit Bytes
		want  Bytes
	}{
		"128 MiB: half of it":                       {limit: 128 * MiB, want: 67_108_864},
		"192 MiB: half of it":                       {limit: 192 * MiB, want: 100_663_296},
		"256 MiB: the built-in heap, not a quarter": {limit: 256 * MiB, want: 132_120_576},
		"300 MiB":                              {limit: 300 * MiB, want: 132_120_576},
		"384 MiB":                              {limit: 384 * MiB, want: 132_120_576},
		"512 MiB: a quarter from here on":      {limit: 512 * MiB, want: 134_217_728},
		"1 GiB":                                {limit: 1 * GiB, want: 256 * MiB},
		"2 GiB":                                {limit: 2 * GiB, want: 512 * MiB},
		"4 GiB":                                {limit: 4 * GiB, want: 1024 * MiB},
		"75 % of 256 MiB":                      {flags: "-XX:MaxRAMPercentage=75", limit: 256 * MiB, want: 192 * MiB},
		"75 % of a small container is ignored": {flags: "-XX:MaxRAMPercentage=75", limit: 128 * MiB, want: 64 * MiB},
		"75 % of a decimal 2G is rounded up":   {flags: "-XX:MaxRAMPercentage=75", limit: 2_000_000_000, want: 1_501_560_832},
		"33 % of MaxRAM=760m on any host":      {flags: "-XX:MaxRAM=760m -XX:MaxRAMPercentage=33", limit: 64 * GiB, want: 252 * MiB},
		"-Xms above the percentage":            {flags: "-XX:MaxRAM=760m -XX:MaxRAMPercentage=33 -Xms400m", limit: GiB, want: 400 * MiB},
		"-Xmx wins over percentages":           {flags: "-XX:MaxRAMPercentage=33 -Xmx512m", limit: GiB, want: 512 * MiB},
		"no limit":                             {limit: 0, want: 0},
		"no percentage":                        {flags: "-XX:MaxRAMPercentage=0 -XX:MinRAMPercentage=0", limit: GiB, want: 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			jvm, err := ParseJVMFlags([]string{c.flags})
			if err != nil {
				t.Fatal(err)
			}
			if got := jvm.HeapUnder(c.limit); got != c.want {
				t.Errorf("heap %d, want %d", got, c.want)
			}
		})
	}
}

func TestHeapRangeHoldsTheHeapAndGrowsWithTheLimit(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		jvm := g.jvm()
		if jvm.HeapMode == HeapPlanned {
			jvm.HeapMode = HeapPercent
		}
		limit, low, high := Bytes(0), Bytes(0), Bytes(0)
		for range 200 {
			limit += Bytes(g.Int64N(int64(200 * MiB)))
			heap := jvm.HeapUnder(limit)
			l, h := jvm.heapRange(limit)
			if heap < l || heap > h {
				t.Fatalf("limit %v: heap %v is not within %v and %v", limit, heap, l, h)
			}
			if l < low || h < high {
				t.Fatalf("limit %v: range %v to %v falls below %v to %v", limit, l, h, low, high)
			}
			low, high = l, h
		}
	})
}

// A container whose MinRAMPercentage grows past the JVM's built-in heap gets MaxRAMPercentage, and so a much larger heap: the plan counts
// that heap before, so that a raise across the change does not turn a plan that fits into one that does not.
func TestTheJumpOfTheHeapDoesNotLowerTheVerdict(t *testing.T) {
	w := with(release(4, 2, 1), flags(t, "-XX:MinRAMPercentage=10 -XX:MaxRAMPercentage=75"))
	w.Application.LiveSet = Fact[Bytes]{}
	if small, large := w.JVM.HeapUnder(1240*MiB), w.JVM.HeapUnder(1260*MiB); small > 125*MiB || large < 900*MiB {
		t.Fatalf("heaps of %v and %v, want the jump between them", small, large)
	}
	policy := onlyNative(map[Region]Bytes{RegionMetaspace: 400 * MiB})
	fit := false
	for limit := 1000 * MiB; limit < 1600*MiB; limit += MiB {
		plan := PlanFor(w, Load{Threads: 1}, policy, limit)
		if fit && plan.Verdict == LimitTooSmall {
			t.Fatalf("%v is too small, less was not", limit)
		}
		fit = plan.Verdict != LimitTooSmall
	}
}

func TestPercentOf(t *testing.T) {
	for percent, want := range map[float64]Bytes{-1: 0, 0: 0, 25: 250, 100: 1000, 700: 1000, math.Inf(1): 1000} {
		if got := percentOf(1000, percent); got != want {
			t.Errorf("%v %% = %d, want %d", percent, got, want)
		}
	}
	if got := percentOf(1000, math.NaN()); got != 0 {
		t.Errorf("NaN %% = %d, want 0", got)
	}
	if got := percentOf(MaxBytes, 100); got != MaxBytes {
		t.Errorf("all of the largest amount = %d", got)
	}
}

func TestAlignmentOfLargeHeaps(t *testing.T) {
	for heap, want := range map[Bytes]Bytes{GiB: 2 * MiB, 4 * GiB: 2 * MiB, 4318 * MiB: 4 * MiB, 8428 * MiB: 8 * MiB, 31 * GiB: 16 * MiB, 500 * GiB: 32 * MiB} {
		if got := alignmentOf(heap); got != want {
			t.Errorf("a heap of %v is aligned to %v, want %v", heap, got, want)
		}
	}
}

func TestCollector(t *testing.T) {
	cases := map[string]struct {
		flags string
		limit Bytes
		want  Collector
	}{
		"below 1792 MiB":           {limit: 1791 * MiB, want: Serial},
		"from 1792 MiB and 2 CPUs": {limit: 1792 * MiB, want: G1},
		"one CPU":                  {flags: "-XX:ActiveProcessorCount=1", limit: 8 * GiB, want: Serial},
		"the application's choice": {flags: "-XX:+UseZGC", limit: 1 * GiB, want: ZGC},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			jvm, err := ParseJVMFlags([]string{c.flags})
			if err != nil {
				t.Fatal(err)
			}
			if got := jvm.collectorFor(c.limit); got != c.want {
				t.Errorf("collector %v, want %v", got, c.want)
			}
		})
	}
}

func TestCollectorOverheadIsNotBelowTheMeasuredSize(t *testing.T) {
	const kb, mb = Bytes(1024), MiB
	cases := map[string]struct {
		collector      Collector
		heap, measured Bytes
	}{
		"G1, 256 MiB":     {collector: G1, heap: 256 * MiB, measured: 49_518 * kb},
		"G1, 1 GiB":       {collector: G1, heap: GiB, measured: 806 * mb / 10},
		"G1, 4 GiB":       {collector: G1, heap: 4 * GiB, measured: 207 * mb},
		"Parallel, 1 GiB": {collector: Parallel, heap: GiB, measured: 49 * mb},
		"Parallel, 4 GiB": {collector: Parallel, heap: 4 * GiB, measured: 167 * mb},
		"Serial, 1 GiB":   {collector: Serial, heap: GiB, measured: 35 * mb / 10},
		"Serial, 4 GiB":   {collector: Serial, heap: 4 * GiB, measured: 14 * mb},
		"ZGC":             {collector: ZGC, heap: GiB, measured: 67 * mb},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := collectorOverhead(c.collector, c.heap)
			if got < c.measured || got > 2*c.measured {
				t.Errorf("%v, measured %v", got, c.measured)
			}
		})
	}
}

func TestParseJVMFlags(t *testing.T) {
	cases := map[string]struct {
		flags   []string
		change  func(*JVM)
		wantErr string
	}{
		"no flags":                    {flags: nil, change: func(*JVM) {}},
		"unknown flags are the JVM's": {flags: []string{"-XX:+UseCompressedOops", "-Dfoo=bar", "java", "-jar app.jar"}, change: func(*JVM) {}},
		"the last one wins":           {flags: []string{"-Xmx512m", "-Xmx1g"}, change: func(j *JVM) { j.HeapMode, j.MaxHeap = HeapFixed, Known(GiB, App) }},
		"several in one string": {flags: []string{`-Xss512k "-Xmx512M"`}, change: func(j *JVM) {
			j.HeapMode, j.MaxHeap, j.ThreadStack = HeapFixed, Known(512*MiB, App), Known(512*KiB, App)
		}},
		"plain bytes":                        {flags: []string{"-XX:MaxHeapSize=1048576"}, change: func(j *JVM) { j.HeapMode, j.MaxHeap = HeapFixed, Known(MiB, App) }},
		"terabytes":                          {flags: []string{"-XX:MaxRAM=2t"}, change: func(j *JVM) { j.MaxRAM = Known(2048*GiB, App) }},
		"initial heap":                       {flags: []string{"-XX:InitialHeapSize=64m"}, change: func(j *JVM) { j.InitialHeap = Known(64*MiB, App) }},
		"percentages":                        {flags: []string{"-XX:MaxRAMPercentage=50.5", "-XX:MinRAMPercentage=60"}, change: func(j *JVM) { j.MaxRAMPercentage, j.MinRAMPercentage = Known(50.5, App), Known(60.0, App) }},
		"direct memory":                      {flags: []string{"-XX:MaxDirectMemorySize=128M"}, change: func(j *JVM) { j.MaxDirect = Known(128*MiB, App) }},
		"stack size in KiB":                  {flags: []string{"-XX:ThreadStackSize=512"}, change: func(j *JVM) { j.ThreadStack = Known(512*KiB, App) }},
		"processors":                         {flags: []string{"-XX:ActiveProcessorCount=4"}, change: func(j *JVM) { j.CPUs = Known(4, App) }},
		"the default of processors":          {flags: []string{"-XX:ActiveProcessorCount=-1"}, change: func(*JVM) {}},
		"a cap below the assumed size":       {flags: []string{"-XX:MaxMetaspaceSize=96m", "-XX:ReservedCodeCacheSize=64m"}, change: func(j *JVM) { j.Metaspace, j.CodeCache = Known(96*MiB, App), Known(64*MiB, App) }},
		"a cap above is no use":              {flags: []string{"-XX:MaxMetaspaceSize=1g", "-XX:ReservedCodeCacheSize=512m"}, change: func(*JVM) {}},
		"a collector":                        {flags: []string{"-XX:+UseG1GC"}, change: func(j *JVM) { j.Collector = Known(G1, App) }},
		"a collector switched off":           {flags: []string{"-XX:+UseG1GC", "-XX:-UseG1GC"}, change: func(*JVM) {}},
		"the same collector twice":           {flags: []string{"-XX:+UseZGC", "-XX:+UseZGC"}, change: func(j *JVM) { j.Collector = Known(ZGC, App) }},
		"two collectors":                     {flags: []string{"-XX:+UseG1GC", "-XX:+UseSerialGC"}, change: func(j *JVM) { j.Collector = Known(Serial, App) }, wantErr: "keep one"},
		"initial above largest heap":         {flags: []string{"-Xms2g", "-Xmx1g"}, change: func(j *JVM) { j.HeapMode, j.MaxHeap, j.InitialHeap = HeapFixed, Known(GiB, App), Known(2*GiB, App) }, wantErr: "lower -Xms or raise -Xmx"},
		"a size that is none":                {flags: []string{"-Xmx1.5g"}, change: func(*JVM) {}, wantErr: `JVM flag -Xmx1.5g: "1.5g" must be a size such as 512m`},
		"a unit of Kubernetes":               {flags: []string{"-Xmx2Gi"}, change: func(*JVM) {}, wantErr: `JVM flag -Xmx2Gi: "2Gi" must be a size such as 512m`},
		"an exponent":                        {flags: []string{"-XX:MaxDirectMemorySize=1e9"}, change: func(*JVM) {}, wantErr: `JVM flag -XX:MaxDirectMemorySize=1e9: "1e9" must be a size`},
		"a negative percentage":              {flags: []string{"-XX:MinRAMPercentage=-5"}, change: func(*JVM) {}, wantErr: "must be a percentage of 0 to 100"},
		"three collectors, one switched off": {flags: []string{"-XX:+UseZGC", "-XX:-UseZGC", "-XX:+UseG1GC", "-XX:+UseParallelGC"}, change: func(j *JVM) { j.Collector = Known(Parallel, App) }, wantErr: "-XX:+UseG1GC and -XX:+UseParallelGC choose several garbage collectors"},
		"an empty size":                      {flags: []string{"-Xmx"}, change: func(*JVM) {}, wantErr: "must be a size"},
		"a negative size":                    {flags: []string{"-Xss-1m"}, change: func(*JVM) {}, wantErr: "must be a size"},
		"a percentage that is none":          {flags: []string{"-XX:MaxRAMPercentage=NaN"}, change: func(*JVM) {}, wantErr: "must be a percentage of 0 to 100"},
		"a percentage that is too high":      {flags: []string{"-XX:MaxRAMPercentage=101"}, change: func(*JVM) {}, wantErr: "must be a percentage"},
		"processors that are none":           {flags: []string{"-XX:ActiveProcessorCount=all"}, change: func(*JVM) {}, wantErr: "must be a number of processors"},
		"a size beyond all sizes":            {flags: []string{"-XX:MaxRAM=9223372036854775807g"}, change: func(j *JVM) { j.MaxRAM = Known(MaxBytes, App) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := NewJVM()
			c.change(&want)
			got, err := ParseJVMFlags(c.flags)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("JVM (-want +got):\n%s", d)
			}
			requireError(t, err, c.wantErr)
		})
	}
}

// requireError fails unless the error contains the text; no text wants no error.
func requireError(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("error %v, want one with %q", err, text)
	}
}

func TestProcessLines(t *testing.T) {
	load := onlyCap(2, 4, 6)
	measured := func(w *Workload) { w.JVM.Metaspace = Known(83*MiB, Measured) }
	stack := func(w *Workload) { w.JVM.ThreadStack = Known(128*KiB, App) }
	bigStack := func(w *Workload) { w.JVM.ThreadStack = Known(2*MiB, App) }
	runLineCases(t, map[string]lineCase{
		"metaspace as assumed":                {w: keyValueApp(8), load: load, region: RegionMetaspace, want: 120 * MiB, wantExpected: 48 * MiB, wantFrom: Assumed},
		"metaspace as measured, and symbols":  {w: with(keyValueApp(8), measured), load: load, region: RegionMetaspace, want: 103 * MiB, wantExpected: 103 * MiB, wantFrom: Measured},
		"code cache as assumed":               {w: keyValueApp(8), load: load, region: RegionCodeCache, want: 100 * MiB, wantExpected: 24 * MiB, wantFrom: Assumed},
		"four Java threads a stream thread":   {w: keyValueApp(8), load: load, region: RegionThreadStacks, want: 36 * 256 * KiB, wantExpected: 36 * 64 * KiB, wantFrom: Assumed},
		"stacks that are small":               {w: with(keyValueApp(8), stack), load: load, region: RegionThreadStacks, want: 36 * 128 * KiB, wantFrom: App},
		"stacks are not touched to their end": {w: with(keyValueApp(8), bigStack), load: load, region: RegionThreadStacks, want: 36 * 256 * KiB, wantFrom: Assumed},
		"JIT arenas":                          {w: keyValueApp(8), load: load, region: RegionCompiler, want: 32 * MiB, wantExpected: 20 * MiB, wantFrom: Assumed},
		"page tables":                         {w: keyValueApp(8), load: load, region: RegionKernel, want: 8 * MiB, wantFrom: Derived},
		"page cache: 5 % of a large limit":    {w: keyValueApp(8), load: load, region: RegionPageCache, want: 214_748_365, wantFrom: Assumed},
	})
}
