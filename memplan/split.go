// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Split is the top-down split in its three lines, for one thread on the heap and for the process in native memory:
//
//	allocable(thread) = heap / threads - Producer - Consumer
//	Cache             = allocable(thread) - Buffer
//	State             = limit - headroom - heap - JVM
//
// Cache and State remain for the record caches and the stores. If they are less than CacheRequired and StateRequired, the pod may not have
// enough memory for its load.
type Split struct {
	// Threads that share the heap.
	Threads int
	// Heap is the part of the heap that lines may fill, 0.7 of it, without Process: the lines belonging to no thread.
	Heap, Process Bytes
	// HeapPerThread is Heap divided by the threads. Producer, Consumer and Buffer are the shares of one thread.
	HeapPerThread, Producer, Consumer, Allocable, Buffer, Cache Bytes
	// Native is the limit without headroom and heap. JVM is all memory that is neither heap nor state.
	Native, JVM, State Bytes
	// CacheRequired is the size of one thread's record cache, StateRequired that of the stores.
	CacheRequired, StateRequired Bytes
}

// split returns the split of the layout: the two formulas of the package comment, with the heap side divided by the threads.
func (r *layout) split() Split {
	threads := Count(max(r.load.Threads, 1))
	perThread := func(t term) Bytes { return r.sums[t].Scale(1, int64(threads)) }
	s := Split{
		Threads: int(threads), Process: r.sums[termProcess],
		Producer: perThread(termProducer), Consumer: perThread(termConsumer), Buffer: perThread(termBuffer), CacheRequired: perThread(termCache),
		Native: r.native, JVM: r.jvm, State: r.state, StateRequired: r.sums[termState].Add(r.process.costOf(r.cache)),
	}
	s.Heap = r.usable.Sub(s.Process)
	s.HeapPerThread = s.Heap / Bytes(threads)
	s.Allocable = s.HeapPerThread.Sub(s.Producer).Sub(s.Consumer)
	s.Cache = s.Allocable.Sub(s.Buffer)
	return s
}
