// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Region names one use of memory. The names are stable: pins and the status contain them.
type Region string

// The regions of the heap.
const (
	RegionProducer        Region = "producer"
	RegionCompressionHeap Region = "compression-heap"
	RegionSplitBatches    Region = "split-batches"
	RegionMainConsumer    Region = "main-consumer"
	RegionRestoreConsumer Region = "restore-consumer"
	RegionGlobalConsumer  Region = "global-consumer"
	RegionRestoreRecords  Region = "restore-records"
	RegionRecordQueues    Region = "record-queues"
	RegionRecordCache     Region = "record-cache"
	RegionUncommittedHeap Region = "uncommitted-heap"
	RegionInMemoryStores  Region = "in-memory-stores"
	RegionSuppressBuffers Region = "suppress-buffers"
	RegionApplicationHeap Region = "application-heap"
	RegionHeapReserve     Region = "heap-reserve"
)

// The regions of native memory.
const (
	RegionMetaspace         Region = "metaspace"
	RegionCodeCache         Region = "code-cache"
	RegionCompiler          Region = "compiler"
	RegionThreadStacks      Region = "thread-stacks"
	RegionCollector         Region = "collector"
	RegionDirectMemory      Region = "direct-memory"
	RegionSockets           Region = "sockets"
	RegionCompressionNative Region = "compression-native"
	RegionDecompression     Region = "decompression"
	RegionSplitStreams      Region = "split-streams"
	RegionBlockCache        Region = "block-cache"
	RegionMemtables         Region = "memtables"
	RegionTableReaders      Region = "table-readers"
	RegionStoreFixed        Region = "store-fixed"
	RegionRocksDBOverhead   Region = "rocksdb-overhead"
	RegionCompaction        Region = "compaction"
	RegionIterators         Region = "iterators"
	RegionAllocator         Region = "allocator"
	RegionRestoreBatches    Region = "restore-batches"
	RegionUncommittedNative Region = "uncommitted-native"
	RegionStateDirectory    Region = "state-directory"
	RegionApplicationNative Region = "application-native"
	RegionKernel            Region = "kernel"
	RegionKernelObjects     Region = "kernel-objects"
	RegionPageCache         Region = "page-cache"
)

// term is a term of the split: see the package comment.
type term uint8

// The terms of the split. Free memory belongs to none of them.
const (
	termProducer term = iota
	termConsumer
	termBuffer
	termCache
	termProcess
	termJVM
	termState
	termFree
	termCount
)

// regions has the pool, the label and the term of each region.
var regions = map[Region]struct {
	pool  Pool
	label string
	term  term
}{
	RegionProducer:        {Heap, "producer buffers", termProducer},
	RegionCompressionHeap: {Heap, "compression buffers", termProducer},
	RegionSplitBatches:    {Heap, "split batches", termProducer},
	RegionMainConsumer:    {Heap, "main consumers", termConsumer},
	RegionRestoreConsumer: {Heap, "restore consumers", termConsumer},
	RegionRestoreRecords:  {Heap, "restore buffers", termConsumer},
	RegionRecordQueues:    {Heap, "record queues", termBuffer},
	RegionRecordCache:     {Heap, "record cache", termCache},
	RegionGlobalConsumer:  {Heap, "global consumer", termProcess},
	RegionUncommittedHeap: {Heap, "uncommitted writes", termProcess},
	RegionInMemoryStores:  {Heap, "in-memory stores", termProcess},
	RegionSuppressBuffers: {Heap, "suppress buffers", termProcess},
	RegionApplicationHeap: {Heap, "application heap", termProcess},
	RegionHeapReserve:     {Heap, "free heap", termFree},

	RegionMetaspace:         {Native, "metaspace", termJVM},
	RegionCodeCache:         {Native, "code cache", termJVM},
	RegionCompiler:          {Native, "JIT arenas", termJVM},
	RegionThreadStacks:      {Native, "thread stacks", termJVM},
	RegionCollector:         {Native, "collector", termJVM},
	RegionDirectMemory:      {Native, "direct memory", termJVM},
	RegionSockets:           {Native, "socket buffers", termJVM},
	RegionCompressionNative: {Native, "compression contexts", termJVM},
	RegionDecompression:     {Native, "decompression contexts", termJVM},
	RegionSplitStreams:      {Native, "compressors of split batches", termJVM},
	RegionApplicationNative: {Native, "application native", termJVM},
	RegionKernel:            {Native, "page tables", termJVM},
	RegionKernelObjects:     {Native, "kernel objects", termJVM},
	RegionPageCache:         {Native, "page cache", termJVM},
	RegionBlockCache:        {Native, "block caches", termState},
	RegionMemtables:         {Native, "memtables", termState},
	RegionTableReaders:      {Native, "table readers", termState},
	RegionStoreFixed:        {Native, "RocksDB instances", termState},
	RegionRocksDBOverhead:   {Native, "RocksDB beyond its cache", termState},
	RegionCompaction:        {Native, "compaction read-ahead", termState},
	RegionIterators:         {Native, "iterators", termState},
	RegionAllocator:         {Native, "allocator", termState},
	RegionRestoreBatches:    {Native, "restore write batches", termState},
	RegionUncommittedNative: {Native, "uncommitted write batches", termState},
	RegionStateDirectory:    {Native, "state directory in memory", termState},
}

// line returns a line with the pool and the label of the region. Its expected peak is the bound.
func (r Region) line(bound Bytes, from Provenance, why string) Line {
	info := regions[r]
	return Line{Region: r, Pool: info.pool, Name: info.label, Bound: bound, Expected: bound, From: from, Why: why}
}

// product returns a line with a bound of count times unit.
func (r Region) product(count Count, unit Bytes, from Provenance, why string) Line {
	line := r.line(unit.Mul(count), from, why)
	line.Count = count
	line.Unit = unit
	return line
}
