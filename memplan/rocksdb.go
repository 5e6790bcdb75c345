// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// What Kafka Streams sets for each RocksDB instance (RocksDBStore, the same from 2.4 to 4.5): 98 MiB with 3 write buffers.
const (
	shippedBlockCache      = 50 * MiB
	shippedWriteBuffer     = 16 * MiB
	shippedMaxWriteBuffers = 3
)

// Memory of a RocksDB instance beside cache and memtables, in bytes.
const (
	// fixedPlain, fixedTimestamped and fixedOffsets are an open instance with one column family, with two, and with the offsets column
	// family of 4.3 (KIP-1035) (measured).
	fixedPlain       Bytes = 171_000
	fixedTimestamped Bytes = 226_000
	fixedOffsets     Bytes = 288_000
	// offsetsMemory is the offsets column family from 4.3 on: up to two write buffers of 1 MiB, and its almost unused cache.
	offsetsMemory = 3 * MiB
	// blockSize is the size of a data block (RocksDBStore: 4096).
	blockSize = 4096
	// indexEntry is an index entry beside its key (measured 12 to 20 B).
	indexEntry Bytes = 20
	// longestKey is the length of key that an index entry is assumed to hold.
	longestKey Bytes = 64
	// readahead is what a compaction reads ahead of each input file from RocksDB 9 on (4.0), compactionFiles the files of one
	// (level0_file_num_compaction_trigger).
	readahead       = 2 * MiB
	compactionFiles = 4
)

// rocksTotals are sums over all RocksDB instances that a pod may open.
type rocksTotals struct {
	instances, families int64
	fixed               Bytes
}

// stores adds the state stores: RocksDB as shipped, or the fixed part of the bounded cost (the layout chooses the rest), and what both
// have.
func (p *planner) stores() {
	t := p.rocksTotals()
	if t.instances > 0 {
		p.add(Line{Region: RegionStoreFixed, Pool: Native, Name: "RocksDB instances", Bound: t.fixed, Expected: t.fixed, Count: t.instances,
			Unit: t.fixed.Scale(1, t.instances), From: p.w.Version.From, Why: "instances x the fixed cost of an open one (measured)"})
	}
	if !p.w.Bounded {
		p.storesAsShipped(t)
	}
	p.stateDirectory()
}

// rocksTotals sums what the tasks of the load and the global stores open.
func (p *planner) rocksTotals() rocksTotals {
	t := rocksTotals{
		instances: p.worstTotal(instances),
		families:  p.worstTotal(dataFamilies),
		fixed:     Bytes(p.worstTotal(p.fixedCost)),
	}
	global := Subtopology{Stores: p.w.GlobalStores}
	t.instances = int64(Bytes(t.instances).Add(Bytes(instances(global))))
	t.families = int64(Bytes(t.families).Add(Bytes(dataFamilies(global))))
	t.fixed = t.fixed.Add(Bytes(p.fixedCost(global)))
	return t
}

// fixedCost is the fixed cost of the instances of a task.
func (p *planner) fixedCost(s Subtopology) int64 {
	sum := Bytes(0)
	for i := range s.Stores {
		unit := fixedPlain
		switch {
		case p.has(offsetsFamily):
			unit = fixedOffsets
		case s.Stores[i].families() > 1:
			unit = fixedTimestamped
		}
		sum = sum.Add(unit.Mul(s.Stores[i].Instances()))
	}
	return int64(sum)
}

// storesAsShipped adds the bottom-up bound of unbounded RocksDB: each instance has its own block cache and memtables, and what it keeps
// outside of them.
func (p *planner) storesAsShipped(t rocksTotals) {
	cfg := &p.w.RocksDB
	memtables := cfg.WriteBuffer.Value.Mul(int64(clampCount(cfg.MaxWriteBuffers.Value)))
	if p.has(offsetsFamily) {
		memtables = memtables.Add(offsetsMemory)
	}
	caches := product(RegionBlockCache, Native, "block caches", t.instances, cfg.BlockCache.Value, cfg.BlockCache.From, "instances x block cache")
	caches.Expected = p.storeSum(p.cachedData)
	p.add(caches)
	p.add(product(RegionMemtables, Native, "memtables", t.instances, memtables, weakest(cfg.WriteBuffer.From, cfg.MaxWriteBuffers.From),
		"instances x write buffer x max write buffers, and 3 MiB for offsets from 4.3 on"))
	if t.instances == 0 {
		return
	}
	p.tableReaders()
	if p.has(compactionReadahead) {
		jobs := int64(max(p.w.JVM.CPUs.Value, 2))
		p.add(product(RegionCompaction, Native, "compaction read-ahead", min(jobs, maxCount), readahead*compactionFiles, p.w.JVM.CPUs.From,
			"background jobs x 4 files x 2 MiB"))
	}
	if p.w.Allocator.Value == Glibc {
		p.warn("glibc's arenas are not limited: RocksDB may take more than it accounts for; set MALLOC_ARENA_MAX=2 or load jemalloc")
	}
}

// cachedData is what the block caches of a store can hold: not more than its data, where that is known.
func (p *planner) cachedData(s Store) Bytes {
	full := p.w.RocksDB.BlockCache.Value.Mul(s.Instances())
	if s.Size.Value > 0 {
		return min(full, s.Size.Value)
	}
	return full
}

// tableReaders adds index and filter blocks, which are outside the block cache and grow with the data: 1.25 B a key for the filter (10
// bits), and an index entry for each block.
func (p *planner) tableReaders() {
	average := max(p.w.Records.Average.Value, 1)
	key := min(average, longestKey)
	from, unknown := Measured, 0
	cost := func(s Store) Bytes {
		if s.Instances() == 0 {
			return 0
		}
		if s.Size.Value <= 0 {
			unknown++
			return 0
		}
		from = weakest(from, s.Size.From, p.w.Records.Average.From)
		filter := s.Size.Value.Scale(5, int64(average.Mul(4)))
		return filter.Add(s.Size.Value.Scale(int64(key+indexEntry), blockSize))
	}
	bound := p.storeSum(cost)
	p.add(Line{Region: RegionTableReaders, Pool: Native, Name: "table readers", Bound: bound, Expected: bound, From: from,
		Why: "1.25 B a key and an index entry a block of 4 KiB"})
	if unknown > 0 {
		p.warn("stores without a known size (%d): their index and filter blocks are outside the block cache, grow with the data and count "+
			"as nothing; give their size", unknown)
	}
}

// stateDirectory adds the files of a state directory in memory.
func (p *planner) stateDirectory() {
	if !p.w.StateDir.InMemory {
		return
	}
	from, unknown := Measured, 0
	bound := p.storeSum(func(s Store) Bytes {
		if s.Instances() == 0 {
			return 0
		}
		if s.Size.Value <= 0 {
			unknown++
		}
		from = weakest(from, s.Size.From)
		return s.Size.Value
	})
	p.add(Line{Region: RegionStateDirectory, Pool: Native, Name: "state directory in memory", Bound: bound, Expected: bound, From: from,
		Why: "tasks x the size of their stores"})
	if unknown > 0 {
		p.warn("the state directory is in memory, and stores without a known size (%d) count as nothing: give their size or put the directory on a disk", unknown)
	}
}

// storeSum is the worst sum of a cost over the stores of the tasks and the global stores.
func (p *planner) storeSum(cost func(Store) Bytes) Bytes {
	return p.heapStoreLine("", "", "", cost).Bound
}
