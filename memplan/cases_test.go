// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"maps"
	"strings"
	"testing"
)

// The cases are public reports of applications that ran out of memory. Each asserts the bytes that the report gives.

// allRegions are all regions of native memory.
var allRegions = []Region{
	RegionMetaspace, RegionCodeCache, RegionCompiler, RegionThreadStacks, RegionCollector, RegionDirectMemory, RegionSockets,
	RegionCompressionNative, RegionDecompression, RegionBlockCache, RegionMemtables, RegionTableReaders, RegionStoreFixed,
	RegionRocksDBOverhead, RegionCompaction, RegionIterators, RegionAllocator, RegionSplitStreams, RegionKernelObjects, RegionRestoreBatches, RegionUncommittedNative, RegionStateDirectory,
	RegionApplicationNative, RegionKernel, RegionPageCache,
}

// onlyNative pins all native regions but some to nothing, without headroom: the arithmetic of a report that looks at those alone.
func onlyNative(pins map[Region]Bytes, free ...Region) Policy {
	p := Policy{Pins: map[Region]Bytes{}}
	for _, region := range allRegions {
		p.Pins[region] = 0
	}
	for _, region := range free {
		delete(p.Pins, region)
	}
	maps.Copy(p.Pins, pins)
	return p
}

// flags puts JVM flags onto a workload.
func flags(t *testing.T, text string) func(*Workload) {
	t.Helper()
	jvm, err := ParseJVMFlags([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	return func(w *Workload) { w.JVM = jvm }
}

// plainStores has tasks of so many plain stores each.
func plainStores(tasks, stores int) Workload {
	w := release(3, 9, 1)
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: tasks, InputPartitions: 1, Stores: make([]Store, stores)}}
	return w
}

// rocksDB is the size of caches and memtables in a plan.
func rocksDB(p Plan) Bytes { return p.line(RegionBlockCache).Bound + p.line(RegionMemtables).Bound }

func requireBytes(t *testing.T, what string, got, want Bytes) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %d, want %d", what, got, want)
	}
}

func requireVerdict(t *testing.T, p Plan, want Verdict) {
	t.Helper()
	if p.Verdict != want {
		t.Errorf("verdict %d, want %d: %v", p.Verdict, want, p.Deficits)
	}
}

func requireWarning(t *testing.T, p Plan, text string) {
	t.Helper()
	if !strings.Contains(strings.Join(p.Warnings, "\n"), text) {
		t.Errorf("warnings %q, want one with %q", p.Warnings, text)
	}
}

func TestCaseC1OwnSetterAndSegments(t *testing.T) {
	w := plainStores(24, 1)
	w.Threads = Known(4, App)
	w.Subtopologies[0].Stores[0] = Store{Kind: Window, RetentionMs: Known(int64(86_400_000), App)}
	w.RocksDB = RocksDB{BlockCache: Known(128*MiB, App), WriteBuffer: Known(64*MiB, App), MaxWriteBuffers: Known(3, App)}
	plan := PlanFor(w, ColdStart(w, 0), DefaultPolicy(), 3*GiB)
	requireBytes(t, "RocksDB", rocksDB(plan), 23_040*MiB) // 24 x 3 segments x 320 MiB
	requireVerdict(t, plan, LimitTooSmall)
	if missing := plan.Deficits[len(plan.Deficits)-1].Missing; missing < 20_937_965_568 {
		t.Errorf("missing %d, want at least 20937965568", missing)
	}
}

func TestCaseC2TheDefaultHeapIsNotAQuarter(t *testing.T) {
	w := plainStores(1, 1)
	plan := PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 256*MiB)
	requireBytes(t, "heap", plan.Heap, 126*MiB)
	requireBytes(t, "RocksDB", rocksDB(plan), 98*MiB)
	requireVerdict(t, plan, LimitTooSmall)
}

