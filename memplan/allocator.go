// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// glibcNum / glibcDen is what glibc without a limit on its arenas held beyond what RocksDB accounted for: 25 GB for 11 GB of caches,
// memtables and readers, where jemalloc held 13 GB (facebook/rocksdb #5222).
const glibcNum, glibcDen = 14, 11

// fragmentation is the line of what glibc holds beyond what RocksDB accounts for, where it is known that nothing limits its arenas.
//
// An allocator that is limited, and jemalloc, held 1.09 to 1.27 times the capacity of a full cache (measured, runs of a minute). A
// bounded process has that in its rule. jemalloc counts the CPUs of the node: with 14 of them a process of 6.1 GB was 10.01 GB
// (FLINK-39924). As shipped, the bound counts every cache and memtable of every instance full at once, and takes
// it in.
func (b *builder) fragmentation(accounted Bytes) Line {
	line := RegionAllocator.line(0, b.w.Allocator.From, "glibc's arenas without a limit: 14/11 of what RocksDB accounts for")
	held := accounted.Scale(glibcNum, glibcDen)
	allocator := b.w.Allocator
	switch {
	case accounted <= 0:
	case allocator.Value == Jemalloc && allocator.From == Assumed:
		b.warn("jemalloc is asked for, but was not seen in the process: a library that is missing, or built for another processor, is ignored, and glibc "+
			"may take up to %s more than RocksDB accounts for; see that it is loaded, with narenas in MALLOC_CONF: it counts the CPUs of the node", short(held))
	case allocator.Value == Glibc && allocator.From == Assumed:
		b.warn("glibc's arenas may not be limited: RocksDB may take up to %s more than it accounts for; set MALLOC_ARENA_MAX=2 or load jemalloc", short(held))
	case allocator.Value == Glibc:
		line.Bound, line.Expected = held, accounted.Scale(overheadNum, overheadDen)
		b.warn("glibc's arenas are not limited: set MALLOC_ARENA_MAX=2 or load jemalloc, that saves up to %s", short(held))
	}
	return line
}
