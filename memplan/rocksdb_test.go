// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"strings"
	"testing"
)

const minuteMs = 60_000

func TestInstances(t *testing.T) {
	window := func(kind StoreKind, retention, interval int64) Store {
		return Store{Kind: kind, RetentionMs: Known(retention, Spec), SegmentIntervalMs: Known(interval, Spec)}
	}
	cases := map[string]struct {
		store Store
		want  Count
	}{
		"a key-value store":                       {store: Store{Kind: KeyValue}, want: 1},
		"a timestamped store":                     {store: Store{Kind: TimestampedKeyValue}, want: 1},
		"a versioned store has logical segments":  {store: window(Versioned, 24*60*minuteMs, 0), want: 1},
		"a window of an hour":                     {store: window(Window, 60*minuteMs, 0), want: 3},
		"a window of a day":                       {store: window(Window, 24*60*minuteMs, 0), want: 3},
		"a window of two minutes":                 {store: window(Window, 2*minuteMs, 0), want: 3},
		"between one and two minutes":             {store: window(Window, 90_000, 0), want: 3},
		"a window of a minute":                    {store: window(Window, minuteMs, 0), want: 2},
		"a window of a second":                    {store: window(Window, 1000, 0), want: 2},
		"a retention that is not known":           {store: window(Window, 0, 0), want: 3},
		"an interval of its own":                  {store: window(Window, 60*minuteMs, minuteMs), want: 61},
		"an absurd interval":                      {store: window(Window, 1<<62, 1), want: maxSegments},
		"a session store":                         {store: window(Session, 60*minuteMs, 0), want: 3},
		"a side of a stream-stream join":          {store: window(JoinWindow, 60*minuteMs, 0), want: 3},
		"the shared list of an outer join":        {store: Store{Kind: OuterJoinList}, want: 1},
		"emit on close":                           {store: window(TimeOrderedWindow, 60*minuteMs, 0), want: 3},
		"the subscriptions of a foreign-key join": {store: Store{Kind: ForeignKeySubscription}, want: 1},
		"the buffer of a join with grace":         {store: Store{Kind: TimeOrderedBuffer}, want: 1},
		"suppress is on the heap":                 {store: Store{Kind: Suppress}, want: 0},
		"an in-memory store":                      {store: Store{Kind: Window, InMemory: true}, want: 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.store.Instances(); got != c.want {
				t.Errorf("%d instances, want %d", got, c.want)
			}
		})
	}
}

func TestAnOuterStreamJoinOpensSevenInstances(t *testing.T) {
	side := Store{Kind: JoinWindow, RetentionMs: Known(int64(60*minuteMs), Spec)}
	join := Subtopology{Stores: []Store{side, side, {Kind: OuterJoinList}}}
	if got := instances(&join); got != 7 {
		t.Errorf("%d instances, want 2 x 3 + 1", got)
	}
}

func TestTheSharedStoreOfAnOuterJoinWasAWindowStoreIn30(t *testing.T) {
	for v, want := range map[Version]Bytes{{3, 0, 2}: 9, {3, 1, 0}: 7} {
		w := with(keyValueApp(4), version(v.Major, v.Minor, v.Patch))
		side := Store{Kind: JoinWindow, RetentionMs: Known(int64(60*minuteMs), Spec)}
		w.Subtopologies[0].Stores = []Store{side, side, {Kind: OuterJoinList, RetentionMs: side.RetentionMs}}
		requireBytes(t, "block caches of a task in "+v.String(), PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), GiB).line(RegionBlockCache).Bound, want*50*MiB)
		if w.Subtopologies[0].Stores[2].Kind != OuterJoinList {
			t.Errorf("%v: the plan changed the workload that it was given", v)
		}
	}
}

