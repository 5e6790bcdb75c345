// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "strconv"

// The rule of bounded RocksDB: native = 1.30 x cache + 32 MiB + 0.5 x WBM + fixed cost x instances, with the write buffer manager (WBM)
// charged to the cache. 1.30 is the resident memory of a full cache over its capacity (measured 1.09 to 1.27, with glibc and with
// jemalloc). 0.5 is the overshoot of the WBM during restore and flush (Flink's RocksDBMemoryControllerUtils plans the same half): measured
// pins of 60 MiB under a WBM of 38. Blocks are evicted for them, but malloc does not return that memory.
//
// The expected peak is 1.05 x cache + 44 MiB. With caches of 64 to 1024 MiB and 8 to 240 instances (docs/calibration.md), RocksDB and the
// freed memory that malloc kept took the cache and 20 to 85 MiB more within minutes, for any size of the cache, and up to 100 MiB
// within hours. A heap profile (jemalloc, cache of 96 MiB) shows 104 MB alive: blocks, memtables, 7 MB of a compaction. The rest was freed
// and kept, most of it after a restore. The bound has a constant part for it, since the factors do not cover it in a small cache.
var (
	cacheOverhead         = ratio{3, 10}
	expectedCacheOverhead = ratio{1, 20}
	flushOverhead         = ratio{1, 2}
	// memtableShare is the share of the cache that memtables may take: Flink's split for a write ratio of one half,
	// (2*T*w/3) / ((3-w)*T/3) = 2/5.
	memtableShare = ratio{2, 5}
	// cacheCost is the native cost of a cache with that share: 1.30 + 0.5 x 2/5.
	cacheCost = ratio{3, 2}
)

// The constants of bounded RocksDB.
const (
	fixedOverhead         = 32 * MiB
	expectedFixedOverhead = 44 * MiB
	// rounding exceeds the bytes that overhead and flushes, each rounded up, can add to the cost.
	rounding Bytes = 4
	// minCache gives each of the 64 shards of the LRUCache 512 KiB. With less, RocksDB makes fewer shards.
	minCache = 32 * MiB
	// minArena and maxArena are the range of the arena block. RocksDB's own cap is 1 MiB; below 16 KiB allocation costs more than it saves.
	minArena        = 16 * KiB
	maxArena        = 1 * MiB
	arenasPerFamily = 4
	// offsetsCharge is the charge of an instance's offsets column family to the WBM from 4.3 on: two arena blocks of 128 KiB.
	offsetsCharge = 256 * KiB
	// minShare is the smallest WBM for each instance from 4.3 on.
	minShare = 512 * KiB
	// leastMemtable is the smallest write_buffer_size: 4 of RocksDB's own arena blocks do not fit into less (arena_block_size is at most an
	// eighth of it by default).
	leastMemtable = 1 * MiB
)

// sharedCache is the shared block cache with the part of it that memtables may take.
type sharedCache struct {
	capacity, memtables Bytes
	from                Provenance
}

// overhead returns the memory of the cache beyond its capacity.
func (c sharedCache) overhead() Bytes {
	return c.capacity.times(cacheOverhead).Add(fixedOverhead)
}

// expectedOverhead returns the expected peak of the overhead.
func (c sharedCache) expectedOverhead() Bytes {
	return c.capacity.times(expectedCacheOverhead).Add(expectedFixedOverhead)
}

// flushes returns the memory of memtables beyond the WBM during flush and restore.
func (c sharedCache) flushes() Bytes { return c.memtables.times(flushOverhead) }

// smallestCache returns the floor of the shared cache for a load: memtables of a usable size, within their share of the cache. Sizes that
// the application or the user set stay as they are.
func (p *process) smallestCache() sharedCache {
	opened := p.opened
	memtables := (arenasPerFamily * minArena).Mul(opened.families)
	if p.has(offsetsFamily) {
		memtables = max(memtables.Add(offsetsCharge.Mul(opened.instances)), minShare.Mul(opened.instances))
	}
	c := sharedCache{capacity: max(minCache, memtables.over(memtableShare)), from: Derived}
	return c.withSet(&p.workload.RocksDB)
}

// withSet returns the cache with the sizes that the workload sets.
func (c sharedCache) withSet(cfg *RocksDB) sharedCache {
	if cfg.SharedCache.Value > 0 {
		c.capacity = cfg.SharedCache.Value
		c.from = cfg.SharedCache.From
	}
	c.memtables = c.capacity.times(memtableShare)
	if cfg.WriteBufferLimit.Value > 0 {
		c.memtables = cfg.WriteBufferLimit.Value
	}
	return c
}

// expandedCache gives the rest of the limit to the cache, up to the size that the stores could use with RocksDB's defaults.
func (p *process) expandedCache(smallest sharedCache, rest Bytes) sharedCache {
	if !p.workload.Bounded || p.workload.RocksDB.SharedCache.Value > 0 || rest <= 0 {
		return smallest
	}
	c := smallest
	c.capacity = c.capacity.Add(rest.Sub(rounding).over(cacheCost).alignDown(MiB))
	if p.opened.instances > 0 {
		useful := (defaultBlockCache + defaultMaxWriteBuffers*defaultWriteBuffer).Mul(p.opened.instances)
		c.capacity = min(c.capacity, max(useful, smallest.capacity))
	}
	return c.withSet(&p.workload.RocksDB)
}

