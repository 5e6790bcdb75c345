// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// glibcOverhead is the memory of glibc without a limit on its arenas beyond the memory that RocksDB accounts for, as a ratio: it took 25 GB
// for 11 GB of caches, memtables and readers. jemalloc took 13 GB for them (facebook/rocksdb #5222).
var glibcOverhead = ratio{14, 11}

// fragmentation returns the line of the memory that glibc takes beyond the memory that RocksDB accounts for. It has an amount only where
// glibc is known to have no limit on its arenas.
//
// A limited allocator and jemalloc took 1.09 to 1.27 times the capacity of a full cache (measured, runs of a minute). The rule of a
// bounded process includes that. jemalloc counts the CPUs of the node: with 14 of them a process of 6.1 GB was 10.01 GB (FLINK-39924).
// With RocksDB's defaults the bound counts every cache and memtable of every instance full at once, which includes it too.
func (b *builder) fragmentation(accounted Bytes) Line {
	line := RegionAllocator.line(0, b.workload.Allocator.From, "glibc without a limit on its arenas: 14/11 of the memory that RocksDB accounts for")
	held := accounted.times(glibcOverhead)
	allocator := b.workload.Allocator
	switch {
	case accounted <= 0:
	case allocator.Value == Jemalloc && allocator.From == Assumed:
		b.warn("jemalloc is configured but was not found in the process: a library that is missing, or built for another processor, is ignored, and "+
			"glibc may take up to %s more than RocksDB accounts for; make sure that it is loaded, and set narenas in MALLOC_CONF, since jemalloc "+
			"counts the CPUs of the node", short(held))
	case allocator.Value == Glibc && allocator.From == Assumed:
		b.warn("the arenas of glibc may be unlimited: RocksDB may take up to %s more than it accounts for; set MALLOC_ARENA_MAX=2 or load jemalloc", short(held))
	case allocator.Value == Glibc:
		line = line.bounded(held, line.Why).expecting(accounted.times(cacheOverhead))
		b.warn("the arenas of glibc are unlimited: set MALLOC_ARENA_MAX=2 or load jemalloc to save up to %s", short(held))
	}
	return line
}
