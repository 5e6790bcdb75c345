// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "strconv"

// The rule of bounded RocksDB: native = 1.30 x cache + 32 MiB + 0.5 x WBM + fixed cost x instances, with the write buffer manager (WBM)
// charged to the cache. 1.30 is the resident memory of a full cache over its capacity (measured 1.09 to 1.27, glibc and jemalloc alike),
// 0.5 the overshoot of the WBM at restore and flush (Flink's RocksDBMemoryControllerUtils plans the same half): measured pins of 60 MiB
// under a WBM of 38, for which blocks are evicted, whose memory malloc does not give back.
//
// The expected peak is 1.05 x cache + 44 MiB: with caches of 64 to 1024 MiB and 8 to 240 instances (docs/calibration.md), RocksDB and what
// malloc kept of freed memory took the cache and 20 to 85 MiB more within minutes, whatever the size of the cache, and up to 100 within
// hours. A heap profile (jemalloc, cache of 96 MiB) shows 104 MB alive: blocks, memtables, 7 MB of a compaction. The rest was freed and
// kept, after a restore the most. So it needs a part of its own in the bound: the factors do not cover it in a small cache.
const (
	overheadNum, overheadDen = 3, 10
	overheadFixed            = 32 * MiB
	expectedNum, expectedDen = 1, 20
	expectedFixed            = 44 * MiB
	// memtableNum / memtableDen is the share of the cache that memtables may take: Flink's split for a write ratio of one half,
	// (2*T*w/3) / ((3-w)*T/3) = 2/5.
	memtableNum, memtableDen = 2, 5
	// costNum / costDen is the native cost of a cache with that share: 1.30 + 0.5 x 2/5.
	costNum, costDen = 3, 2
	// rounding is more than what overhead and flushes, each rounded up to whole bytes, can add to the cost.
	rounding Bytes = 4
	// minCache gives each of the LRUCache's 64 shards the 512 KiB below which RocksDB makes fewer.
	minCache = 32 * MiB
	// minArena and maxArena hold the arena block: RocksDB's own cap is 1 MiB, below 16 KiB allocation costs more than it saves.
	minArena, maxArena = 16 * KiB, 1 * MiB
	arenasPerFamily    = 4
	// offsetsCharge is what an instance's offsets column family charges to the WBM from 4.3 on: two arena blocks of 128 KiB.
	offsetsCharge = 256 * KiB
	// leastMemtable is the least write_buffer_size: 4 of RocksDB's own arena blocks would not fit into less (arena_block_size is at most an
	// eighth of it by default).
	leastMemtable = 1 * MiB
	// minShare is the least WBM for each instance from 4.3 on.
	minShare = 512 * KiB
)

// sharedCache is the shared block cache with the part of it that memtables may take.
type sharedCache struct {
	capacity, memtables Bytes
	from                Provenance
}

// overhead is what the cache takes beyond its capacity.
func (c sharedCache) overhead() Bytes {
	return c.capacity.Scale(overheadNum, overheadDen).Add(overheadFixed)
}

// expectedOverhead is what is expected of it.
func (c sharedCache) expectedOverhead() Bytes {
	return c.capacity.Scale(expectedNum, expectedDen).Add(expectedFixed)
}

// flushes is what memtables take beyond the WBM while they are flushed and restored.
func (c sharedCache) flushes() Bytes { return c.memtables.Scale(1, 2) }

// smallestCache is the floor of the shared cache for a load: memtables of a usable size, within their share of the cache. What the
// application or the user has fixed stays as it is.
func (p *process) smallestCache() sharedCache {
	t := p.opened
	memtables := (arenasPerFamily * minArena).Mul(t.families)
	if p.has(offsetsFamily) {
		memtables = max(memtables.Add(offsetsCharge.Mul(t.instances)), minShare.Mul(t.instances))
	}
	c := sharedCache{capacity: max(minCache, memtables.Scale(memtableDen, memtableNum)), from: Derived}
	return c.fixed(&p.w.RocksDB)
}

// fixed puts what the workload has fixed in place of what was derived.
func (c sharedCache) fixed(cfg *RocksDB) sharedCache {
	if cfg.SharedCache.Value > 0 {
		c.capacity, c.from = cfg.SharedCache.Value, cfg.SharedCache.From
	}
	c.memtables = c.capacity.Scale(memtableNum, memtableDen)
	if cfg.WriteBufferLimit.Value > 0 {
		c.memtables = cfg.WriteBufferLimit.Value
	}
	return c
}

// expandedCache gives the cache what is left of the limit, up to what the stores could use as shipped.
func (p *process) expandedCache(least sharedCache, rest Bytes) sharedCache {
	if !p.w.Bounded || p.w.RocksDB.SharedCache.Value > 0 || rest <= 0 {
		return least
	}
	c := least
	c.capacity = c.capacity.Add(rest.Sub(rounding).Scale(costDen, costNum).alignDown(MiB))
	if p.opened.instances > 0 {
		useful := (defaultBlockCache + defaultMaxWriteBuffers*defaultWriteBuffer).Mul(p.opened.instances)
		c.capacity = min(c.capacity, max(useful, least.capacity))
	}
	return c.fixed(&p.w.RocksDB)
}

