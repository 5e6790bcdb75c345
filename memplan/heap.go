// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "math"

// The JVM's rule for the heap (Arguments::set_heap_size, alike in JDK 11 to 25).
const (
	// defaultMaxHeap is the built-in MaxHeapSize of a 64-bit JVM (96 MiB x 1.3, in words): a container whose MinRAMPercentage is less
	// than this is small.
	defaultMaxHeap Bytes = 130_862_280
	// heapAlignment is the least alignment of the heap: what one page of the card table covers.
	heapAlignment = 2 * MiB
	// maxHeapAlignment is the largest region of G1.
	maxHeapAlignment = 32 * MiB
	// regionsPerHeap is the number of regions that G1 aims at.
	regionsPerHeap = 2048
	// liveNum / liveDen is the part of the heap that live data may fill for the collector to keep up: 0.7.
	liveNum, liveDen = 7, 10
)

// alignHeap rounds a heap up as the JVM does: to 2 MiB, or to G1's regions where they are larger.
func alignHeap(heap Bytes) Bytes { return heap.alignUp(alignmentOf(heap)) }

// alignmentOf is the alignment of a heap: 1/2048 of it, rounded up to a power of two of 2 to 32 MiB (HeapRegion::setup_heap_region_size;
// read from OpenJDK 17 with heaps up to 9 GiB). Other collectors align to 2 MiB, of which it is a multiple.
func alignmentOf(heap Bytes) Bytes {
	step := heapAlignment
	for step < maxHeapAlignment && step*regionsPerHeap < heap {
		step *= 2
	}
	return step
}

// HeapUnder is the heap that the JVM takes under a limit by its flags alone, after its rounding. In mode HeapPlanned it is what the JVM
// would take without the plan.
func (j *JVM) HeapUnder(limit Bytes) Bytes {
	if j.HeapMode == HeapFixed {
		return alignHeap(max(j.MaxHeap.Value, 0))
	}
	ram := j.ram(limit)
	small := percentOf(ram, j.MinRAMPercentage.Value)
	heap := small
	if small >= defaultMaxHeap {
		heap = max(percentOf(ram, j.MaxRAMPercentage.Value), defaultMaxHeap)
	}
	return alignHeap(max(heap, j.InitialHeap.Value, 0))
}

// heapRange bounds the heap under a limit in a way that only grows with the limit, which the JVM's rule does not: it jumps where a
// container stops being small and from one alignment step to the next. The plan holds its heap lines against low and counts high
// against the limit.
func (j *JVM) heapRange(limit Bytes) (low, high Bytes) {
	if j.HeapMode == HeapFixed {
		heap := alignHeap(max(j.MaxHeap.Value, 0))
		return heap, heap
	}
	ram := j.ram(limit)
	small, large := percentOf(ram, j.MinRAMPercentage.Value), percentOf(ram, j.MaxRAMPercentage.Value)
	low, high = min(small, defaultMaxHeap), max(large, min(small, defaultMaxHeap))
	if small >= defaultMaxHeap {
		low = max(large, defaultMaxHeap)
	}
	low, high = max(low, j.InitialHeap.Value), max(high, j.InitialHeap.Value)
	return low, high.Add(min(max(heapAlignment, 2*(high/regionsPerHeap)), maxHeapAlignment))
}

// heapIsGiven says whether the heap does not depend on the limit, so that no limit cures a heap that is too small.
func (j *JVM) heapIsGiven() bool {
	switch j.HeapMode {
	case HeapFixed:
		return true
	case HeapPlanned:
		return j.MaxHeap.Value > 0
	default:
		return j.MaxRAM.Value > 0
	}
}

// heapFrom is where the size of the heap came from.
func (j *JVM) heapFrom() Provenance {
	switch j.HeapMode {
	case HeapFixed:
		return j.MaxHeap.From
	case HeapPlanned:
		if j.MaxHeap.Value > 0 {
			return j.MaxHeap.From
		}
		return Derived
	default:
		return j.MaxRAMPercentage.From
	}
}

// ram is the memory that the JVM's percentages count from.
func (j *JVM) ram(limit Bytes) Bytes {
	if j.MaxRAM.Value > 0 {
		return j.MaxRAM.Value
	}
	return max(limit, 0)
}

// percentOf is a percentage of an amount, cut to whole bytes as the JVM does. What is no percentage counts as 0 or 100.
func percentOf(amount Bytes, percent float64) Bytes {
	if math.IsNaN(percent) || percent <= 0 {
		return 0
	}
	part := float64(amount) * min(percent, 100) / 100
	if part >= math.MaxInt64 {
		return MaxBytes
	}
	return Bytes(part)
}
