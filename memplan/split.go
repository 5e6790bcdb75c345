// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Split is the top-down split in its three lines, per thread for the heap and per process for native memory:
//
//	allocable(thread) = heap / threads - Producer - Consumer
//	Cache             = allocable(thread) - Buffer
//	State             = limit - headroom - heap - JVM
//
// Cache and State are what is left for the record caches and the stores. Where they are less than CacheNeed and StateNeed, this pod
// may not have enough memory for its load.
type Split struct {
	// Threads that share the heap.
	Threads int
	// Heap is the part of the heap that lines may fill, 0.7 of it, less Process: what belongs to no thread.
	Heap, Process Bytes
	// HeapPerThread is Heap divided by the threads. Producer, Consumer and Buffer are the shares of one thread.
	HeapPerThread, Producer, Consumer, Allocable, Buffer, Cache Bytes
	// Native is the limit less headroom and heap. JVM is all that is neither heap nor state.
	Native, JVM, State Bytes
	// CacheNeed is what one thread's record cache may take, StateNeed what the stores may take.
	CacheNeed, StateNeed Bytes
}

// splitOf is the split of a plan.
func splitOf(plan Plan, r layout) Split {
	terms := termsOf(plan.Lines)
	threads := max(plan.Load.Threads, 1)
	each := func(b Bytes) Bytes { return b.Scale(1, int64(threads)) }
	s := Split{Threads: threads, Process: terms[termProcess], CacheNeed: each(terms[termCache]), StateNeed: terms[termState], JVM: terms[termJVM]}

	// Heap: allocable(thread) = total / threads - Producer - Consumer; Cache = allocable - Buffer.
	s.Heap = r.heapLow.Sub(r.heapLow.Scale(liveDen-liveNum, liveDen)).Sub(s.Process)
	s.HeapPerThread = s.Heap / Bytes(threads)
	s.Producer, s.Consumer, s.Buffer = each(terms[termProducer]), each(terms[termConsumer]), each(terms[termBuffer])
	s.Allocable = s.HeapPerThread.Sub(s.Producer).Sub(s.Consumer)
	s.Cache = s.Allocable.Sub(s.Buffer)

	// Native: State = limit - headroom - heap - JVM.
	s.Native = plan.Limit.Sub(plan.Headroom).Sub(r.heapHigh)
	s.State = s.Native.Sub(s.JVM)
	return s
}

// termsOf sums the lines by term.
func termsOf(lines []Line) [termCount]Bytes {
	var sums [termCount]Bytes
	for i := range lines {
		at := lines[i].term()
		sums[at] = sums[at].Add(lines[i].Bound)
	}
	return sums
}
