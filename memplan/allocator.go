// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// glibcNum / glibcDen is what glibc without a limit on its arenas held beyond what RocksDB accounted for: 25 GB for 11 GB of caches,
// memtables and readers, where jemalloc held 13 GB (facebook/rocksdb #5222).
const glibcNum, glibcDen = 14, 11

// fragmentation is the line of what glibc holds beyond what RocksDB accounts for, where it is known that nothing limits its arenas.
//
// An allocator that is limited, and jemalloc, held 1.09 to 1.27 times the capacity of a full cache (measured, runs of a minute). A
// bounded process has that in its rule. As shipped, the bound counts every cache and memtable of every instance full at once, and takes
// it in.
func (p *planner) fragmentation(accounted Bytes) Line {
	line := Line{Region: RegionAllocator, Pool: Native, Name: "allocator", From: p.w.Allocator.From,
		Why: "glibc's arenas without a limit: 14/11 of what RocksDB accounts for"}
	held := accounted.Scale(glibcNum, glibcDen)
	switch {
	case p.w.Allocator.Value != Glibc || accounted <= 0:
	case p.w.Allocator.From == Assumed:
		p.warn("glibc's arenas may not be limited: RocksDB may take up to %s more than it accounts for; set MALLOC_ARENA_MAX=2 or load jemalloc", short(held))
	default:
		line.Bound, line.Expected = held, accounted.Scale(overheadNum, overheadDen)
		p.warn("glibc's arenas are not limited: set MALLOC_ARENA_MAX=2 or load jemalloc, that saves up to %s", short(held))
	}
	return line
}
