// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"testing"
)

// geovistory is the application of report C15 with its own settings; its stores share a cache by its own setter.
func geovistory(t *testing.T) Workload {
	t.Helper()
	w := release(3, 6, 0)
	stores := make([]Store, 13)
	for i := range stores {
		stores[i] = Store{Kind: TimestampedKeyValue, Caching: true}
	}
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 4, InputPartitions: 1, Stores: stores}}
	err := w.ApplyProperties(map[string]string{
		"cache.max.bytes.buffering": "10240", "max.request.size": "20971760", "buffer.memory": "33554432", "fetch.max.bytes": "52428800",
		"processing.guarantee": "exactly_once_v2",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Allocator = Known(Jemalloc, Assumed) // LD_PRELOAD names a library for another processor
	return w
}

func TestCaseC15JemallocThatIsNotLoaded(t *testing.T) {
	w := geovistory(t)
	plan := PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 8*GiB)
	requireBytes(t, "RocksDB", rocksDB(plan), 52*98*MiB)
	requireBytes(t, "instances", plan.line(RegionStoreFixed).Bound, 52*226_000)
	requireBytes(t, "record cache", plan.line(RegionRecordCache).Bound, 25_600)
	requireBytes(t, "producer", plan.line(RegionProducer).Bound, 33_554_432)
	requireWarning(t, plan, "jemalloc is configured but was not found in the process")
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(256*MiB, App), Known(64*MiB, App)
	requireBytes(t, "with the setter's cache", rocksDB(PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 8*GiB)), 256*MiB+32*MiB)
	w.Bounded, w.Clients.Producer.BufferMemory.From = true, Default
	p := newProcess(&w, onlyCap(1, 4, 4), DefaultPolicy())
	requireBytes(t, "floor of buffer.memory", Bytes(p.leastBuffer(noRole)), 20_971_760)
}

func TestCaseC25PerStoreAndPartition(t *testing.T) {
	for _, instances := range []int{1, 10, 100} {
		w := plainStores(instances, 1)
		plan := PlanFor(w, onlyCap(1, instances, instances), DefaultPolicy(), GiB)
		requireBytes(t, "block caches", plan.line(RegionBlockCache).Bound, 52_428_800*Bytes(instances))
		requireBytes(t, "memtables", plan.line(RegionMemtables).Bound, 50_331_648*Bytes(instances))
	}
}

func TestCaseC28HalfOfTheDefaultsOfOld(t *testing.T) {
	w := plainStores(1, 1)
	w.RocksDB.BlockCache, w.RocksDB.WriteBuffer = Known(100*MiB, App), Known(32*MiB, App)
	old := rocksDB(PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), GiB))
	requireBytes(t, "the defaults before KAFKA-4484", old, 196*MiB)
	requireBytes(t, "the defaults since", rocksDB(PlanFor(plainStores(1, 1), onlyCap(1, 1, 1), DefaultPolicy(), GiB)), old/2)
}

func TestCaseC29AManagerSmallerThanAMemtable(t *testing.T) {
	w := plainStores(2, 2)
	w.Bounded = true
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(64*MiB, App), Known(64*MiB, App)
	w.RocksDB.WriteBuffer = Known(64*MiB, App)
	load := onlyCap(4, 2, 2)
	requireWarning(t, PlanFor(w, load, DefaultPolicy(), 4*GiB), "write_buffer_size of 64 MiB is more than a quarter of the write buffer manager of 64 MiB")
	requireWarning(t, PlanFor(w, load, DefaultPolicy(), 4*GiB), "raise the manager to 256 MiB")
	w.RocksDB.WriteBuffer = NewWorkload(w.Version).RocksDB.WriteBuffer // left to the plan
	p := newProcess(&w, load, DefaultPolicy())
	requireBytes(t, "write_buffer_size that needs no change", p.memtable(64*MiB), 0)
	requireBytes(t, "write_buffer_size for a manager of 32 MiB", p.memtable(32*MiB), 8*MiB)
}

