// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Heap beside the serialized bytes of a record, in bytes. Measured with Kafka Streams 4.4.0 on OpenJDK 17 with compressed pointers: the
// real structures were filled with 20,000 to 200,000 records, and the used heap was compared after full collections
// (test/calibration/records):
//
//	key + value   queued   cached clean   cached dirty   in a store on the heap
//	  8 +    16      196    304 (   69)    416 (   87)      120
//	 16 +   100      293    400 (  161)    608 (  179)      216
//	 32 +  1000     1210   1316 ( 1077)   2445 ( 1095)     1128
//	 32 + 10000    10203  10313 (10077)  20573 (10095)    10128
//
// The numbers in brackets are the bytes that the cache counts. So bytes describe a queue as well as a store, with a constant for each
// record. They do not describe the record cache: it counts neither its own objects nor, from 4.1 on, the source record of a dirty entry.
const (
	// queuedOverhead is a ConsumerRecord in a record queue: 171 to 178 B without headers.
	queuedOverhead Bytes = 200
	// cachedHeader is counted by the record cache itself beside key and value (NamedCache.LRUNode, ProcessorRecordContext).
	cachedHeader Bytes = 64
	// cachedUncounted is not counted by it, beside the source record: 216 to 265 B an entry in versions before 4.1.
	cachedUncounted Bytes = 265
	// cachedSource is the memory of an entry from 4.1 on beyond that, beside the bytes of its source record and a 64th of them: 305 to 350 B
	// in all for records of up to 4 KB.
	cachedSource Bytes = 85
	// uncommittedOverhead is a TreeMap entry of the transaction buffer, as of a store on the heap, with the object of its operation.
	uncommittedOverhead Bytes = 150
	// inMemoryOverhead is an entry of an in-memory store: 96 to 100 B, and more for windows, which have longer keys.
	inMemoryOverhead Bytes = 130
)

// records adds the lines of records: queues, restore buffers, record cache, uncommitted writes and stores on the heap.
func (b *builder) records() {
	b.recordQueues()
	b.restoreRecords()
	b.recordCache()
	b.uncommitted()
	b.heapStores()
}

// averageRecord returns the average size of a record, at least a least one.
func (c *client) averageRecord(least Bytes) Bytes {
	return max(c.workload.Records.Average.Value, least)
}

// recordQueues adds the queues of the input partitions. A partition is paused only after a poll has filled it beyond
// buffered.records.per.partition, so it may hold max.poll.records more (StreamTask.addRecords). No byte bound exists (KIP-770 was
// reverted); records count with their average size.
func (b *builder) recordQueues() {
	clients := &b.workload.Clients
	perRecord := b.averageRecord(0).Add(queuedOverhead)
	buffered := countOf(clients.BufferedRecordsPerPartition.Value)
	polled := countOf(clients.Main.MaxPollRecords.Value)
	partitions := b.partitions(mainRole)
	b.add(RegionRecordQueues.product(partitions, perRecord.Mul(buffered+polled),
		weakest(clients.BufferedRecordsPerPartition.From, clients.Main.MaxPollRecords.From, b.workload.Records.Average.From),
		"input partitions x (buffered.records.per.partition + max.poll.records) x (average record + 200 B)").
		expecting(perRecord.Mul(buffered).Mul(partitions)))
}

// restoreRecords adds the records of one poll of each restore consumer: on the heap in StoreChangelogReader, and again in a WriteBatch.
func (b *builder) restoreRecords() {
	if b.partitions(restoreRole) == 0 {
		return
	}
	average := b.averageRecord(0)
	polled := b.workload.Clients.Restore.MaxPollRecords
	count := b.streamThreads() * countOf(polled.Value)
	from := weakest(polled.From, b.workload.Records.Average.From)
	b.add(RegionRestoreRecords.product(count, average.Add(queuedOverhead), from, "threads x max.poll.records x (average record + 200 B)"))
	b.add(RegionRestoreBatches.product(count, average, from, "threads x max.poll.records x average record"))
}

// recordCache adds the record cache with its full cost: it counts serialized bytes, but the heap holds objects.
func (b *builder) recordCache() {
	cache := b.workload.Clients.RecordCache
	if cache.Value <= 0 || !b.caches() {
		return
	}
	why := " x (entry + 265 B) / entry: the cache counts less than the heap holds"
	if b.has(cacheKeepsSource) {
		why = " x (entry + 350 B + source record) / entry: the cache counts less than the heap holds"
	}
	b.add(RegionRecordCache.line(b.cacheOnHeap(cache.Value), weakest(cache.From, b.workload.Records.Average.From), recordCacheConfig.nameIn(b.version)+why))
}

