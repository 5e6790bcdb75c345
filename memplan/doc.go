// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memplan plans the memory of Kafka Streams applications. [PlanApplication] plans all pods of an application, [PlanFor] one pod for
// one load under one limit.
//
// A plan of one pod is top-down. It starts from the memory limit of the container, subtracts the memory that the process and its threads
// hold with any tasks, and gives the rest to the tasks:
//
//	heap:    usable heap - Process - Producer - Consumer - Buffer = Cache    for the record caches
//	native:  limit - headroom - heap - JVM                        = State    for the stores
//
// The usable heap is 0.7 of the heap. If Cache or State is less than the load requires, the plan has a deficit. A negative Cache or State is
// also a warning: the pod may not have enough memory for any task. [Split] has the heap side for one thread.
//
// In the code, a [Load] and a [Workload] give a ledger: all lines that do not depend on the limit, each with a bound and an expected peak
// (ledger.go). A layout divides a limit by these formulas (sizing.go). The required limit is the smallest limit with a layout without a
// deficit.
//
// Three things make it hard. First, heap and native memory are separate pools, and either can be too small alone. Second, a pod must have
// room for the load after a rebalance, not only for its present load, so loads are bounds ([LoadsAfter], [ColdStart]). Third, the heap is
// often a percentage of the limit, so the required limit is a fixed point ([RequiredLimit]).
//
// The rest of a limit is shared so that throughput suffers least: tunable.go has the configs that a plan chooses, their order and their
// floors. A plan chooses only configs that the application left at their defaults, and only in a bounded process, since that takes its
// configs from the plan. Versions differ: history.go has their features and leaks.
//
// All functions are pure: numbers in, plan out, no clock, no logging, and no input panics. Amounts are [Bytes] and numbers of things are
// [Count]; both saturate. [Check] returns errors for impossible inputs.
//
// A plan takes about 30 microseconds, and so does each of the hundred pods of an application with 10,000 tasks, the bounds of their loads
// included (BenchmarkPlan10000Tasks, two busy cores).
//
// The formulas name their sources: a Kafka class, a KIP, a JDK source, or "measured". Measured values were taken on Debian 12 with
// OpenJDK 17 and the RocksDB of the Kafka version, unless the comment gives another source.
package memplan
