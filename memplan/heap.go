// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "math"

// The JVM's rule for the heap (Arguments::set_heap_size, alike in JDK 11 to 25).
const (
	// defaultMaxHeap is the built-in MaxHeapSize of a 64-bit JVM (96 MiB x 1.3, in words). A container with less at its MinRAMPercentage is
	// small.
	defaultMaxHeap Bytes = 130_862_280
	// heapAlignment is the smallest alignment of the heap: the range of one page of the card table.
	heapAlignment = 2 * MiB
	// maxHeapAlignment is the largest region of G1.
	maxHeapAlignment = 32 * MiB
	// regionsPerHeap is the number of regions that G1 aims for.
	regionsPerHeap = 2048
)

// liveShare is the part of the heap that live data may fill so that the collector keeps up.
var liveShare = ratio{7, 10}

// usableHeap returns the part of a heap that its lines may fill.
func usableHeap(heap Bytes) Bytes {
	return heap.Sub(heap.times(ratio{liveShare.den - liveShare.num, liveShare.den}))
}

// alignHeap rounds a heap up as the JVM does: to 2 MiB, or to larger regions of G1.
func alignHeap(heap Bytes) Bytes { return heap.alignUp(alignmentOf(heap)) }

// alignmentOf returns the alignment of a heap: 1/2048 of it, rounded up to a power of two of 2 to 32 MiB
// (HeapRegion::setup_heap_region_size; read from OpenJDK 17 with heaps up to 9 GiB). It is a multiple of the 2 MiB of other collectors.
func alignmentOf(heap Bytes) Bytes {
	step := heapAlignment
	for step < maxHeapAlignment && step*regionsPerHeap < heap {
		step *= 2
	}
	return step
}

// HeapUnder returns the heap of the JVM under a limit by its flags alone, after its rounding. In mode HeapPlanned it is the heap of the JVM
// without the plan.
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

// heapRange bounds the heap under a limit by bounds that only grow with the limit. The JVM's rule does not: it jumps where a container stops
// being small, and from one alignment step to the next. The plan compares its heap lines with low, and counts high towards the limit.
func (j *JVM) heapRange(limit Bytes) (low, high Bytes) {
	if j.HeapMode == HeapFixed {
		heap := alignHeap(max(j.MaxHeap.Value, 0))
		return heap, heap
	}
	ram := j.ram(limit)
	small := percentOf(ram, j.MinRAMPercentage.Value)
	large := percentOf(ram, j.MaxRAMPercentage.Value)
	low = min(small, defaultMaxHeap)
	high = max(large, low)
	if small >= defaultMaxHeap {
		low = max(large, defaultMaxHeap)
	}
	low = max(low, j.InitialHeap.Value)
	high = max(high, j.InitialHeap.Value)
	return low, high.Add(min(max(heapAlignment, 2*(high/regionsPerHeap)), maxHeapAlignment))
}

// heapIsGiven reports whether the heap is independent of the limit, so that no limit cures a heap that is too small.
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

// heapFrom returns the provenance of the size of the heap.
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

// ram returns the memory that the JVM's percentages refer to.
func (j *JVM) ram(limit Bytes) Bytes {
	if j.MaxRAM.Value > 0 {
		return j.MaxRAM.Value
	}
	return max(limit, 0)
}

// percentOf returns a percentage of an amount, cut to whole bytes as by the JVM. Percentages out of range count as 0 or 100.
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
