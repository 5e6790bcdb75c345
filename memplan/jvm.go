// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// HeapMode says who decides the size of the heap.
type HeapMode uint8

// The heap modes.
const (
	// HeapPercent is the JVM's own rule: percentages of the container's limit.
	HeapPercent HeapMode = iota
	// HeapFixed is -Xmx or -XX:MaxHeapSize.
	HeapFixed
	// HeapPlanned leaves it to the plan, which gives the flags for it.
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

// JVM holds the flags and facts of the Java virtual machine that decide its memory.
type JVM struct {
	// Version is the feature version, such as 21. 0 means not known.
	Version  Fact[int]
	HeapMode HeapMode
	// MaxHeap is the heap in mode HeapFixed. In mode HeapPlanned it pins the heap; 0 leaves the size to the plan.
	MaxHeap Fact[Bytes]
	// InitialHeap is -Xms. In mode HeapPercent the heap is never smaller. 0 means not set.
	InitialHeap Fact[Bytes]
	// LeastHeap is a heap that the application is known to get along with, in mode HeapPlanned: the plan gives it no less, and no more
	// than its lines need. 0: as much as the JVM would take by itself, where the native side leaves it.
	LeastHeap Bytes
	// MaxRAM replaces the container's limit in mode HeapPercent. 0 means not set.
	MaxRAM Fact[Bytes]
	// MaxRAMPercentage and MinRAMPercentage are percentages of the limit in mode HeapPercent; the second holds for small containers.
	MaxRAMPercentage, MinRAMPercentage Fact[float64]
	Collector                          Fact[Collector]
	// CPUs that the JVM sees: the container's limit rounded up, or the node's.
	CPUs Fact[int]
	// Metaspace and CodeCache are the most that the regions may use: measured, or assumed and then held within MaxMetaspaceSize and
	// ReservedCodeCacheSize. The flags are caps, not uses.
	Metaspace, CodeCache Fact[Bytes]
	// MaxDirect is MaxDirectMemorySize. 0 means as large as the heap.
	MaxDirect Fact[Bytes]
	// ThreadStack is -Xss.
	ThreadStack Fact[Bytes]
}

// String is the collector as the JVM's flags name it.
func (c Collector) String() string {
	return [...]string{"auto", "Serial", "Parallel", "G1", "ZGC", "Shenandoah"}[min(c, Shenandoah)]
}