func TestCaseC4FitsToTheByteAndHasNoMargin(t *testing.T) {
	w := with(plainStores(10, 1), flags(t, "-Xmx1g"))
	w.Bounded = true
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(512*MiB, App), Known(125*MiB, App)
	load := onlyCap(1, 10, 10)
	plan := PlanFor(w, load, onlyNative(map[Region]Bytes{RegionMetaspace: 512 * MiB}, RegionBlockCache), 2*GiB)
	requireBytes(t, "all", plan.Bound, 2*GiB)
	requireVerdict(t, plan, Fits)
	margins := PlanFor(w, load, DefaultPolicy(), 2*GiB)
	requireBytes(t, "beyond the cache", margins.line(RegionRocksDBOverhead).Bound+margins.line(RegionMemtables).Bound, (512*MiB).Scale(3, 10)+fixedOverhead+125*MiB/2)
}

func TestCaseC5StoresTimesPartitions(t *testing.T) {
	w := plainStores(60, 2)
	requireBytes(t, "30 tasks", rocksDB(PlanFor(w, onlyCap(1, 30, 30), DefaultPolicy(), GiB)), 5_880*MiB)
	requireBytes(t, "after half of the pods is lost", rocksDB(PlanFor(w, loadAfter(w, evenly(w, 2, 1), "pod-0", 1), DefaultPolicy(), GiB)), 11_760*MiB)
}

func TestCaseC7PerPartitionBudget(t *testing.T) {
	w := with(plainStores(3, 1), flags(t, "-Xmx512m"))
	w.RocksDB = RocksDB{BlockCache: Known(512*MiB, App)}
	policy := onlyNative(map[Region]Bytes{RegionDirectMemory: 512 * MiB}, RegionBlockCache)
	plan := PlanFor(w, onlyCap(1, 3, 3), policy, 2*GiB)
	requireVerdict(t, plan, LimitTooSmall)
	requireBytes(t, "missing", plan.Deficits[0].Missing, 536_870_912)
	requireBytes(t, "required limit", plan.RequiredLimit, 2560*MiB)
}

