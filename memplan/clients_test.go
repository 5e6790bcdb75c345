// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"testing"
)

// lineCase is a workload, a load and the line of a region that they must give.
type lineCase struct {
	w      Workload
	load   Load
	region Region
	// want and wantExpected are the bytes of the line; wantExpected 0 means that it is not looked at.
	want, wantExpected Bytes
	wantFrom           Provenance
}

// run checks the line of each case.
func runLineCases(t *testing.T, cases map[string]lineCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := PlanFor(c.w, c.load, DefaultPolicy(), 4*GiB).line(c.region)
			if got.Bound != c.want {
				t.Errorf("bound of %s = %d, want %d", c.region, got.Bound, c.want)
			}
			if c.wantExpected > 0 && got.Expected != c.wantExpected {
				t.Errorf("expected peak of %s = %d, want %d", c.region, got.Expected, c.wantExpected)
			}
			if got.Bound > 0 && got.From != c.wantFrom {
				t.Errorf("provenance of %s = %v, want %v", c.region, got.From, c.wantFrom)
			}
			if got.Count > 0 && got.Unit.Mul(got.Count) != got.Bound {
				t.Errorf("%s: %d x %d is not %d", c.region, got.Count, got.Unit, got.Bound)
			}
		})
	}
}

// with changes a workload.
func with(w Workload, changes ...func(*Workload)) Workload {
	for _, change := range changes {
		change(&w)
	}
	return w
}

func version(major, minor, patch int) func(*Workload) {
	return func(w *Workload) { w.Version = Known(Version{major, minor, patch}, Spec) }
}

func codec(c Compression, level int) func(*Workload) {
	return func(w *Workload) {
		w.Clients.Producer.Compression, w.Clients.Producer.CompressionLevel = Known(c, App), Known(level, App)
	}
}

func writing(partitions int) func(*Workload) {
	return func(w *Workload) {
		w.Subtopologies = []Subtopology{{ID: "0", Tasks: 4, InputPartitions: 1, WrittenPartitions: partitions}}
	}
}

