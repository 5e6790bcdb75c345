// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"strings"
	"testing"
)

// absurd is a workload with numbers of the fuzzer.
func absurd(a, b, c int64, percent float64) (Workload, Load, Policy) {
	n, m := int(a), int(c)
	size := Known(Bytes(b), App)
	w := NewWorkload(Known(Version{n % 5, m % 9, int(b % 3)}, App))
	w.Threads, w.Standbys, w.WarmUps, w.Brokers = Known(n, App), Known(m, App), Known(n, App), Known(m, App)
	w.Subtopologies = []Subtopology{
		{ID: "0", Tasks: n, InputPartitions: m, WrittenPartitions: n, Stores: []Store{
			{Kind: Window, RetentionMs: Known(a, App), SegmentIntervalMs: Known(b, App), Size: size},
			{Kind: Suppress, MaxSuppress: size}, {InMemory: true, Size: size}, {Kind: StoreKind(c), Caching: true},
		}},
		{ID: "1", Tasks: m, InputPartitions: n},
	}
	w.GlobalStores = []Store{{Partitions: n, Size: size}}
	w.Records = Records{Average: size, Largest: size, LargestBatch: Known(Bytes(c), App)}
	w.Clients.Producer = Producer{BufferMemory: size, BatchSize: Known(Bytes(c), App), MaxRequestSize: size, Compression: Known(Zstd, App), CompressionLevel: Known(n, App), SendBuffer: size}
	w.Clients.Main = Consumer{FetchMaxBytes: size, MaxPartitionFetchBytes: Known(Bytes(a), App), MaxPollRecords: Known(m, App), ReceiveBuffer: size}
	w.Clients.RecordCache, w.Clients.Uncommitted, w.Clients.TransactionalStores = size, size, Known(true, App)
	w.Clients.BufferedRecordsPerPartition = Known(n, App)
	w.RocksDB = RocksDB{BlockCache: size, WriteBuffer: Known(Bytes(c), App), MaxWriteBuffers: Known(n, App), SharedCache: Known(Bytes(a), App), WriteBufferLimit: size,
		FormatUpgrade: Known(a%3 == 0, App), OpenIterators: Known(n, App)}
	w.Allocator = Known(Allocator(uint8(b)), App)
	w.Application = ApplicationMemory{LiveSet: size, Native: Known(Bytes(c), App)}
	w.JVM = JVM{HeapMode: HeapMode(uint8(a) % 4), MaxHeap: size, InitialHeap: Known(Bytes(c), App), MaxRAM: Known(Bytes(a), App), MaxRAMPercentage: Known(percent, App),
		MinRAMPercentage: Known(-percent, App), Collector: Known(Collector(uint8(b)), App), CPUs: Known(n, App), Metaspace: size, MaxDirect: size, ThreadStack: size}
	w.Bounded, w.StateDir = a%2 == 0, StateDir{InMemory: b%2 == 0, Persistent: c%2 == 0}
	w.Protocol = Known(Protocol(uint8(c)%3), App)
	if c%5 == 0 { // left to the plan
		w.RocksDB, w.Clients.RecordCache.From, w.Clients.Producer.BufferMemory.From = RocksDB{}, Default, Default
		w.Clients.Main.FetchMaxBytes.From, w.Clients.Main.MaxPollRecords.From, w.Application.LiveSet.From = Default, Default, Measured
	}
	if b%7 == 0 {
		w.Others = []Client{{ApplicationID: "other", Workload: w, Load: Load{Threads: m, Active: n, Total: m, Caps: []Cap{{Active: m, Total: n}}}}}
	}
	load := Load{Threads: n, Active: m, Total: n, Caps: []Cap{{Active: n, Total: m}}}
	policy := Policy{HeadroomPercent: n, PageCachePercent: m, PageCacheFloor: Bytes(b), Pins: map[Region]Bytes{RegionCollector: Bytes(a), RegionMemtables: Bytes(c)}}
	return w, load, policy
}

// FuzzPlan plans what no application can be: no panic, no wrapped number, and a verdict that the lines bear out.
func FuzzPlan(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 12, math.MaxInt64, math.MinInt64, 1 << 31, 1 << 40} {
		f.Add(n, n/3, int64(7), 25.0, int64(GiB))
		f.Add(int64(3), n, n, math.NaN(), n)
		f.Add(n, n, n, math.Inf(1), n)
	}
	f.Fuzz(func(t *testing.T, a, b, c int64, percent float64, limit int64) {
		w, load, policy := absurd(a, b, c, percent)
		group := Assignment{
			Pods: []Pod{
				{Name: "a", Threads: int(b), Current: Tasks{Active: []Task{{"0", int32(c)}, {"1", int32(a)}}}, Target: Tasks{Standby: []Task{{"x", int32(b)}}}}, {Name: "b"},
			},
		}
		if a%3 == 0 {
			group.Unmatched = group.Pods[:1]
		}
		loads := append(LoadsAfter(w, group, int(c)), load, ColdStart(w, int(a)), observed(w, group, "a"))
		for _, l := range loads {
			plan := PlanFor(w, l, policy, Bytes(limit))
			requireSound(t, plan)
			if plan.Explain() == "" {
				t.Error("nothing explained")
			}
		}
		if RequiredLimit(w, load, policy) <= 0 {
			t.Error("a required limit of nothing")
		}
		survives(w, group, policy, map[string]Bytes{"a": Bytes(limit), "b": Bytes(limit)})
		requireSound(t, Bootstrap(w.JVM, policy, Bytes(limit)))
	})
}