func TestCaseC9ProducerShareOfTheHeap(t *testing.T) {
	w := with(plainStores(8, 2), flags(t, "-XX:MaxRAMPercentage=50 -XX:MaxDirectMemorySize=128M -XX:ActiveProcessorCount=1"))
	err := w.ApplyProperties(map[string]string{
		"num.stream.threads": "4", "producer.buffer.memory": "134217728", "producer.batch.size": "524288", "producer.compression.type": "zstd",
		"consumer.max.partition.fetch.bytes": "8388608", "consumer.max.poll.records": "10000", "cache.max.bytes.buffering": "134217728",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(128*MiB, App), Known(128*MiB*3/10, App) // by its own setter
	w.Records.LargestBatch = Known(MiB, Spec)
	before := PlanFor(w, onlyCap(4, 4, 4), DefaultPolicy(), 2*GiB)
	after := PlanFor(w, onlyCap(4, 8, 8), DefaultPolicy(), 2*GiB)
	requireBytes(t, "heap", before.Heap, GiB)
	requireBytes(t, "producers", before.line(RegionProducer).Bound, 512*MiB)
	requireBytes(t, "main consumers", before.line(RegionMainConsumer).Expected, 32*MiB)
	requireBytes(t, "main consumers after a failure", after.line(RegionMainConsumer).Expected, 64*MiB)
	requireBytes(t, "shared cache", before.line(RegionBlockCache).Bound, 128*MiB)
	requireBytes(t, "shared cache after a failure", after.line(RegionBlockCache).Bound, 128*MiB)
	requireBytes(t, "direct memory", after.line(RegionDirectMemory).Bound, 128*MiB)
	requireWarning(t, after, "MaxDirectMemorySize is 128 MiB")
	w.Bounded = true // then the plan derives fetch sizes that fit
	requireBytes(t, "direct memory with derived fetch sizes", PlanFor(w, onlyCap(4, 8, 8), DefaultPolicy(), 2*GiB).line(RegionDirectMemory).Bound, 4*(8+8)*MiB)
}

func TestCaseC11DecimalLimit(t *testing.T) {
	w := with(plainStores(8, 1), flags(t, "-XX:MaxRAMPercentage=75 -XX:+UseSerialGC"))
	const limit = 2_000_000_000
	heap := w.JVM.HeapUnder(limit)
	requireBytes(t, "heap", heap, 1_501_560_832)
	requireBytes(t, "left", limit-heap, 498_439_168)
	w = with(w, flags(t, "-Xmx1501560832"))
	fitting := func(policy Policy) int {
		stores := 0
		for PlanFor(w, onlyCap(1, stores+1, stores+1), policy, limit).Verdict != LimitTooSmall {
			stores++
		}
		return stores
	}
	if got := fitting(onlyNative(nil, RegionBlockCache, RegionMemtables)); got != 4 {
		t.Errorf("%d stores fit what is left, want 4", got)
	}
	if got := fitting(onlyNative(map[Region]Bytes{RegionMetaspace: 250_000_000}, RegionBlockCache, RegionMemtables)); got != 2 {
		t.Errorf("%d stores fit beside 250 MB of JVM, want 2", got)
	}
}

func TestCaseC12HeapAboveTheLimit(t *testing.T) {
	w := with(release(2, 4, 1), flags(t, "-Xms512m -Xmx512m"))
	plan := PlanFor(w, Load{Threads: 1}, onlyNative(nil), 500*MiB)
	requireVerdict(t, plan, LimitTooSmall)
	requireBytes(t, "missing", plan.Deficits[0].Missing, 12*MiB)
	requireWarning(t, plan, "the heap of 512 MiB is not below the limit of 500 MiB")
	w = with(w, flags(t, "-Xms1024m -Xmx1024m"))
	requireBytes(t, "left for all else", PlanFor(w, Load{Threads: 1}, onlyNative(nil), 1536*MiB).Split.Native, 512*MiB)
}

func TestCaseC17PercentageTooHigh(t *testing.T) {
	w := with(release(3, 9, 1), flags(t, "-XX:MaxRAMPercentage=80"))
	requireBytes(t, "heap", w.JVM.HeapUnder(2000*MiB), 1600*MiB)
	w = with(w, flags(t, "-Xmx1600m"))
	plan := PlanFor(w, Load{Threads: 1}, onlyNative(map[Region]Bytes{RegionMetaspace: 700 * MiB}), 2000*MiB)
	requireVerdict(t, plan, LimitTooSmall)
	requireBytes(t, "missing", plan.Deficits[0].Missing, 300*MiB)
}

func TestCaseC20ALargerLimitDoesNotCureAFixedHeap(t *testing.T) {
	w := with(release(2, 3, 0), flags(t, "-Xmx256m"))
	w.Application.LiveSet = Known(2*GiB, Measured)
	for _, limit := range []Bytes{4 * GiB, 8 * GiB, 64 * GiB} {
		requireVerdict(t, PlanFor(w, Load{Threads: 1}, DefaultPolicy(), limit), HeapTooSmall)
	}
	w = with(w, flags(t, "-Xms4G -Xmx4G"))
	requireVerdict(t, PlanFor(w, Load{Threads: 1}, DefaultPolicy(), 8*GiB), Fits)
}

func TestCaseC21SmallHeapSmallLimit(t *testing.T) {
	w := with(release(3, 4, 0), flags(t, "-Xmx200m"))
	w.Application.LiveSet = Known(50*MiB, Measured)
	requireVerdict(t, PlanFor(w, Load{Threads: 1}, DefaultPolicy(), 450*MiB), LimitTooSmall)
}

func TestCaseC23AStoreForEachPartition(t *testing.T) {
	w := plainStores(48, 3)
	for pods, want := range map[int]Bytes{1: 14_112 * MiB, 4: 3_528 * MiB, 3: 4_704 * MiB} {
		w.WarmUps = Known(0, App)
		load := loadAfter(w, evenly(w, pods, 1), "pod-0", 0)
		requireBytes(t, "RocksDB", rocksDB(PlanFor(w, load, DefaultPolicy(), GiB)), want)
	}
}

func TestCaseC24SizedOnTheHeapAlone(t *testing.T) {
	w := with(plainStores(167, 1), flags(t, "-Xmx4g"))
	plan := PlanFor(w, onlyCap(1, 167, 167), DefaultPolicy(), 5*GiB)
	requireBytes(t, "RocksDB", rocksDB(plan), 16_366*MiB)
	requireVerdict(t, plan, LimitTooSmall)
}

func TestCaseC26OffsetsColumnFamily(t *testing.T) {
	w := with(plainStores(1, 1), version(4, 3, 1))
	requireBytes(t, "an instance", rocksDB(PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), GiB)), 98*MiB+3*MiB)
}

