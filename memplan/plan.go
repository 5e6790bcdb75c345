// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"slices"
)

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
	Kind ConfigKind
	// Name of a JVM option is the whole flag up to its value, such as "-XX:MaxRAM".
	Name string
	// Value is empty for a flag that has none.
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

// Deficit is an amount that is missing.
type Deficit struct {
	Pool Pool
	// Missing is the amount by which the pool is too small.
	Missing Bytes
	// Message says what is missing, why, and what would cure it.
	Message string
}

// Plan is the memory of one pod for one load under one limit.
type Plan struct {
	Limit Bytes
	// Heap is the heap of the JVM under this limit, after the JVM's rounding.
	Heap Bytes
	// Headroom is the part of the limit that stays unplanned.
	Headroom Bytes
	// Bound and Expected are the totals of the container: the heap in full and all native lines. Bound is at most Limit - Headroom when
	// the verdict is Fits.
	Bound, Expected Bytes
	// RequiredLimit is the smallest limit that holds the load: not below Limit when the plan does not fit, and MaxBytes if no limit holds.
	RequiredLimit Bytes
	// RequiredLimitAtDefaults is the smallest limit that holds the load with no config lowered for it. It is larger than Need only where the plan
	// may choose configs: in between, it trades throughput for memory. As with Need, no limit cures a heap that the application fixed.
	RequiredLimitAtDefaults Bytes
	// Collector is the collector that this plan counts.
	Collector Collector
	// Load is the load that was planned for.
	Load Load
	// Lines are all uses, heap first. When the heap holds them, the bounds of the heap lines add up to the heap.
	Lines   []Line
	Configs []Config
	Verdict Verdict
	// Deficits say what is missing when the verdict is not Fits.
	Deficits []Deficit
	// Split is the top-down split, for people.
	Split Split
	// Warnings are for people: what the plan cannot cure.
	Warnings []string
}

// Fits says whether the verdict is Fits.
func (p Plan) Fits() bool { return p.Verdict == Fits }

// PlanFor plans a load under a limit.
func PlanFor(w Workload, load Load, policy Policy, limit Bytes) Plan {
	p := newProcess(&w, load, policy)
	defaults := p.atDefaults()
	chosen, floors := defaults, defaults
	if w.derives() {
		floors = p.atFloors()
		chosen = p.choose(limit, defaults, floors)
	}
	r := chosen.at(limit)
	plan := r.plan()
	plan.RequiredLimit = floors.requiredLimit(0)
	if plan.Verdict == LimitTooSmall && plan.RequiredLimit <= limit {
		plan.RequiredLimit = floors.requiredLimit(limit)
	}
	plan.RequiredLimitAtDefaults = plan.RequiredLimit
	if w.derives() {
		plan.RequiredLimitAtDefaults = max(plan.RequiredLimit, defaults.requiredLimit(0))
	}
	plan.Deficits = r.deficits(&plan)
	for _, problem := range problems(&w, policy, limit) {
		plan.Warnings = append(plan.Warnings, problem.Error())
	}
	lines := r.entries()
	plan.Lines = linesByPool(chosen.tunable.lines, p.fixed.lines, lines.lines)
	plan.Expected = plan.Heap.Add(expectedNative(plan.Lines))
	plan.Warnings = append(plan.Warnings, r.findings(&plan, slices.Concat(chosen.tunable.notes, p.fixed.notes, lines.notes))...)
	return plan
}

// plan returns the numbers of the layout as a plan.
func (r *layout) plan() Plan {
	plan := Plan{Limit: r.limit, Headroom: r.headroom, Collector: r.collector, Load: r.load, Heap: r.heapHigh, Verdict: r.verdict(), Split: r.split()}
	if r.w.JVM.HeapMode != HeapPlanned {
		plan.Heap = r.w.JVM.HeapUnder(r.limit)
	}
	plan.Bound = r.heapHigh.Add(r.jvm).Add(plan.Split.StateRequired)
	plan.Configs = r.configs(plan.Heap)
	return plan
}

// Bootstrap plans with nothing but the limit and the JVM known: process regions, one stream thread with default clients, the heap, and
// the rest for the shared cache.
func Bootstrap(jvm JVM, policy Policy, limit Bytes) Plan {
	w := NewWorkload(Fact[Version]{})
	w.JVM, w.Bounded = jvm, true
	return PlanFor(w, Load{Threads: 1}, policy, limit)
}

// linesByPool joins lines, those of the heap first.
func linesByPool(parts ...[]Line) []Line {
	count := 0
	for _, part := range parts {
		count += len(part)
	}
	lines := make([]Line, 0, count)
	for _, pool := range [...]Pool{Heap, Native} {
		for _, part := range parts {
			for i := range part {
				if part[i].Pool == pool {
					lines = append(lines, part[i])
				}
			}
		}
	}
	return lines
}

// expectedNative is the sum of the expected peaks outside the heap.
func expectedNative(lines []Line) Bytes {
	sum := Bytes(0)
	for i := range lines {
		if lines[i].Pool == Native {
			sum = sum.Add(lines[i].Expected)
		}
	}
	return sum
}

// deficits says what is missing in each pool.
func (r *layout) deficits(plan *Plan) []Deficit {
	var found []Deficit
	if r.heapDeficit > 0 {
		heap := r.heap.Scale(liveDen, liveNum)
		found = append(found, Deficit{Pool: Heap, Missing: heap.Sub(r.heapLow), Message: fmt.Sprintf(
			"the heap of %v is too small: its lines take %s and may fill %d %% of it; a heap of %v holds them%s",
			plan.Heap, short(r.heap), liveNum*100/liveDen, heap.alignUp(MiB), r.heapCure(plan, heap))})
	}
	if r.deficit > 0 {
		cure := fmt.Sprintf("a limit of %v holds the load", plan.RequiredLimit)
		if plan.RequiredLimit == MaxBytes {
			cure = "no limit holds the load: the heap's percentage, headroom and page cache leave nothing; lower MaxRAMPercentage"
		}
		found = append(found, Deficit{Pool: Native, Missing: r.deficit, Message: fmt.Sprintf(
			"the limit of %v is too small by %s: %s", plan.Limit, short(r.deficit), cure)})
	}
	return found
}

// heapCure says how a heap that is a percentage gets as large as it must be, where the limit has room for that: a larger limit would be
// the dearer cure.
func (r *layout) heapCure(plan *Plan, heap Bytes) string {
	room := Bytes(0).Sub(r.deficit).Add(r.heapHigh)
	if r.w.JVM.HeapMode != HeapPercent || r.w.JVM.MaxRAM.Value > 0 || heap.Add(maxHeapAlignment) > room || plan.Limit <= 0 {
		return ""
	}
	return fmt.Sprintf(", and the limit has room for it: set MaxRAMPercentage to %d, a larger limit is not needed", heap.Scale(100, int64(plan.Limit))+1)
}

// RequiredLimit is the smallest limit, in whole MiB, that holds a load; MaxBytes if none does, as with MaxRAMPercentage=95. Where the heap does
// not depend on the limit, RequiredLimit is about native memory only: no limit cures a small -Xmx.
//
// A larger limit holds too, with one exception: at 1792 MiB the JVM changes to a costlier collector, so a load that fits just below may
// not fit just above. Plan.RequiredLimit of a limit above then says which larger limit holds.
//
// For a process that runs already, the heap is what it started with: give it as HeapFixed. A running JVM does not follow its limit.
func RequiredLimit(w Workload, load Load, policy Policy) Bytes {
	return newProcess(&w, load, policy).atFloors().requiredLimit(0)
}