func TestStoreLinesOfDefaultRocksDB(t *testing.T) {
	load := onlyCap(1, 4, 6)
	store := func(s ...Store) func(*Workload) { return func(w *Workload) { w.Subtopologies[0].Stores = s } }
	sized := Store{Kind: KeyValue, Size: Known(48_000_000*Bytes(1), Measured)}
	window := Store{Kind: Window, RetentionMs: Known(int64(60*minuteMs), Spec)}
	records := func(w *Workload) { w.Records.Average = Known(Bytes(120), Measured) }
	inMemory := func(w *Workload) { w.StateDir.InMemory = true }
	global := func(w *Workload) { w.GlobalStores = []Store{{Kind: KeyValue}} }
	runLineCases(t, map[string]lineCase{
		"a block cache of 50 MiB an instance":                       {w: keyValueApp(8), load: load, region: RegionBlockCache, want: 6 * 50 * MiB, wantFrom: Default},
		"three write buffers of 16 MiB an instance":                 {w: keyValueApp(8), load: load, region: RegionMemtables, want: 6 * 48 * MiB, wantFrom: Default},
		"and the offsets column family from 4.3 on":                 {w: with(keyValueApp(8), version(4, 3, 1)), load: load, region: RegionMemtables, want: 6 * 51 * MiB, wantFrom: Default},
		"each live segment is an instance":                          {w: with(keyValueApp(8), store(window)), load: load, region: RegionBlockCache, want: 18 * 50 * MiB, wantFrom: Default},
		"global stores come on top":                                 {w: with(keyValueApp(8), global), load: load, region: RegionBlockCache, want: 7 * 50 * MiB, wantFrom: Default},
		"while an old format is converted, of both column families": {w: with(keyValueApp(8), upgrading), load: load, region: RegionMemtables, want: 12 * 48 * MiB, wantFrom: Default},
		"and once more the offsets":                                 {w: with(keyValueApp(8), upgrading, version(4, 3, 1)), load: load, region: RegionMemtables, want: 6 * (96 + 3) * MiB, wantFrom: Default},
		"a store with one column family has no old one":             {w: with(keyValueApp(8), upgrading, store(Store{})), load: load, region: RegionMemtables, want: 6 * 48 * MiB, wantFrom: Default},
		"before 4.3 a commit flushes memtables":                     {w: with(keyValueApp(8), store(Store{}), records), load: load, region: RegionMemtables, want: 6 * 48 * MiB, wantExpected: 6 * 1_200_000, wantFrom: Default},
		"from 4.3 on memtables fill": {
			w: with(keyValueApp(8), store(Store{}), records, version(4, 3, 1)), load: load, region: RegionMemtables, want: 6 * 51 * MiB, wantExpected: 6 * 51 * MiB, wantFrom: Default,
		},
		"a new segment is open before the old one closes":  {w: with(keyValueApp(8), store(window)), load: load, region: RegionStoreFixed, want: 6 * 4 * 226_000, wantFrom: Spec},
		"a cache that the application's own setter shares": {w: with(keyValueApp(8), shared(128*MiB, 0)), load: load, region: RegionBlockCache, want: 128 * MiB, wantFrom: App},
		"takes more than its capacity":                     {w: with(keyValueApp(8), shared(128*MiB, 0)), load: load, region: RegionRocksDBOverhead, want: (128 * MiB).Scale(3, 10), wantFrom: Measured},
		"and has no memtables in it without a manager":     {w: with(keyValueApp(8), shared(128*MiB, 0)), load: load, region: RegionMemtables, want: 6 * 48 * MiB, wantFrom: Default},
		"with one they are charged to it":                  {w: with(keyValueApp(8), shared(128*MiB, 40*MiB)), load: load, region: RegionMemtables, want: 20 * MiB, wantFrom: App},
		"an iterator a thread":                             {w: keyValueApp(8), load: load, region: RegionIterators, want: 1 * MiB, wantFrom: Assumed},
		"iterators that were seen":                         {w: with(keyValueApp(8), iterators(40)), load: load, region: RegionIterators, want: 40 * MiB, wantFrom: Measured},
		"no stores, no iterators":                          {w: with(keyValueApp(8), store()), load: load, region: RegionIterators, want: 0},
		"glibc's arenas without a limit":                   {w: with(keyValueApp(8), malloc(Glibc)), load: load, region: RegionAllocator, want: (6 * 98 * MiB).Scale(14, 11), wantExpected: (6 * 98 * MiB).Scale(3, 10), wantFrom: Derived},
		"an allocator that is only assumed":                {w: keyValueApp(8), load: load, region: RegionAllocator, want: 0},
		"glibc's arenas with a limit":                      {w: with(keyValueApp(8), malloc(GlibcArenas)), load: load, region: RegionAllocator, want: 0},
		"jemalloc":                                         {w: with(keyValueApp(8), malloc(Jemalloc)), load: load, region: RegionAllocator, want: 0},
		"no stores, nothing to allocate":                   {w: with(keyValueApp(8), store(), malloc(Glibc)), load: load, region: RegionAllocator, want: 0},
		"from 4.2 on filters are expected on few levels":   {w: with(keyValueApp(8), store(sized), records), load: load, region: RegionTableReaders, want: 6 * (500_000 + 984_375), wantExpected: 6 * 984_375, wantFrom: Measured},
		"before on all":                                    {w: with(keyValueApp(8), store(sized), records, version(4, 1, 1)), load: load, region: RegionTableReaders, want: 6 * (500_000 + 984_375), wantExpected: 6 * (500_000 + 984_375), wantFrom: Measured},
		"fixed cost with one column family":                {w: with(keyValueApp(8), store(Store{})), load: load, region: RegionStoreFixed, want: 6 * 171_000, wantFrom: Spec},
		"fixed cost with two":                              {w: keyValueApp(8), load: load, region: RegionStoreFixed, want: 6 * 226_000, wantFrom: Spec},
		"fixed cost with the offsets":                      {w: with(keyValueApp(8), version(4, 3, 1)), load: load, region: RegionStoreFixed, want: 6 * 288_000, wantFrom: Spec},
		"index and filter blocks grow with the data":       {w: with(keyValueApp(8), store(sized), records), load: load, region: RegionTableReaders, want: 6 * (500_000 + 984_375), wantFrom: Measured},
		"those of stores of no known size are not seen":    {w: keyValueApp(8), load: load, region: RegionTableReaders, want: 0},
		"compactions read ahead from 4.0 on":               {w: keyValueApp(8), load: load, region: RegionCompaction, want: 16 * MiB, wantFrom: Assumed},
		"and do not before":                                {w: with(keyValueApp(8), version(3, 9, 1)), load: load, region: RegionCompaction, want: 0},
		"a state directory in memory counts in full":       {w: with(keyValueApp(8), store(sized), inMemory), load: load, region: RegionStateDirectory, want: 6*48_000_000 + 6*manifest, wantFrom: Measured},
		"one on a disk does not":                           {w: with(keyValueApp(8), store(sized)), load: load, region: RegionStateDirectory, want: 0},
		"no stores, no RocksDB":                            {w: with(keyValueApp(8), store()), load: load, region: RegionCompaction, want: 0},
	})
}