func TestCaseC30SharedCacheDoesNotGrowWithStores(t *testing.T) {
	for _, tasks := range []int{1, 100} {
		w := plainStores(tasks, 5)
		w.Bounded = true
		w.RocksDB.SharedCache = Known(128*MiB, App)
		plan := PlanFor(w, onlyCap(1, tasks, tasks), DefaultPolicy(), 4*GiB)
		requireBytes(t, "shared cache", plan.line(RegionBlockCache).Bound, 128*MiB)
	}
}

func TestCaseC35ThreadsWithoutAnyStore(t *testing.T) {
	w := with(release(2, 3, 1), flags(t, "-Xms18g -Xmx18g -XX:+UseG1GC"))
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 400, InputPartitions: 1, WrittenPartitions: 1}}
	plan := PlanFor(w, onlyCap(1600, 400, 400), DefaultPolicy(), 22*GiB)
	requireBytes(t, "producers", plan.line(RegionProducer).Bound, 50*GiB)
	requireBytes(t, "RocksDB", rocksDB(plan)+plan.line(RegionStoreFixed).Bound, 0)
	if plan.Fits() || plan.Deficits[0].Pool != Heap {
		t.Errorf("verdict %d, deficits %v; the heap is too small", plan.Verdict, plan.Deficits)
	}
}

func TestCaseC37ResidentIsHeapAndMore(t *testing.T) {
	w := with(release(3, 2, 0), flags(t, "-Xms64m -Xmx512m"))
	store := Store{Kind: KeyValue, Caching: true}
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 1, InputPartitions: 2, Stores: []Store{store, store, store, store, store, store, store}}}
	load := onlyCap(1, 1, 1)
	for _, limit := range []Bytes{512 * MiB, GiB} {
		requireVerdict(t, PlanFor(w, load, DefaultPolicy(), limit), LimitTooSmall)
	}
	if required := RequiredLimit(w, load, DefaultPolicy()); required < 1200*MiB {
		t.Errorf("required %v, 1.13 GB were resident", required)
	}
}

func TestCaseC39SmallStoresKeepTheirBound(t *testing.T) {
	w := plainStores(10, 1)
	w.Subtopologies[0].Stores[0].Size = Known(MiB, Measured)
	plan := PlanFor(w, onlyCap(1, 10, 10), DefaultPolicy(), 4*GiB)
	requireBytes(t, "bound", rocksDB(plan), 980*MiB)
	requireBytes(t, "expected block caches", plan.line(RegionBlockCache).Expected, 10*MiB)
	requireBytes(t, "instances", plan.line(RegionStoreFixed).Bound, 1_710_000)
}

