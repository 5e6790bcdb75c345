// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Pool is one of the two pools of memory.
type Pool uint8

// The pools.
const (
	// Heap is the Java heap.
	Heap Pool = iota
	// Native is everything else that the cgroup counts.
	Native
)

// String is the pool in lower case.
func (p Pool) String() string {
	if p == Heap {
		return "heap"
	}
	return "native"
}

// Line is one itemised use of memory.
type Line struct {
	Region Region
	Pool   Pool
	// Bound is never exceeded; limits are made of it. Expected is the peak to expect; requests are made of it.
	Bound, Expected Bytes
	// Count and Unit explain Bound where it is a product; Count 0 means it is not.
	Count int64
	Unit  Bytes
	From  Provenance
	// Why names the formula in words.
	Why string
}

// ConfigKind says where a config goes.
type ConfigKind uint8

// The kinds of config.
const (
	// JVMOption is a line of the JVM's options file.
	JVMOption ConfigKind = iota
	// Property is a plan property that is read inside the process.
	Property
)

// Config is one setting that the plan wants in force.
type Config struct {
	Kind  ConfigKind
	Name  string
	Value string
	From  Provenance
}

// Verdict says whether a plan holds.
type Verdict uint8

// The verdicts.
const (
	// Fits means that all bounds together leave the headroom free, and the heap holds its own lines.
	Fits Verdict = iota
	// LimitTooSmall means that a larger limit is needed.
	LimitTooSmall
	// HeapTooSmall means that the limit holds, but the heap that the application set itself does not.
	HeapTooSmall
)

// Shortage is an amount that is missing.
type Shortage struct {
	Pool Pool
	// Missing is the amount by which the pool is too small.
	Missing Bytes
	// Message says what is missing, why, and what would cure it.
	Message string
}

// Plan is the memory of one pod for one load under one limit.
type Plan struct {
	Limit Bytes
	// Heap is the largest heap of the JVM under this limit, after the JVM's rounding.
	Heap Bytes
	// Headroom is the part of the limit that stays unplanned.
	Headroom Bytes
	// Bound and Expected are the totals of the container: the heap in full and all native lines.
	Bound, Expected Bytes
	// Need is the smallest limit that holds the load; MaxBytes if none does.
	Need Bytes
	// Collector is the collector that this plan counts.
	Collector Collector
	// Load is the load that was planned for.
	Load Load
	// Lines are all uses, by pool, in the order of the inventory. The bounds of the heap lines add up to the heap.
	Lines   []Line
	Configs []Config
	Verdict Verdict
	// Shortages say what is missing when the verdict is not Fits.
	Shortages []Shortage
	// Split is the top-down split in its three lines.
	Split Split
	// Warnings are for people: what the plan cannot cure.
	Warnings []string
}

// Fits says whether the verdict is Fits.
func (p Plan) Fits() bool { return p.Verdict == Fits }

// PlanFor plans a load under a limit.
func PlanFor(w Workload, load Load, policy Policy, limit Bytes) Plan { return Plan{} }

// Bootstrap plans with nothing but the limit and the JVM known: process regions, heap, and the rest for the state.
func Bootstrap(jvm JVM, policy Policy, limit Bytes) Plan { return Plan{} }

// Explain writes the plan for people.
func (p Plan) Explain() string { return "" }

// Need is the smallest limit, in whole MiB, that holds a load; MaxBytes if none does, as with MaxRAMPercentage=95.
func Need(w Workload, load Load, policy Policy) Bytes { return 0 }

// Survives is the largest number of losses after which every survivor still fits its limit; -1 if the pods do not even fit now.
// Limits has the limit of each pod by name; a pod without one has no limit and always fits.
func Survives(w Workload, a Assignment, policy Policy, limits map[string]Bytes) int { return 0 }

// Split is the top-down split, per thread for the heap and per process for native memory. Cache and State are what is left for them,
// and may be negative.
type Split struct {
	// Threads that share the heap.
	Threads int
	// HeapPerThread is the heap that the lines may fill, less what belongs to the whole process, divided by the threads.
	HeapPerThread, Producer, Consumer, Buffer, Cache Bytes
	// Native is the limit less headroom and heap.
	Native, JVM, State Bytes
	// StateNeed is what the stores may take, CacheNeed what one thread's record cache may take.
	StateNeed, CacheNeed Bytes
}