func upgrading(w *Workload) { w.RocksDB.FormatUpgrade = Known(true, App) }

func iterators(n int) func(*Workload) {
	return func(w *Workload) { w.RocksDB.OpenIterators = Known(n, Measured) }
}

func shared(cache, manager Bytes) func(*Workload) {
	return func(w *Workload) {
		w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(cache, App), Known(manager, App)
	}
}

func malloc(a Allocator) func(*Workload) {
	return func(w *Workload) { w.Allocator = Known(a, Derived) }
}

// 400,000 keys of 120 B reported 726,163 B of table readers.
func TestTableReadersAreNotBelowTheMeasuredSize(t *testing.T) {
	w := keyValueApp(1)
	w.Records.Average = Known(Bytes(120), Measured)
	w.Subtopologies[0].Stores[0].Size = Known(Bytes(400_000*120), Measured)
	got := PlanFor(w, onlyCap(1, 1, 1), DefaultPolicy(), GiB).line(RegionTableReaders).Bound
	if got < 726_163 || got > 3*726_163 {
		t.Errorf("table readers of %d, measured 726163", got)
	}
}

// boundedRun is the application that was measured: Kafka Streams 4.4.0, 12 tasks with 3 stores each, a heap of 256 MiB, a limit of 760.
func boundedRun() Workload {
	w := release(4, 4, 0)
	store := Store{Kind: TimestampedKeyValue, Caching: true}
	w.Subtopologies = []Subtopology{{ID: "0", Tasks: 12, InputPartitions: 1, Stores: []Store{store, store, store}}}
	w.Records.Average = Known(1000*Bytes(1), Measured)
	w.Bounded = true
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(240*MiB, App), Known(100*MiB, App)
	w.JVM.HeapMode, w.JVM.MaxHeap = HeapFixed, Known(256*MiB, App)
	return w
}