func TestCaseC43WarmUps(t *testing.T) {
	w := plainStores(12, 3)
	load := loadAfter(w, evenly(w, 3, 1), "pod-0", 0)
	requireBytes(t, "RocksDB", rocksDB(PlanFor(w, load, DefaultPolicy(), 4*GiB)), (4+2)*3*98*MiB)
}

func TestCaseC56PartitionFetchSizes(t *testing.T) {
	w := with(release(4, 2, 1), exactBatch)
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 90, InputPartitions: 1}}
	fetch := func(b Bytes) Bytes {
		w.Clients.Main.MaxPartitionFetchBytes, w.Clients.Main.FetchMaxBytes = Known(b, App), Known(GiB, App)
		return PlanFor(w, onlyCap(1, 90, 90), DefaultPolicy(), 4*GiB).line(RegionMainConsumer).Bound
	}
	requireBytes(t, "1 MiB a partition", fetch(MiB), 90*MiB)
	requireBytes(t, "10 MB a partition", fetch(10_000_000), 900_000_000)
}

func TestCaseC57QueueInRecords(t *testing.T) {
	w := with(keyValueApp(1), flags(t, "-Xmx512m"))
	w.Records.Average = Known(Bytes(12_000), Measured)
	w.Clients.BufferedRecordsPerPartition, w.Clients.Main.MaxPollRecords = Known(49_000, App), Known(1_000, App)
	plan := PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 4*GiB)
	requireBytes(t, "queue", plan.line(RegionRecordQueues).Bound, 50_000*12_200)
	requireVerdict(t, plan, HeapTooSmall)
	requireWarning(t, plan, "the heap may be too small: producers, consumers and record queues exceed it by 317 MiB per thread")
}

func TestCaseC58DirectMemory(t *testing.T) {
	w := with(release(4, 2, 1), exactBatch, flags(t, "-XX:MaxDirectMemorySize=10M"))
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 200, InputPartitions: 1}}
	plan := PlanFor(w, onlyCap(1, 20, 20), DefaultPolicy(), 4*GiB)
	requireBytes(t, "direct memory", plan.line(RegionDirectMemory).Bound, 10*MiB)
	requireWarning(t, plan, "MaxDirectMemorySize is 10 MiB, but the fetches may take 20 MiB")
	w.JVM.MaxDirect = Fact[Bytes]{}
	plan = PlanFor(w, onlyCap(4, 200, 200), DefaultPolicy(), 4*GiB)
	requireBytes(t, "direct memory of 4 threads", plan.line(RegionDirectMemory).Bound, 200*MiB)
}

func TestCaseC71SharedCacheIsCountedOnce(t *testing.T) {
	w := keyValueApp(8) // two column families an instance: the metric shows twice the capacity
	w.Bounded = true
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(GiB, App), Known(150*MiB, App)
	plan := PlanFor(w, onlyCap(1, 8, 8), DefaultPolicy(), 4*GiB)
	requireBytes(t, "shared cache", plan.line(RegionBlockCache).Bound, GiB)
	requireVerdict(t, plan, Fits)
}

func TestCaseC75NoLimitCoversALeak(t *testing.T) {
	leaking, fixed := keyValueApp(8), keyValueApp(8)
	leaking.Version, fixed.Version = Known(Version{4, 3, 0}, App), Known(Version{4, 3, 1}, App)
	load := onlyCap(1, 8, 8)
	requireBytes(t, "required limit", RequiredLimit(leaking, load, DefaultPolicy()), RequiredLimit(fixed, load, DefaultPolicy()))
	requireWarning(t, PlanFor(leaking, load, DefaultPolicy(), GiB), "KAFKA-20616")
	requireWarning(t, PlanFor(leaking, load, DefaultPolicy(), GiB), "upgrade to 4.3.1, no limit covers it")
	for _, warning := range PlanFor(fixed, load, DefaultPolicy(), GiB).Warnings {
		if strings.Contains(warning, "upgrade") {
			t.Errorf("4.3.1 has no leak: %s", warning)
		}
	}
}