func TestProducerLines(t *testing.T) {
	load := Load{Threads: 4, Active: 4, Total: 4, Caps: []Cap{{4, 4}}}
	eosV1 := func(w *Workload) { w.Guarantee = Known(ExactlyOnceV1, App) }
	// 0.808263 MB after little input, and 16 KiB of the batch itself
	level3 := Bytes(808_263 + 16_384)
	runLineCases(t, map[string]lineCase{
		"one producer a thread": {w: keyValueApp(4), load: load, region: RegionProducer, want: 128 * MiB, wantExpected: 4 * 16 * KiB, wantFrom: Default},
		"with EOSv1 before 4.0 one an active task": {
			w: with(keyValueApp(4), version(3, 9, 1), eosV1), load: onlyCap(1, 3, 4), region: RegionProducer, want: 96 * MiB, wantFrom: Default,
		},
		"EOSv1 is gone from 4.0 on": {
			w: with(keyValueApp(4), version(4, 0, 0), eosV1), load: onlyCap(1, 3, 4), region: RegionProducer, want: 32 * MiB, wantFrom: Default,
		},
		"no compression holds nothing": {w: with(release(4, 2, 1), writing(200)), load: load, region: RegionCompressionNative, want: 0},
		"zstd: 4 threads x 200 partitions cost 660 MB that no config bounds": {
			w: with(release(4, 2, 1), writing(200), codec(Zstd, 3)), load: load, region: RegionCompressionNative, want: 800 * level3, wantExpected: 200 * level3, wantFrom: App,
		},
		"zstd on level 1": {
			w: with(release(4, 2, 1), writing(200), codec(Zstd, 1)), load: load, region: RegionCompressionNative, want: 800 * (152_903 + 16_384), wantFrom: App,
		},
		"a zstd level between two that were measured counts as the higher": {
			w: with(release(4, 2, 1), writing(1), codec(Zstd, 5)), load: load, region: RegionCompressionNative, want: 4 * (12_700_000 + 16_384), wantFrom: App,
		},
		"zstd on level 19": {
			w: with(release(4, 2, 1), writing(1), codec(Zstd, 19)), load: load, region: RegionCompressionNative, want: 4 * (84_500_000 + 16_384), wantFrom: App,
		},
		"zstd on level 22": {
			w: with(release(4, 2, 1), writing(1), codec(Zstd, 22)), load: load, region: RegionCompressionNative, want: 4 * (680_000_000 + 16_384), wantFrom: App,
		},
		"zstd before 2.8 keeps its output array": {
			w: with(release(2, 7, 0), writing(10), codec(Zstd, 3)), load: load, region: RegionCompressionHeap, want: 40 * 131_653, wantFrom: App,
		},
		"zstd from 2.8 on has a buffer before it": {
			w: with(release(2, 8, 0), writing(10), codec(Zstd, 3)), load: load, region: RegionCompressionHeap, want: 40 * (131_653 + 16*KiB), wantFrom: App,
		},
		"gzip on the heap":         {w: with(release(4, 2, 1), writing(10), codec(Gzip, 3)), load: load, region: RegionCompressionHeap, want: 40 * 24 * KiB, wantFrom: App},
		"gzip outside":             {w: with(release(4, 2, 1), writing(10), codec(Gzip, 3)), load: load, region: RegionCompressionNative, want: 40 * 256 * KiB, wantFrom: App},
		"snappy":                   {w: with(release(4, 2, 1), writing(10), codec(Snappy, 3)), load: load, region: RegionCompressionHeap, want: 40 * 70 * KiB, wantFrom: App},
		"lz4":                      {w: with(release(4, 2, 1), writing(10), codec(LZ4, 3)), load: load, region: RegionCompressionHeap, want: 40 * 129 * KiB, wantFrom: App},
		"lz4 holds nothing native": {w: with(release(4, 2, 1), writing(10), codec(LZ4, 3)), load: load, region: RegionCompressionNative, want: 0},
		"no more batches are open than buffer.memory holds": {
			w: with(release(4, 2, 1), writing(10_000), codec(LZ4, 3)), load: load, region: RegionCompressionHeap, want: 4 * 2048 * 129 * KiB, wantFrom: App,
		},
		"a split batch is outside buffer.memory": {
			w: with(release(4, 2, 1), writing(1), codec(LZ4, 3)), load: load, region: RegionSplitBatches, want: 4 * (1*MiB + 64*88), wantFrom: Default,
		},
		"up to 2.5 the parts of a split batch keep their streams": {
			w: with(release(2, 5, 1), writing(1), codec(Zstd, 3)), load: load, region: RegionSplitBatches, want: 4 * (1*MiB + 64*(88+131_653)), wantFrom: Default,
		},
		"and native memory with them": {
			w: with(release(2, 5, 1), writing(1), codec(Zstd, 3)), load: load, region: RegionSplitStreams, want: 4 * 64 * 808_263, wantFrom: Default,
		},
		"from 2.6 on they close them":                 {w: with(release(2, 6, 0), writing(1), codec(Zstd, 3)), load: load, region: RegionSplitStreams, want: 0},
		"other codecs have nothing native to keep":    {w: with(release(2, 5, 1), writing(1), codec(LZ4, 3)), load: load, region: RegionSplitStreams, want: 0},
		"an uncompressed batch does not split":        {w: with(release(4, 2, 1), writing(1)), load: load, region: RegionSplitBatches, want: 0},
		"a paused partition keeps a zstd stream open": {w: with(release(4, 2, 1), writing(1), codec(Zstd, 3)), load: load, region: RegionDecompression, want: 4 * 2_586_424, wantFrom: App},
	})
}

// The heap dump of KAFKA-9703 held 20,119 open zstd streams and 20,118 batches of a batch.size of 64 KiB.
func TestSplitBatchesOfTheHeapDump(t *testing.T) {
	w := with(release(2, 5, 0), codec(Zstd, 3))
	w.Clients.Producer.BatchSize = Known(64*KiB, App)
	p := newProcess(&w, Load{Threads: 1}, DefaultPolicy())
	heap, native := p.compressionContext()
	if got, want := 64*KiB+batchOverhead, Bytes(1_320_223_632/20_118); got != want {
		t.Errorf("a batch takes %d, the dump had %d", got, want)
	}
	if object := (2_648_721_080 * Bytes(1)).Scale(1, 20_119); object != heap {
		t.Errorf("a stream takes %d on the heap, the dump had %d", heap, object)
	}
	perStream := (22*GiB - 7_177*MiB) / 20_119
	if empty := native - 64*KiB; empty < perStream*99/100 || empty > perStream*102/100 {
		t.Errorf("a stream that saw little takes %d native, the dump had %d", empty, perStream)
	}
}

