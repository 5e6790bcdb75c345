// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// The memory of a RocksDB instance with the defaults of Kafka Streams, beside its fixed cost.
const (
	// offsetsMemory is the offsets column family from 4.3 on: up to two write buffers of 1 MiB, and its almost unused cache.
	offsetsMemory = 3 * MiB
	// checkpointRecords is the number of records after which a commit flushed the stores of a task, before 4.3
	// (StateManagerUtil.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT): memtables were seldom fuller.
	checkpointRecords = 10_000
	// blockSize is the size of a data block (RocksDBStore: 4096).
	blockSize = 4096
	// indexEntry is the size of an index entry beside its key (measured 12 to 20 B).
	indexEntry Bytes = 20
	// longestKey is the assumed longest key of an index entry.
	longestKey Bytes = 64
	// readahead is the read-ahead of a compaction for each input file, compactionFiles the number of those files
	// (level0_file_num_compaction_trigger).
	readahead       = 2 * MiB
	compactionFiles = 4
	// iteratorReadahead is the largest read-ahead of an iterator for each file (RocksDB's max_auto_readahead_size).
	iteratorReadahead = 256 * KiB
)

// defaultStores adds the bottom-up bound of RocksDB without the shared cache: each instance has its own block cache, its memtables, and
// memory outside of them. An application may share a cache by its own setter.
func (b *builder) defaultStores() {
	if b.stores.instances == 0 {
		return
	}
	caches := b.blockCaches()
	memtables := b.memtables()
	readers := b.tableReaders()
	b.add(caches)
	b.add(memtables)
	b.add(readers)
	b.add(b.fragmentation(caches.Bound.Add(memtables.Bound).Add(readers.Bound)))
}

// compactions adds the read-ahead of compactions, outside of any cache. The background threads belong to the process, however many
// instances it has (measured). The rule of a bounded process includes the read-ahead.
func (p *process) compactions(b *builder) {
	if p.workload.Bounded || p.opened.instances == 0 || !p.has(compactionReadahead) {
		return
	}
	jobs := Count(max(p.workload.JVM.CPUs.Value, 2)) // RocksDBStore: max(processors, 2)
	b.add(RegionCompaction.product(min(jobs, maxCount), readahead*compactionFiles, p.workload.JVM.CPUs.From,
		"background jobs x 4 files x 2 MiB"))
}

// blockCaches returns the line of the block caches: one for each instance, or the shared one of the application's own setter. It adds the
// overhead of the shared one.
func (b *builder) blockCaches() Line {
	cfg := &b.workload.RocksDB
	if shared := cfg.SharedCache; shared.Value > 0 {
		over := shared.Value.times(cacheOverhead)
		b.add(RegionRocksDBOverhead.line(over, Measured, "0.30 x cache"))
		return RegionBlockCache.line(shared.Value, shared.From, "one cache for all stores, set by the application's own setter").labelled("shared block cache")
	}
	line := RegionBlockCache.product(b.stores.instances, cfg.BlockCache.Value, cfg.BlockCache.From, "instances x block cache")
	line.Expected = b.worstStores(b.cachedData)
	return line
}

// memtables returns the line of the memtables of each instance, from 4.3 on with those of its offsets. While rows of an old format are
// converted, stores with two column families fill the memtables of both. A shared cache without a write buffer manager does not bound
// memtables.
func (c *client) memtables() Line {
	cfg := &c.workload.RocksDB
	if limit := cfg.WriteBufferLimit; cfg.SharedCache.Value > 0 && limit.Value > 0 {
		half := limit.Value.times(flushOverhead)
		return RegionMemtables.line(half, limit.From, "0.5 x write buffer manager, which is charged to the cache").labelled("memtables being flushed")
	}
	each := cfg.WriteBuffer.Value.Mul(countOf(cfg.MaxWriteBuffers.Value))
	from := weakest(cfg.WriteBuffer.From, cfg.MaxWriteBuffers.From)
	line := RegionMemtables.product(c.stores.instances, each, from, "instances x write buffer x max write buffers")
	families := c.stores.instances
	if cfg.FormatUpgrade.Value {
		families = c.stores.families
		line = RegionMemtables.product(families, each, from, "column families x write buffer x max write buffers, while an old format is converted")
	}
	if !c.has(offsetsFamily) {
		return line.expecting(min(each, max(c.workload.Records.Average.Value, 0).Mul(checkpointRecords)).Mul(families))
	}
	why := line.Why + ", and 3 MiB for offsets"
	if families == c.stores.instances {
		return RegionMemtables.product(families, each.Add(offsetsMemory), from, why)
	}
	bound := line.Bound.Add(offsetsMemory.Mul(c.stores.instances))
	return RegionMemtables.line(bound, from, why)
}

// cachedData returns the data that the block caches of a store can hold: not more than its size, where that is known.
func (c *client) cachedData(s *Store) Bytes {
	full := c.workload.RocksDB.BlockCache.Value.Mul(s.Instances())
	if s.Size.Value > 0 {
		return min(full, s.Size.Value)
	}
	return full
}

// tableReaders returns the line of index and filter blocks. They are outside of the block cache and grow with the data: 1.25 B a key for
// the filter (10 bits), and an index entry for each block. From 4.2 on new files have no filter on the bottom level, with most of the
// data; older files may have one.
func (b *builder) tableReaders() Line {
	average := max(b.workload.Records.Average.Value, 1)
	key := min(average, longestKey)
	from := Measured
	unknown := 0
	index := func(s *Store) Bytes {
		if s.Instances() == 0 {
			return 0
		}
		return max(s.Size.Value, 0).Scale(int64(key+indexEntry), blockSize)
	}
	cost := func(s *Store) Bytes {
		if s.Instances() == 0 {
			return 0
		}
		if s.Size.Value <= 0 {
			unknown++
			return 0
		}
		from = weakest(from, s.Size.From, b.workload.Records.Average.From)
		return s.Size.Value.Scale(5, int64(average.Mul(4))).Add(index(s))
	}
	bound := b.worstStores(cost)
	line := RegionTableReaders.line(bound, from, "1.25 B a key and an index entry a block of 4 KiB")
	if b.has(sparseFilters) {
		line.Expected = b.worstStores(index)
	}
	if unknown > 0 {
		b.warn("stores of unknown size (%d): their index and filter blocks are outside of the block cache, grow with the data and are not counted; "+
			"set their size", unknown)
	}
	return line
}

// iterators adds the read-ahead of open iterators, beside the cache: one for each thread, as joins, windows and sessions have it open
// while they process a record, or the number that the application reports (num-open-iterators, KIP-989).
func (b *builder) iterators() {
	if b.stores.instances == 0 {
		return
	}
	open := b.workload.RocksDB.OpenIterators
	if open.Value <= 0 {
		open = Known(b.load.Threads, Assumed)
	}
	b.add(RegionIterators.product(countOf(open.Value), iteratorReadahead*compactionFiles, open.From,
		"open iterators x 4 files x 256 KiB"))
}