func TestCaseC31MorePodsDoNotHelpAtOnce(t *testing.T) {
	w := plainStores(12, 1)
	pod := func(pods, failures int) Bytes {
		w.WarmUps = Known(2, Default)
		return rocksDB(PlanFor(w, loadAfter(w, evenly(w, pods, 1), "pod-0", failures), DefaultPolicy(), GiB))
	}
	requireBytes(t, "all instances together", 12*98*MiB, rocksDB(PlanFor(w, onlyCap(1, 12, 12), DefaultPolicy(), GiB)))
	if two, three := pod(2, 0), pod(3, 0); two < 6*98*MiB || three < 4*98*MiB || three > two {
		t.Errorf("a pod of two takes %v, one of three %v", two, three)
	}
}

func TestCaseC34AnOptionThatGrowsTheBound(t *testing.T) {
	before := plainStores(10, 1)
	after := plainStores(10, 1)
	after.RocksDB.WriteBuffer = Known(64*MiB, App)
	load := onlyCap(1, 10, 10)
	a, b := PlanFor(before, load, DefaultPolicy(), 4*GiB), PlanFor(after, load, DefaultPolicy(), 4*GiB)
	requireBytes(t, "heap", b.Heap, a.Heap)
	requireBytes(t, "more with the option", rocksDB(b)-rocksDB(a), 10*3*48*MiB)
}

func TestCaseC40MemtablesBesideTheCache(t *testing.T) {
	w := plainStores(20, 1)
	w.RocksDB.SharedCache = Known(GiB, App) // without a write buffer manager
	plan := PlanFor(w, onlyCap(1, 20, 20), DefaultPolicy(), 16*GiB)
	requireBytes(t, "cache and memtables", rocksDB(plan), GiB+20*48*MiB)
	w.RocksDB.WriteBufferLimit = Known(256*MiB, App)
	requireBytes(t, "with a manager charged to the cache", rocksDB(PlanFor(w, onlyCap(1, 20, 20), DefaultPolicy(), 16*GiB)), GiB+128*MiB)
}

func TestCaseC62GlibcAndJemalloc(t *testing.T) {
	w := plainStores(1, 1)
	w.RocksDB = RocksDB{BlockCache: Known(Bytes(8_500_000_000), App), WriteBuffer: Known(Bytes(1_500_000_000), App), MaxWriteBuffers: Known(1, App)}
	w.Records.Average = Known(Bytes(100), Measured)
	b := newClient(&w, onlyCap(1, 1, 1)).newBuilder(nil, 0)
	const accounted = 11_000_000_000 // cache, memtable and 1 GB of index and filter
	b.workload.Allocator = Known(Glibc, Measured)
	requireBytes(t, "glibc", accounted+b.fragmentation(accounted).Bound, 25_000_000_000)
	b.workload.Allocator = Known(Jemalloc, Measured)
	requireBytes(t, "jemalloc, whose 13 GB the bound of full caches takes in", b.fragmentation(accounted).Bound, 0)
	w.RocksDB = RocksDB{SharedCache: Known(Bytes(accounted), App), WriteBufferLimit: Known(Bytes(1_500_000_000), App)}
	w.Allocator = Known(Jemalloc, Measured)
	plan := PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 64*GiB)
	if got := plan.line(RegionBlockCache).Bound + plan.line(RegionRocksDBOverhead).Bound; got < 13_000_000_000 {
		t.Errorf("a shared cache with its overhead is %v, 13 GB were resident", got)
	}
}

func TestCaseC65GlibcArenasAndOpenFiles(t *testing.T) {
	w := plainStores(1, 1)
	w.Allocator = Known(Glibc, Measured)
	w.Subtopologies[0].Stores[0].Size = Known(1<<40*Bytes(1), Measured) // about a TB
	w.Records.Average = Known(Bytes(1000), Measured)
	plan := PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), 5*GiB)
	requireBytes(t, "table readers", plan.line(RegionTableReaders).Bound, (1<<40*Bytes(1)).Scale(5, 4000)+(1<<40)/4096*84)
	requireWarning(t, plan, "set MALLOC_ARENA_MAX=2 or load jemalloc")
	requireVerdict(t, plan, LimitTooSmall)
}