func partitions(inputs int) func(*Workload) {
	return func(w *Workload) { w.Subtopologies[0].InputPartitions = inputs }
}

func eosV1(w *Workload) { w.Guarantee = Known(ExactlyOnceV1, App) }

func exactBatch(w *Workload) { w.Records.LargestBatch = Known(1*MiB, App) }

func TestConsumerLines(t *testing.T) {
	small := onlyCap(2, 4, 6)
	big := onlyCap(2, 1000, 1000)
	many := with(keyValueApp(1000), exactBatch)
	global := func(partitions int) func(*Workload) {
		return func(w *Workload) { w.GlobalStores = []Store{{Kind: TimestampedKeyValue, Partitions: partitions}} }
	}
	brokers := func(w *Workload) { w.Brokers = Known(3, Measured) }
	tls := func(w *Workload) { w.TLS = Known(true, App) }
	direct := func(w *Workload) { w.JVM.MaxDirect = Known(5*MiB, App) }
	runLineCases(t, map[string]lineCase{
		"few partitions bound the main consumers":               {w: with(keyValueApp(8), exactBatch, partitions(2)), load: small, region: RegionMainConsumer, want: 8 * MiB, wantFrom: Assumed},
		"provenance is known where all parts are":               {w: with(keyValueApp(8), exactBatch, brokers), load: small, region: RegionMainConsumer, want: 4 * MiB, wantFrom: Default},
		"brokers bound the main consumers of many partitions":   {w: many, load: big, region: RegionMainConsumer, want: 2 * 150 * MiB, wantFrom: Assumed},
		"a larger batch is returned whole":                      {w: keyValueApp(8), load: small, region: RegionMainConsumer, want: 4 * 1_048_588, wantFrom: Assumed},
		"before 4.0 every partition may be buffered":            {w: with(many, version(3, 9, 1)), load: big, region: RegionMainConsumer, want: 1300 * MiB, wantExpected: 300 * MiB, wantFrom: Assumed},
		"before 4.0 responses are held as long as a part of it": {w: with(many, version(3, 9, 1)), load: small, region: RegionMainConsumer, want: 8 * MiB, wantExpected: 4 * MiB, wantFrom: Assumed},
		"tasks of any role restore":                             {w: with(keyValueApp(8), exactBatch), load: small, region: RegionRestoreConsumer, want: 6 * MiB, wantFrom: Assumed},
		"stores without changelog do not restore": {
			w: with(keyValueApp(8), func(w *Workload) { w.Subtopologies[0].Stores[0].Unlogged = true }), load: small, region: RegionRestoreConsumer, want: 0,
		},
		"a global consumer reads all partitions of its stores":  {w: with(keyValueApp(8), exactBatch, global(12)), load: small, region: RegionGlobalConsumer, want: 12 * MiB, wantFrom: Assumed},
		"of unknown size, bounded by the brokers":               {w: with(keyValueApp(8), global(0)), load: small, region: RegionGlobalConsumer, want: 150 * MiB, wantFrom: Assumed},
		"direct memory: stream threads and state updaters":      {w: with(keyValueApp(8), exactBatch), load: small, region: RegionDirectMemory, want: 2 * (4 + 6) * MiB, wantExpected: (4 + 6) * MiB, wantFrom: Default},
		"direct memory before 3.8: stream threads do both":      {w: with(keyValueApp(8), exactBatch, version(3, 7, 0)), load: small, region: RegionDirectMemory, want: 2 * 6 * MiB, wantFrom: Default},
		"direct memory of many partitions is a response each":   {w: many, load: big, region: RegionDirectMemory, want: 2 * 2 * 50 * MiB, wantFrom: Default},
		"direct memory with a global consumer":                  {w: with(keyValueApp(8), exactBatch, global(12)), load: small, region: RegionDirectMemory, want: 32 * MiB, wantFrom: Default},
		"no direct memory with TLS":                             {w: with(keyValueApp(8), tls), load: small, region: RegionDirectMemory, want: 0},
		"MaxDirectMemorySize is a wall":                         {w: with(keyValueApp(8), direct), load: small, region: RegionDirectMemory, want: 5 * MiB, wantFrom: App},
		"sockets: three clients a thread, and the admin client": {w: with(keyValueApp(8), brokers), load: small, region: RegionSockets, want: 3 * (2*(160+192+192) + 192) * KiB, wantFrom: Default},
		"sockets of a global consumer":                          {w: with(keyValueApp(8), brokers, global(1)), load: small, region: RegionSockets, want: 3 * (2*(160+192+192) + 192 + 192) * KiB, wantFrom: Default},
		"sockets of a producer for each active task": {
			w: with(keyValueApp(8), brokers, version(3, 9, 1), eosV1), load: small, region: RegionSockets, want: 3 * (2*(192+192) + 4*160 + 192) * KiB, wantFrom: Default,
		},
		"and a network thread for each": {
			w: with(keyValueApp(8), version(3, 9, 1), eosV1), load: small, region: RegionThreadStacks, want: (2*3 + 4 + 28) * 256 * KiB, wantFrom: Assumed,
		},
		"kernel objects of threads and files": {w: keyValueApp(8), load: small, region: RegionKernelObjects, want: 36*28*KiB + 6*27*1632, wantFrom: Assumed},
		"sockets that the kernel tunes": {
			w: with(keyValueApp(8), brokers, func(w *Workload) { w.Clients.Main.ReceiveBuffer = Known(Bytes(-1), App) }), load: small,
			region: RegionSockets, want: 3 * (2*((160+128+192)*KiB+6*MiB) + 192*KiB), wantFrom: App,
		},
	})
}