func TestBoundIsNotBelowTheMeasuredPeaks(t *testing.T) {
	cases := map[string]struct {
		tasks int
		peak  Bytes
	}{
		"three pods, 4 tasks each":                  {tasks: 4, peak: 673 * MiB},
		"one failed, 7 tasks each, while restoring": {tasks: 7, peak: 715 * MiB},
		"two failed, all 12 tasks":                  {tasks: 12, peak: 747 * MiB},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := PlanFor(boundedRun(), onlyCap(1, c.tasks, c.tasks), DefaultPolicy(), 760*MiB)
			resident := plan.Bound - plan.line(RegionPageCache).Bound // the page cache is not resident memory of the process
			if resident < c.peak {
				t.Errorf("bound %v, measured %v", resident, c.peak)
			}
			rocksDB := plan.line(RegionBlockCache).Bound + plan.line(RegionRocksDBOverhead).Bound + plan.line(RegionMemtables).Bound
			if want := 312*MiB + 32*MiB + 50*MiB; rocksDB != want {
				t.Errorf("RocksDB %v, want 1.30 x 240 + 32 + 0.5 x 100 = %v", rocksDB, want)
			}
			if got, want := plan.line(RegionStoreFixed).Bound, Bytes(3*c.tasks*288_000); got != want {
				t.Errorf("instances %v, want %v", got, want)
			}
		})
	}
}

// Unchanged, the same application was killed under plain updates in 760 MiB.
func TestTheSameRunWithDefaultRocksDBDoesNotFit(t *testing.T) {
	w := boundedRun()
	w.Bounded, w.RocksDB = false, NewWorkload(w.Version).RocksDB
	plan := PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 760*MiB)
	if plan.Verdict != LimitTooSmall {
		t.Errorf("verdict %v, want LimitTooSmall", plan.Verdict)
	}
	if got, want := plan.line(RegionBlockCache).Bound+plan.line(RegionMemtables).Bound, 12*101*MiB; got != want {
		t.Errorf("caches and memtables %v, want %v", got, want)
	}
}

func TestTheSharedCacheTakesTheRestOfTheLimit(t *testing.T) {
	w := boundedRun()
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Fact[Bytes]{}, Fact[Bytes]{}
	w.JVM = NewJVM()
	w.JVM.HeapMode = HeapPlanned
	load := onlyCap(1, 4, 4)
	least := RequiredLimit(w, load, DefaultPolicy())
	before := Bytes(0)
	for limit := least; limit < 4*GiB; limit += 128 * MiB {
		plan := PlanFor(w, load, DefaultPolicy(), limit)
		cache := plan.line(RegionBlockCache).Bound
		if cache < before {
			t.Errorf("a limit of %v leaves a cache of %v, less than %v before", limit, cache, before)
		}
		if most := 12 * 98 * MiB; cache > most {
			t.Errorf("cache of %v is more than the stores could use (%v)", cache, most)
		}
		before = cache
	}
	if before != 12*98*MiB {
		t.Errorf("with room enough the cache is %v, want all that the stores could use", before)
	}
}