func TestCaseC66SmallSettings(t *testing.T) {
	w := plainStores(1, 1)
	w.RocksDB = RocksDB{BlockCache: Known(8*MiB, App), WriteBuffer: Known(8*MiB, App), MaxWriteBuffers: Known(2, App)}
	requireBytes(t, "a store", rocksDB(PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), GiB)), 24*MiB)
}

func TestCaseC72CapacityIsNotSummed(t *testing.T) {
	w := with(keyValueApp(30), version(4, 3, 1)) // three column families an instance
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(3*GiB, App), Known(GiB, App)
	requireBytes(t, "shared cache", PlanFor(w, onlyCap(1, 30, 30), DefaultPolicy(), 16*GiB).line(RegionBlockCache).Bound, 3*GiB)
}

func TestCaseC73ASharedCacheIsNotTheTotal(t *testing.T) {
	w := keyValueApp(20)
	w.Bounded = true
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(128*MiB, App), Known(64*MiB, App)
	plan := PlanFor(w, onlyCap(8, 20, 20), DefaultPolicy(), 4*GiB)
	beyond := Bytes(0)
	for _, region := range []Region{RegionRocksDBOverhead, RegionMemtables, RegionStoreFixed, RegionIterators} {
		beyond += plan.line(region).Bound
	}
	requireBytes(t, "beyond the cache", beyond, (128*MiB).Scale(3, 10)+fixedOverhead+32*MiB+20*226_000+8*MiB)
	// Measured: 161 to 166 MiB resident with 20 stores on a cache of 128 MiB, 3 of them before.
	if got := plan.line(RegionBlockCache).Bound + beyond; got < 166*MiB {
		t.Errorf("RocksDB may take %v, 166 MiB were measured", got)
	}
}

// The leaks of released versions, by the report of each. None makes a limit larger.
func TestCasesOfLeaks(t *testing.T) {
	setter := func(w *Workload) { w.RocksDB.Setter = Known("com.example.BoundedMemory", App) }
	cases := map[string]struct {
		leaking, fixed Version
		change         func(*Workload)
		want           string
	}{
		"C79 filters and caches before 2.3":           {leaking: Version{2, 2, 0}, fixed: Version{2, 3, 0}, change: setter, want: "the objects of a setter are never closed"},
		"C80 write batches of restores":               {leaking: Version{2, 2, 1}, fixed: Version{2, 3, 0}, want: "KAFKA-8637"},
		"C83 reporters of replaced threads":           {leaking: Version{4, 2, 0}, fixed: Version{4, 2, 1}, want: "KAFKA-20398"},
		"C84 default options of closed stores":        {leaking: Version{2, 6, 0}, fixed: Version{2, 7, 0}, want: "apache/kafka #9498"},
		"C85 metrics of closed tasks":                 {leaking: Version{2, 1, 0}, fixed: Version{2, 2, 0}, want: "KAFKA-7660"},
		"C86 a setter that leaks what it replaces":    {leaking: Version{3, 6, 0}, change: setter, want: "make sure that it closes the cache that it replaces"},
		"C77 was found before a release":              {leaking: Version{3, 4, 0}},
		"C78 was reverted before a release":           {leaking: Version{3, 7, 0}},
		"a join of 4.1.0 leaks, one of 4.1.1 may not": {leaking: Version{4, 1, 0}, fixed: Version{4, 2, 1}, want: "KAFKA-19748"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			load := onlyCap(1, 8, 8)
			w := with(plainStores(8, 1), version(c.leaking.Major, c.leaking.Minor, c.leaking.Patch))
			if c.change != nil {
				c.change(&w)
			}
			plan := PlanFor(w, load, DefaultPolicy(), GiB)
			if c.want == "" {
				for _, warning := range plan.Warnings {
					requireNotContains(t, warning, "upgrade")
				}
			} else {
				requireWarning(t, plan, c.want)
			}
			requireBytes(t, "RocksDB", rocksDB(plan), 8*98*MiB)
			if c.fixed != (Version{}) {
				w.Version.Value = c.fixed
				for _, warning := range PlanFor(w, load, DefaultPolicy(), GiB).Warnings {
					requireNotContains(t, warning, c.want)
				}
			}
		})
	}
}