func TestRecordLines(t *testing.T) {
	load := onlyCap(2, 4, 6)
	average := func(b Bytes) func(*Workload) { return func(w *Workload) { w.Records.Average = Known(b, Measured) } }
	cache := func(b Bytes) func(*Workload) { return func(w *Workload) { w.Clients.RecordCache = Known(b, App) } }
	transactional := func(limit Bytes) func(*Workload) {
		return func(w *Workload) {
			w.Clients.TransactionalStores, w.Clients.Uncommitted = Known(true, App), Known(limit, App)
		}
	}
	store := func(s Store) func(*Workload) { return func(w *Workload) { w.Subtopologies[0].Stores = []Store{s} } }
	size := Known(100*MiB, Measured)
	runLineCases(t, map[string]lineCase{
		"queues: a poll comes on top of what pauses":      {w: with(keyValueApp(8), average(1000)), load: load, region: RegionRecordQueues, want: 4 * 2000 * 1200, wantExpected: 4 * 1000 * 1200, wantFrom: Default},
		"restore buffers on the heap":                     {w: with(keyValueApp(8), average(1000)), load: load, region: RegionRestoreRecords, want: 2 * 1000 * 1200, wantFrom: Default},
		"restore batches outside":                         {w: with(keyValueApp(8), average(1000)), load: load, region: RegionRestoreBatches, want: 2 * 1000 * 1000, wantFrom: Default},
		"record cache: 2.5 times where sizes are assumed": {w: keyValueApp(8), load: load, region: RegionRecordCache, want: 25 * MiB, wantFrom: Assumed},
		"from 4.1 on an entry keeps its source record":    {w: with(keyValueApp(8), average(1024), cache(1088)), load: load, region: RegionRecordCache, want: 1088 + 350 + 1024 + 16, wantFrom: App},
		"record cache of records of 1,032 B":              {w: with(keyValueApp(8), version(4, 0, 1), average(1032), cache(1096)), load: load, region: RegionRecordCache, want: 1096 + 265, wantFrom: App},
		"record cache of records of 116 B":                {w: with(keyValueApp(8), version(4, 0, 1), average(116), cache(180)), load: load, region: RegionRecordCache, want: 180 + 265, wantFrom: App},
		"a record cache of 0 stays 0":                     {w: with(keyValueApp(8), cache(0)), load: load, region: RegionRecordCache, want: 0},
		"no store uses the record cache":                  {w: with(keyValueApp(8), store(Store{Kind: Versioned})), load: load, region: RegionRecordCache, want: 0},
		"without a topology it may be used":               {w: release(4, 2, 1), load: load, region: RegionRecordCache, want: 25 * MiB, wantFrom: Assumed},
		"uncommitted writes on the heap":                  {w: with(keyValueApp(8), version(4, 4, 0), average(300), transactional(64*MiB)), load: load, region: RegionUncommittedHeap, want: 48 * MiB, wantFrom: App},
		"uncommitted writes outside":                      {w: with(keyValueApp(8), version(4, 4, 0), transactional(64*MiB)), load: load, region: RegionUncommittedNative, want: 32 * MiB, wantFrom: App},
		"uncommitted writes of a tenth of a second":       {w: with(keyValueApp(8), version(4, 4, 0), average(300), transactional(64*MiB), func(w *Workload) { w.Guarantee = Known(ExactlyOnceV2, App) }), load: load, region: RegionUncommittedNative, want: 32 * MiB, wantExpected: 2 * 1000 * 300, wantFrom: App},
		"uncommitted writes without a bound":              {w: with(keyValueApp(8), version(4, 4, 0), transactional(-1)), load: load, region: RegionUncommittedNative, want: 32 * MiB, wantFrom: Assumed},
		"no uncommitted writes before 4.4":                {w: with(keyValueApp(8), version(4, 3, 1), transactional(64*MiB)), load: load, region: RegionUncommittedHeap, want: 0},
		"in-memory stores of tasks of any role": {
			w: with(keyValueApp(8), average(130), store(Store{InMemory: true, Size: size})), load: load, region: RegionInMemoryStores, want: 6 * 200 * MiB, wantFrom: Measured,
		},
		"a suppress buffer with maxBytes": {
			w: with(keyValueApp(8), average(130), store(Store{Kind: Suppress, MaxSuppress: Known(10*MiB, App)})), load: load, region: RegionSuppressBuffers, want: 60 * MiB, wantFrom: Assumed,
		},
		"the application's own heap":   {w: keyValueApp(8), load: load, region: RegionApplicationHeap, want: 48 * MiB, wantFrom: Assumed},
		"the application's own native": {w: with(keyValueApp(8), func(w *Workload) { w.Application.Native = size }), load: load, region: RegionApplicationNative, want: 100 * MiB, wantFrom: Measured},
	})
}