// costOf returns the native memory of a shared cache, with the pins that replace parts of it.
func (p *process) costOf(c sharedCache) Bytes {
	if !p.workload.Bounded {
		return 0
	}
	return p.pinned(RegionBlockCache, c.capacity).Add(p.pinned(RegionRocksDBOverhead, c.overhead())).Add(p.pinned(RegionMemtables, c.flushes()))
}

// sharedCache adds the lines of the shared cache.
func (b *builder) sharedCache(c sharedCache) {
	b.add(RegionBlockCache.line(c.capacity, c.from, "one cache for all stores, with memtables, index and filter blocks").labelled("shared block cache"))
	b.add(RegionRocksDBOverhead.line(c.overhead(), Measured, "0.30 x cache and 32 MiB: compactions, and freed memory that malloc keeps").
		expecting(c.expectedOverhead()))
	b.add(RegionMemtables.line(c.flushes(), Measured, "0.5 x write buffer manager; the cache evicts blocks for them first").
		labelled("memtables being flushed").expecting(0))
	b.stallWarning(c.memtables)
}

// ownCaches adds the block caches of the application's own setter. They stay in place, and the shared cache then holds the memtables alone.
// Index and filter blocks are outside of a cache unless the setter puts them into it.
func (b *builder) ownCaches() {
	own := b.workload.RocksDB.OwnCache
	if _, pinned := b.pins[RegionBlockCache]; pinned || own.Value <= 0 || b.stores.instances == 0 {
		return
	}
	line := RegionBlockCache.line(own.Value, own.From, "set by its own setter, which the agent leaves in place").labelled("the application's block cache")
	if b.workload.RocksDB.OwnCaches {
		line = RegionBlockCache.product(b.stores.instances, own.Value, own.From,
			"instances x the cache of its own setter, which the agent leaves in place").labelled("the application's block caches")
	}
	b.add(line)
	b.add(RegionRocksDBOverhead.line(line.Bound.times(cacheOverhead), Measured, "0.30 x cache").labelled("RocksDB beyond these caches"))
	b.add(b.tableReaders())
}

// stallWarning warns of memtables of the application's size that do not fill before the write buffer manager flushes them (littlehorse
// #630: with a manager of 64 MB and memtables of 64 MB, writes stalled).
func (b *builder) stallWarning(manager Bytes) {
	if buffer := b.workload.RocksDB.WriteBuffer; buffer.From != Default && buffer.Value > manager/4 {
		b.warn("write_buffer_size of %v is more than a quarter of the write buffer manager of %s: memtables are flushed before they are full, and "+
			"writes stall; lower it, or raise the manager to %s", buffer.Value, short(manager), short(buffer.Value.Mul(4)))
	}
}

// boundedConfigs returns the properties of the shared cache.
func (p *process) boundedConfigs(c sharedCache) []Config {
	number := func(name string, size Bytes) Config {
		return Config{Kind: Property, Name: name, Value: strconv.FormatInt(int64(size), 10), From: c.from}
	}
	all := []Config{number("rocksdb.cache.bytes", c.capacity), number("rocksdb.write.buffer.manager.bytes", c.memtables)}
	if block := p.arenaBlock(c.memtables); block > 0 {
		all = append(all, number("rocksdb.arena.block.bytes", block))
	}
	if buffer := p.memtable(c.memtables); buffer > 0 {
		all = append(all, number("rocksdb.write.buffer.bytes", buffer))
	}
	return all
}

// arenaBlock returns the arena block size for all tasks of the application, so that no rebalance makes it too large:
// (WBM - 0.25 MiB x instances from 4.3 on) / (4 x data column families), in steps of 4 KiB; 0 without known stores. With RocksDB's own
// 1 MiB, 100 stores charge 200 MiB for any WBM, and flush after 26 KB each (measured).
func (p *process) arenaBlock(memtables Bytes) Bytes {
	opened := p.startingCold().stores
	for _, other := range p.others {
		opened = opened.plus(other.startingCold().stores)
	}
	if opened.families == 0 {
		return 0
	}
	if p.has(offsetsFamily) {
		memtables = memtables.Sub(offsetsCharge.Mul(opened.instances))
	}
	block := memtables.per(opened.families.Mul(arenasPerFamily))
	return min(max(block, minArena), maxArena).alignDown(4 * KiB)
}

// memtable returns the write_buffer_size for a write buffer manager; 0 where RocksDB's default fits. The manager flushes when memtables
// take 7/8 of it: the store of the next write, however small its memtable. With at most a quarter of the manager, a busy store flushes
// itself earlier. With less than leastMemtable the manager would flush small memtables, and writes would stall.
func (p *process) memtable(manager Bytes) Bytes {
	if p.workload.RocksDB.WriteBuffer.From != Default || manager/4 >= p.workload.RocksDB.WriteBuffer.Value {
		return 0
	}
	return max((manager / 4).alignDown(MiB), leastMemtable)
}