// cacheOnHeap returns the heap of a full record cache: (accounted + 265 B) / accounted, from 4.1 on with the source record, which counts as
// of average size; and 2.5 times where record sizes are assumed (2.2 for records of 1,000 B, 4.8 for those of 24 B).
func (c *client) cacheOnHeap(cache Bytes) Bytes {
	average := c.workload.Records.Average
	if average.From == Assumed || average.Value <= 0 {
		return cache.Scale(5, 2)
	}
	accounted := average.Value.Add(cachedHeader)
	held := accounted.Add(cachedUncounted)
	if c.has(cacheKeepsSource) {
		held = held.Add(cachedSource).Add(average.Value.Scale(65, 64))
	}
	return cache.Scale(int64(held), int64(accounted))
}

// caches reports whether any store may use the record cache. Without a known topology it may.
func (c *client) caches() bool {
	for i := range c.workload.Subtopologies {
		if cachedStores(&c.workload.Subtopologies[i]) > 0 {
			return true
		}
	}
	return len(c.workload.Subtopologies) == 0
}

// uncommitted adds the uncommitted writes of transactional stores (KIP-892, 4.4): a TreeMap on the heap and a WriteBatch outside. Both count
// towards statestore.uncommitted.max.bytes, so half of it each.
func (b *builder) uncommitted() {
	clients := &b.workload.Clients
	if !clients.TransactionalStores.Value || !b.has(transactionalStores) {
		return
	}
	limit := clients.Uncommitted
	if limit.Value < 0 {
		b.warn("statestore.uncommitted.max.bytes is -1: uncommitted writes are unbounded; set it")
		limit = Known(defaultUncommitted, Assumed)
	}
	half := limit.Value.Scale(1, 2)
	average := b.averageRecord(1)
	expected := half
	if b.workload.Guarantee.Value != AtLeastOnce { // a commit every 100 ms (StreamsConfig.EOS_DEFAULT_COMMIT_INTERVAL_MS): about a poll of each thread
		polled := b.streamThreads() * countOf(clients.Main.MaxPollRecords.Value)
		expected = min(half, average.Mul(polled))
	}
	onHeap := func(amount Bytes) Bytes { return amount.Scale(int64(average.Add(uncommittedOverhead)), int64(average)) }
	b.add(RegionUncommittedHeap.line(onHeap(half), limit.From, "half of statestore.uncommitted.max.bytes, with 150 B an entry").expecting(onHeap(expected)))
	b.add(RegionUncommittedNative.line(half, limit.From, "half of statestore.uncommitted.max.bytes").expecting(expected))
}

// heapStores adds stores on the heap: in-memory stores and suppress buffers.
func (b *builder) heapStores() {
	unknown := 0
	average := b.averageRecord(1)
	b.add(b.heapStoreLine(RegionInMemoryStores, "tasks x the store's size, with 130 B an entry", func(s *Store) Bytes {
		if !s.InMemory || s.Kind == Suppress {
			return 0
		}
		if s.Size.Value <= 0 {
			unknown++
			return 0
		}
		return s.Size.Value.Scale(int64(average.Add(inMemoryOverhead)), int64(average))
	}))
	b.add(b.heapStoreLine(RegionSuppressBuffers, "tasks x maxBytes of the buffer, or its size", func(s *Store) Bytes {
		if s.Kind != Suppress {
			return 0
		}
		if s.MaxSuppress.Value <= 0 && s.Size.Value <= 0 {
			unknown++
		}
		return max(s.MaxSuppress.Value, s.Size.Value, 0)
	}))
	if unknown > 0 {
		b.warn("stores of unknown size on the heap (%d) are not counted; set their size", unknown)
	}
}

// heapStoreLine returns the line of a cost of stores.
func (c *client) heapStoreLine(region Region, why string, cost func(*Store) Bytes) Line {
	from := Measured
	bound := c.worstStores(func(store *Store) Bytes {
		each := cost(store)
		if each > 0 {
			from = weakest(from, store.Size.From, c.workload.Records.Average.From)
		}
		return each
	})
	return region.line(bound, from, why)
}

// application adds the application's own memory.
func (b *builder) application() {
	own := b.workload.Application
	b.add(RegionApplicationHeap.line(own.LiveSet.Value, own.LiveSet.From, "the application's own live set"))
	b.add(RegionApplicationNative.line(own.Native.Value, own.Native.From, "the application's own native memory, other agents"))
}
