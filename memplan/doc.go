// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memplan plans the memory of one Kafka Streams pod, top-down: it starts from the memory limit of the container, subtracts
// what the process and its threads hold whatever their tasks are, and derives what tasks may use from what is left.
//
//	heap:    heap / threads - Producer - Consumer - Buffer -> Cache     per thread
//	native:  limit - headroom - heap - JVM               -> State     per process
//
// A negative Cache or State is a warning: this pod may not have enough memory for the tasks it may be given. See [Split].
//
// Three things make it hard. Heap and native memory are two pools with a wall between them, and either can be too small alone. The
// load of a pod is not what it runs now but what a rebalance may give it, so loads are bounds ([LoadAfter], [ColdStart]). And the
// heap is often a percentage of the limit, so the limit that is needed is a fixed point ([RequiredLimit]).
//
// What is left after all floors is shared so that throughput suffers least: which configs a plan chooses, in which order and down to
// which floors, is told in derive.go. A plan chooses only what the application left at its default, and only in a process that is
// bounded, that is one that takes its configs from the plan. Versions differ: what each has, and leaks, is in the tables of history.go.
//
// All functions are pure: numbers in, plan out, no clock, no logging, no input that panics. Amounts are [Bytes], which saturate. [Check]
// says which numbers cannot be.
//
// A plan takes about 30 microseconds, and so does each of the hundred pods of an application of 10,000 tasks, the bounds of their loads
// included (BenchmarkPlan10000Tasks, two busy cores).
//
// The formulas name their sources: a Kafka class, a KIP, a JDK source, or "measured". Measured values were taken on Debian 12 with
// OpenJDK 17 and the RocksDB that the Kafka version ships, unless the comment says otherwise.
package memplan
