// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// RocksDB as shipped: what an instance takes beside the fixed cost.
const (
	// offsetsMemory is the offsets column family from 4.3 on: up to two write buffers of 1 MiB, and its almost unused cache.
	offsetsMemory = 3 * MiB
	// checkpointRecords is the number of records after which a commit flushed the stores of a task, before 4.3
	// (StateManagerUtil.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT): memtables were seldom fuller than that.
	checkpointRecords = 10_000
	// blockSize is the size of a data block (RocksDBStore: 4096).
	blockSize = 4096
	// indexEntry is an index entry beside its key (measured 12 to 20 B).
	indexEntry Bytes = 20
	// longestKey is the length of key that an index entry is assumed to hold.
	longestKey Bytes = 64
	// readahead is what a compaction reads ahead of each input file, compactionFiles the files of one
	// (level0_file_num_compaction_trigger).
	readahead       = 2 * MiB
	compactionFiles = 4
	// iteratorReadahead is the most that an iterator reads ahead of each file (RocksDB's max_auto_readahead_size).
	iteratorReadahead = 256 * KiB
)

// defaultStores adds the bottom-up bound of unbounded RocksDB: each instance has its own block cache and memtables, and what it keeps
// outside of them. An application may share a cache by a setter of its own.
func (b *builder) defaultStores() {
	if b.stores.instances == 0 {
		return
	}
	caches, memtables := b.blockCaches(), b.memtables()
	readers := b.tableReaders()
	b.add(caches)
	b.add(memtables)
	b.add(readers)
	b.add(b.fragmentation(caches.Bound.Add(memtables.Bound).Add(readers.Bound)))
}

// compactions adds what compactions read ahead, outside of any cache. The background threads are those of the process, however many
// instances there are (measured); a bounded process has it in its rule for the cache.
func (p *process) compactions(b *builder) {
	if p.w.Bounded || p.opened.instances == 0 || !p.has(compactionReadahead) {
		return
	}
	jobs := Count(max(p.w.JVM.CPUs.Value, 2)) // RocksDBStore: max(processors, 2)
	b.add(RegionCompaction.product(min(jobs, maxCount), readahead*compactionFiles, p.w.JVM.CPUs.From,
		"background jobs x 4 files x 2 MiB"))
}

// blockCaches is the line of the block caches: one an instance, or the one that the application's own setter shares, with what it takes
// beyond its capacity.
func (b *builder) blockCaches() Line {
	cfg := &b.w.RocksDB
	if shared := cfg.SharedCache; shared.Value > 0 {
		over := shared.Value.Scale(overheadNum, overheadDen)
		b.add(RegionRocksDBOverhead.line(over, Measured, "0.30 x cache"))
		return RegionBlockCache.line(shared.Value, shared.From, "one cache for all stores, by the application's own setter").labelled("shared block cache")
	}
	line := RegionBlockCache.product(b.stores.instances, cfg.BlockCache.Value, cfg.BlockCache.From, "instances x block cache")
	line.Expected = b.worstStores(b.cachedData)
	return line
}

// memtables is the line of the memtables: those of each instance, and from 4.3 on those of its offsets. While rows of an old format are
// converted, stores with two column families fill the memtables of both. A shared cache without a write buffer manager bounds none of
// them.
func (c *client) memtables() Line {
	cfg := &c.w.RocksDB
	if limit := cfg.WriteBufferLimit; cfg.SharedCache.Value > 0 && limit.Value > 0 {
		half := limit.Value.Scale(1, 2)
		return RegionMemtables.line(half, limit.From, "0.5 x write buffer manager, which is charged to the cache").labelled("memtables being flushed")
	}
	each := cfg.WriteBuffer.Value.Mul(countOf(cfg.MaxWriteBuffers.Value))
	families, why := c.stores.instances, "instances x write buffer x max write buffers"
	if cfg.FormatUpgrade.Value {
		families, why = c.stores.families, "column families x write buffer x max write buffers, while an old format is converted"
	}
	line := RegionMemtables.product(families, each, weakest(cfg.WriteBuffer.From, cfg.MaxWriteBuffers.From), why)
	if c.has(offsetsFamily) {
		offsets := offsetsMemory.Mul(c.stores.instances)
		line.Bound, line.Expected = line.Bound.Add(offsets), line.Expected.Add(offsets)
		line.Count, line.Unit, line.Why = c.stores.instances, each.Add(offsetsMemory), why+", and 3 MiB for offsets"
		if families != c.stores.instances {
			line.Count, line.Unit = 0, 0
		}
		return line
	}
	line.Expected = min(each, max(c.w.Records.Average.Value, 0).Mul(checkpointRecords)).Mul(families)
	return line
}

// cachedData is what the block caches of a store can hold: not more than its data, where that is known.
func (c *client) cachedData(s *Store) Bytes {
	full := c.w.RocksDB.BlockCache.Value.Mul(s.Instances())
	if s.Size.Value > 0 {
		return min(full, s.Size.Value)
	}
	return full
}

// tableReaders is the line of index and filter blocks, which are outside the block cache and grow with the data: 1.25 B a key for the
// filter (10 bits), and an index entry for each block. From 4.2 on new files have no filter on the bottom level, where most of the data
// is; files from before may have one.
func (b *builder) tableReaders() Line {
	average := max(b.w.Records.Average.Value, 1)
	key := min(average, longestKey)
	from, unknown := Measured, 0
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
		from = weakest(from, s.Size.From, b.w.Records.Average.From)
		return s.Size.Value.Scale(5, int64(average.Mul(4))).Add(index(s))
	}
	bound := b.worstStores(cost)
	line := RegionTableReaders.line(bound, from, "1.25 B a key and an index entry a block of 4 KiB")
	if b.has(sparseFilters) {
		line.Expected = b.worstStores(index)
	}
	if unknown > 0 {
		b.warn("stores without a known size (%d): their index and filter blocks are outside the block cache, grow with the data and count "+
			"as nothing; give their size", unknown)
	}
	return line
}

// iterators adds what open iterators read ahead, beside the cache: one a thread, which is what joins, windows and sessions have open
// while they process a record, or as many as the application says (num-open-iterators, KIP-989).
func (b *builder) iterators() {
	if b.stores.instances == 0 {
		return
	}
	open := b.w.RocksDB.OpenIterators
	if open.Value <= 0 {
		open = Known(b.load.Threads, Assumed)
	}
	b.add(RegionIterators.product(countOf(open.Value), iteratorReadahead*compactionFiles, open.From,
		"open iterators x 4 files x 256 KiB"))
}