func TestBoundedConfigs(t *testing.T) {
	values := func(p Plan) string {
		var all []string
		for _, c := range p.Configs {
			if c.Kind == Property {
				all = append(all, c.Name+"="+c.Value)
			}
		}
		return strings.Join(all, " ")
	}
	t.Run("the arena block is sized for all tasks, not for this load", func(t *testing.T) {
		// (100 MiB - 36 x 0.25 MiB) / (4 x 72 column families) = 331,320 B, in steps of 4 KiB
		want := "rocksdb.cache.bytes=251658240 rocksdb.write.buffer.manager.bytes=104857600 rocksdb.arena.block.bytes=327680"
		for _, tasks := range []int{1, 4, 12} {
			w := boundedRun()
			w.JVM.MaxHeap.Value = 512 * MiB
			if got := values(PlanFor(w, onlyCap(1, tasks, tasks), DefaultPolicy(), 1536*MiB)); got != want {
				t.Errorf("%d tasks: %s, want %s", tasks, got, want)
			}
		}
	})
	t.Run("nothing is configured that is not bounded", func(t *testing.T) {
		w := boundedRun()
		w.Bounded = false
		if got := values(PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 760*MiB)); got != "" {
			t.Errorf("properties %s, want none", got)
		}
	})
}

func TestSmallestCacheHoldsUsableMemtables(t *testing.T) {
	cases := map[string]struct {
		version   func(*Workload)
		instances int
		want      Bytes
	}{
		"few stores: the cache's own floor":                  {version: version(4, 4, 0), instances: 3, want: 32 * MiB},
		"from 4.3 on 0.5 MiB of memtables an instance":       {version: version(4, 4, 0), instances: 100, want: 125 * MiB},
		"before, the smallest arenas of two column families": {version: version(4, 2, 1), instances: 400, want: 125 * MiB},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := with(keyValueApp(c.instances), c.version)
			w.Bounded = true
			p := newProcess(&w, onlyCap(1, c.instances, c.instances), DefaultPolicy())
			if got := p.smallestCache().capacity; got != c.want {
				t.Errorf("smallest cache %v, want %v", got, c.want)
			}
		})
	}
}

func TestArenaBlock(t *testing.T) {
	cases := map[string]struct {
		stores    int
		global    int
		memtables Bytes
		want      Bytes
	}{
		"100 stores on 64 MiB: 160 KiB gave no flush storm": {stores: 100, memtables: 64 * MiB, want: 160 * KiB},
		"global stores share it":                            {stores: 90, global: 10, memtables: 64 * MiB, want: 160 * KiB},
		"no stores are known: left to who opens them":       {memtables: 64 * MiB, want: 0},
		"400 stores on 64 MiB":                              {stores: 400, memtables: 64 * MiB, want: 40 * KiB},
		"few stores: RocksDB's own block":                   {stores: 1, memtables: 64 * MiB, want: 1 * MiB},
		"too many: the floor":                               {stores: 10_000, memtables: 64 * MiB, want: 16 * KiB},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := keyValueApp(c.stores)
			w.Subtopologies[0].Stores[0].Kind = KeyValue
			w.GlobalStores = make([]Store, c.global)
			p := newProcess(&w, onlyCap(1, 1, 1), DefaultPolicy())
			if got := p.arenaBlock(c.memtables); got != c.want {
				t.Errorf("arena block %v, want %v", got, c.want)
			}
		})
	}
}

func TestTheApplicationsOwnCachesStayBesideTheSharedOne(t *testing.T) {
	const tasks = 7 // with 3 stores each
	total := func(own Bytes, each bool) Bytes {
		w := boundedRun()
		w.RocksDB.OwnCache, w.RocksDB.OwnCaches = Known(own, Measured), each
		return PlanFor(w, onlyCap(1, tasks, tasks), DefaultPolicy(), 4*GiB).Bound
	}
	without := total(0, false)
	if got, want := total(100*MiB, false)-without, 130*MiB; got != want {
		t.Errorf("one cache for all: %v more, want its capacity and 0.30 of it, %v", got, want)
	}
	if got, want := total(10*MiB, true)-without, (3*tasks*10*MiB).Scale(13, 10); got != want {
		t.Errorf("a cache for each: %v more, want %v", got, want)
	}
}