// FuzzPlanApplication plans an application with absurd numbers, and one that is possible.
func FuzzPlanApplication(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 12, math.MaxInt64, math.MinInt64, 1 << 31} {
		f.Add(uint64(n), n, n/3, int64(7), 25.0)
		f.Add(uint64(3), int64(3), n, n, math.NaN())
	}
	f.Fuzz(func(t *testing.T, seed uint64, a, b, c int64, percent float64) {
		possible := newGenerator(seed).application()
		requireApplication(t, possible, PlanApplication(possible))

		absurdOne := possible
		w, _, policy := absurd(a, b, c, percent)
		absurdOne.Planned, absurdOne.Target, absurdOne.Policy = w, w, policy
		absurdOne.Running = map[PodKind]Workload{{}: w}
		absurdOne.Failures = Failures{Instances: int(a), Tolerated: int(b % 4), Unavailable: int(c % 5), Starting: int(a)}
		absurdOne.Range.Template, absurdOne.Range.Min, absurdOne.Range.Cap = Bytes(a), Bytes(b), Bytes(c)
		plan := PlanApplication(absurdOne)
		requireSound(t, plan.Representative)
		requireSound(t, plan.Published)
		for name, pod := range plan.Pods {
			if pod.RaiseTo < absurdOne.Pods[name].Limit {
				t.Errorf("%s is to get %v, below its %v", name, pod.RaiseTo, absurdOne.Pods[name].Limit)
			}
		}
	})
}

// requireSound fails where a plan has a negative line, or fits and does not.
func requireSound(t *testing.T, plan Plan) {
	t.Helper()
	sum := Bytes(0)
	for _, l := range plan.Lines {
		if l.Bound < 0 || l.Expected < 0 || l.Expected > l.Bound {
			t.Errorf("line %+v", l)
		}
		sum = sum.Add(l.Bound)
	}
	if plan.Fits() && sum > plan.Limit.Sub(plan.Headroom) {
		t.Errorf("fits, but %v pass %v - %v", sum, plan.Limit, plan.Headroom)
	}
	if plan.Heap < 0 || plan.RequiredLimit <= 0 || plan.Headroom < 0 || plan.Bound < 0 || plan.Expected < 0 {
		t.Errorf("heap %v, required %v, headroom %v, bound %v, expected %v", plan.Heap, plan.RequiredLimit, plan.Headroom, plan.Bound, plan.Expected)
	}
}

func FuzzParseJVMFlags(f *testing.F) {
	for _, seed := range []string{"-Xmx512m", "-XX:MaxRAMPercentage=75.5 -Xms1g", "-XX:+UseG1GC -XX:-UseG1GC -XX:+UseZGC", "-Xss", "-XX:MaxRAM=1e9", "@file", `"-Xmx1g"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		jvm, err := ParseJVMFlags([]string{text})
		if err != nil && !strings.HasPrefix(err.Error(), "JVM flag") {
			t.Errorf("error %q does not name the flag", err)
		}
		if jvm.HeapUnder(GiB) < 0 || jvm.MaxHeap.Value < 0 || jvm.Metaspace.Value < 0 {
			t.Errorf("%q gives %+v", text, jvm)
		}
	})
}

func FuzzApplyProperties(f *testing.F) {
	for i := range settings {
		f.Add(settings[i].name, "1")
		f.Add("consumer."+settings[i].name, "-1")
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		w := release(4, 4, 0)
		if err := w.ApplyProperties(map[string]string{name: value}); err != nil && !strings.HasPrefix(err.Error(), "property ") {
			t.Errorf("error %q does not name the property", err)
		}
		requireSound(t, PlanFor(w, Load{Threads: 1}, DefaultPolicy(), GiB))
	})
}

func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{"4.4.0", "3.9", "4.3.0-SNAPSHOT", "..", "9999999999999999999.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := ParseVersion(text); err == nil && (v.Major < 0 || v.Minor < 0 || v.Patch < 0) {
			t.Errorf("%q is %v", text, v)
		}
	})
}
