// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Region names one use of memory. The names are stable: pins and status use them.
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