// sharedCache adds the lines of the shared cache.
func (b *builder) sharedCache(c sharedCache) {
	b.add(RegionBlockCache.line(c.capacity, c.from, "one cache for all stores, memtables, index and filter blocks in it").labelled("shared block cache"))
	b.add(RegionRocksDBOverhead.line(c.overhead(), Measured, "0.30 x cache and 32 MiB: compactions, and what malloc keeps").expecting(c.expectedOverhead()))
	b.add(RegionMemtables.line(c.flushes(), Measured, "0.5 x write buffer manager; blocks of the cache give way to them first").
		labelled("memtables being flushed").expecting(0))
	b.stallWarning(c.memtables)
}

// ownCaches adds the block caches that the application's own setter keeps: they stay as the application made them, and the shared cache
// then holds the memtables alone. Index and filter blocks are where the setter puts them: outside of a cache unless it says otherwise.
func (b *builder) ownCaches() {
	own := b.w.RocksDB.OwnCache
	if _, pinned := b.pins[RegionBlockCache]; pinned || own.Value <= 0 || b.stores.instances == 0 {
		return
	}
	line := RegionBlockCache.line(own.Value, own.From, "by its own setter, which the agent leaves in place").labelled("the application's block cache")
	if b.w.RocksDB.OwnCaches {
		line = RegionBlockCache.product(b.stores.instances, own.Value, own.From,
			"instances x the cache of its own setter, which the agent leaves in place").labelled("the application's block caches")
	}
	b.add(line)
	b.add(RegionRocksDBOverhead.line(line.Bound.Scale(overheadNum, overheadDen), Measured, "0.30 x cache").labelled("RocksDB beyond that"))
	b.add(b.tableReaders())
}

// stallWarning says that memtables of the size that the application set do not fill before the write buffer manager flushes them
// (littlehorse #630: a manager of 64 MB under memtables of 64 MB made writes stall).
func (b *builder) stallWarning(manager Bytes) {
	if buffer := b.w.RocksDB.WriteBuffer; buffer.From != Default && buffer.Value > manager/4 {
		b.warn("write_buffer_size of %v is more than a quarter of the write buffer manager of %s: memtables are flushed before they are full, and "+
			"writes stall; lower it, or give the manager %s", buffer.Value, short(manager), short(buffer.Value.Mul(4)))
	}
}

// boundedConfigs are the properties that put the shared cache in force. The arena block is chosen for all tasks of the application,
// so that no rebalance can make it too large.
func (p *process) boundedConfigs(c sharedCache) []Config {
	number := func(name string, b Bytes) Config {
		return Config{Kind: Property, Name: name, Value: strconv.FormatInt(int64(b), 10), From: c.from}
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

// arenaBlock is the arena block size for all tasks: (WBM - 0.25 MiB x instances from 4.3 on) / (4 x data column families), in steps of
// 4 KiB; 0 where no stores are known. With RocksDB's own 1 MiB, 100 stores charge 200 MiB whatever the WBM, and flush after 26 KB each (measured).
func (p *process) arenaBlock(memtables Bytes) Bytes {
	t := p.startingCold().stores
	for _, other := range p.others {
		t = t.plus(other.startingCold().stores)
	}
	if t.families == 0 {
		return 0
	}
	if p.has(offsetsFamily) {
		memtables = memtables.Sub(offsetsCharge.Mul(t.instances))
	}
	block := memtables.per(t.families.Mul(arenasPerFamily))
	return min(max(block, minArena), maxArena).alignDown(4 * KiB)
}

// memtable is write_buffer_size for a write buffer manager, 0 where RocksDB's default does. The manager flushes when memtables take 7/8
// of it, and then the store that happens to write, however little that has. With a quarter of it at most, a busy store flushes itself
// before. A store is not given less than leastMemtable: then the manager flushes small memtables, and writes stall.
func (p *process) memtable(manager Bytes) Bytes {
	if p.w.RocksDB.WriteBuffer.From != Default || manager/4 >= p.w.RocksDB.WriteBuffer.Value {
		return 0
	}
	return max((manager / 4).alignDown(MiB), leastMemtable)
}

// cacheCost is the native memory of a shared cache, with the pins that replace parts of it.
func (p *process) cacheCost(c sharedCache) Bytes {
	if !p.w.Bounded {
		return 0
	}
	return p.pinned(RegionBlockCache, c.capacity).Add(p.pinned(RegionRocksDBOverhead, c.overhead())).Add(p.pinned(RegionMemtables, c.flushes()))
}
