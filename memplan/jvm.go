// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// HeapMode is the source of the size of the heap.
type HeapMode uint8

// The heap modes.
const (
	// HeapPercent is the JVM's own rule: percentages of the container's limit.
	HeapPercent HeapMode = iota
	// HeapFixed is -Xmx or -XX:MaxHeapSize.
	HeapFixed
	// HeapPlanned leaves the size to the plan, which sets the flags for it.
	HeapPlanned
)

// Collector is a garbage collector.
type Collector uint8

// The collectors of HotSpot.
const (
	// AutoCollector is the JVM's own choice: G1 from 2 CPUs and 1792 MiB on, otherwise Serial.
	AutoCollector Collector = iota
	Serial
	Parallel
	G1
	ZGC
	Shenandoah
)

// JVM has the flags and facts of the Java virtual machine that determine its memory.
type JVM struct {
	// Version is the feature version, such as 21; 0 if it is not known.
	Version  Fact[int]
	HeapMode HeapMode
	// MaxHeap is the heap in mode HeapFixed. In mode HeapPlanned it pins the heap; 0 leaves the size to the plan.
	MaxHeap Fact[Bytes]
	// InitialHeap is -Xms; 0 if it is not set. In mode HeapPercent the heap is never smaller.
	InitialHeap Fact[Bytes]
	// LeastHeap is a heap that the application is known to run with, in mode HeapPlanned: the planned heap is not smaller, and larger only
	// for its lines. 0: as large as the JVM's own heap, where the native side leaves room for it.
	LeastHeap Bytes
	// MaxRAM replaces the container's limit in mode HeapPercent; 0 if it is not set.
	MaxRAM Fact[Bytes]
	// MaxRAMPercentage and MinRAMPercentage are percentages of the limit in mode HeapPercent; the second holds for small containers.
	MaxRAMPercentage, MinRAMPercentage Fact[float64]
	Collector                          Fact[Collector]
	// CPUs of the JVM: the container's limit rounded up, or the node's.
	CPUs Fact[int]
	// Metaspace and CodeCache are the largest sizes of the regions: measured, or assumed and then capped by MaxMetaspaceSize and
	// ReservedCodeCacheSize. The flags are caps, not uses.
	Metaspace, CodeCache Fact[Bytes]
	// MaxDirect is MaxDirectMemorySize; 0: as large as the heap.
	MaxDirect Fact[Bytes]
	// ThreadStack is -Xss.
	ThreadStack Fact[Bytes]
}

// String returns the collector's name in the JVM's flags.
func (c Collector) String() string {
	return [...]string{"auto", "Serial", "Parallel", "G1", "ZGC", "Shenandoah"}[min(c, Shenandoah)]
}