// The real cost of a cached entry was measured, before 4.1 and with 4.4.0 (test/calibration/records).
func TestTheRecordCacheIsNotBelowTheMeasuredSize(t *testing.T) {
	cases := map[string]struct {
		version                 Version
		record, accounted, real Bytes
	}{
		"16/100, clean, before 4.1": {version: Version{3, 9, 1}, record: 116, accounted: 180, real: 396},
		"16/100, dirty, before 4.1": {version: Version{3, 9, 1}, record: 116, accounted: 180, real: 444},
		"32/1000, before 4.1":       {version: Version{3, 9, 1}, record: 1032, accounted: 1096, real: 1356},
		"8/16, before 4.1":          {version: Version{3, 9, 1}, record: 24, accounted: 88, real: 348},
		"8/16":                      {version: Version{4, 4, 0}, record: 24, accounted: 87, real: 416},
		"16/100":                    {version: Version{4, 4, 0}, record: 116, accounted: 179, real: 608},
		"32/1000":                   {version: Version{4, 4, 0}, record: 1032, accounted: 1095, real: 2445},
		"32/4000":                   {version: Version{4, 4, 0}, record: 4032, accounted: 4095, real: 8452},
		"32/10000":                  {version: Version{4, 4, 0}, record: 10_032, accounted: 10_095, real: 20_573},
		"32/20000":                  {version: Version{4, 4, 0}, record: 20_032, accounted: 20_095, real: 40_533},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := keyValueApp(1)
			w.Version, w.Records.Average = Known(c.version, Spec), Known(c.record, Measured)
			p := newProcess(&w, onlyCap(1, 1, 1), DefaultPolicy())
			if got := p.cacheOnHeap(c.accounted); got < c.real || got > c.real.Scale(13, 10) {
				t.Errorf("an entry costs %d, measured %d", got, c.real)
			}
		})
	}
}

// Records were measured in a queue and in a store on the heap as well.
func TestRecordsOnTheHeapAreNotBelowTheMeasuredSize(t *testing.T) {
	for record, real := range map[Bytes]struct{ queued, stored Bytes }{
		24: {196, 120}, 116: {293, 216}, 1032: {1210, 1128}, 10_032: {10_203, 10_128},
	} {
		if got := record + queuedOverhead; got < real.queued || got > real.queued+50 {
			t.Errorf("a record of %d queued costs %d, measured %d", record, got, real.queued)
		}
		if got := record + inMemoryOverhead; got < real.stored || got > real.stored+50 {
			t.Errorf("a record of %d in a store costs %d, measured %d", record, got, real.stored)
		}
	}
}
