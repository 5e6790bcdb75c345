// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"slices"
)

// ConfigKind is the place of a config.
type ConfigKind uint8

// The kinds of config.
const (
	// JVMOption is a line of the JVM's options file.
	JVMOption ConfigKind = iota
	// Property is a property of the plan, which is read inside of the process.
	Property
)

// Config is one setting of a plan.
type Config struct {
	Kind ConfigKind
	// Name of a JVM option is the whole flag up to its value, such as "-XX:MaxRAM".
	Name string
	// Value is empty for a flag without one.
	Value string
	From  Provenance
}

// Verdict is the judgement of a plan.
type Verdict uint8

// The verdicts.
const (
	// Fits: all bounds together leave the headroom free, and the heap holds its own lines.
	Fits Verdict = iota
	// LimitTooSmall: a larger limit is required.
	LimitTooSmall
	// HeapTooSmall: the limit holds, but the heap that the application set itself does not.
	HeapTooSmall
)

// Deficit is a missing amount.
type Deficit struct {
	Pool Pool
	// Missing is the amount that the pool lacks.
	Missing Bytes
	// Message describes the deficit and its cure.
	Message string
}

// Plan is the memory of one pod for one load under one limit.
type Plan struct {
	Limit Bytes
	// Heap is the heap of the JVM under this limit, after the JVM's rounding.
	Heap Bytes
	// Headroom is the part of the limit that stays unplanned.
	Headroom Bytes
	// Bound and Expected are the totals of the container: the whole heap and all native lines. Bound is at most Limit - Headroom if the
	// verdict is Fits.
	Bound, Expected Bytes
	// RequiredLimit is the smallest limit that holds the load: not below Limit if the plan does not fit, and MaxBytes if no limit holds.
	RequiredLimit Bytes
	// RequiredLimitAtDefaults is the smallest limit that holds the load with no config lowered. It is larger than RequiredLimit only where
	// the plan may choose configs: between the two, the plan trades throughput for memory. No limit cures a heap that the application set.
	RequiredLimitAtDefaults Bytes
	// Collector is the collector of this plan.
	Collector Collector
	// Load is the planned load.
	Load Load
	// Lines are all uses, heap first. If the heap holds them, the bounds of the heap lines add up to the heap.
	Lines   []Line
	Configs []Config
	Verdict Verdict
	// Deficits are the missing amounts if the verdict is not Fits.
	Deficits []Deficit
	// Split is the top-down split, for people.
	Split Split
	// Warnings are problems for people, which the plan cannot cure.
	Warnings []string
}

// Fits reports whether the verdict is Fits.
func (p Plan) Fits() bool { return p.Verdict == Fits }

// PlanFor plans a load under a limit.
func PlanFor(w Workload, load Load, policy Policy, limit Bytes) Plan {
	p := newProcess(&w, load, policy)
	defaults := p.atDefaults()
	floors := defaults
	chosen := defaults
	if w.mayTune() {
		floors = p.atFloors()
		chosen = p.choose(limit, defaults, floors)
	}
	layout := chosen.at(limit)
	plan := layout.plan()
	plan.RequiredLimit = floors.requiredFor(limit)
	plan.RequiredLimitAtDefaults = plan.RequiredLimit
	if w.mayTune() {
		plan.RequiredLimitAtDefaults = max(plan.RequiredLimit, defaults.requiredLimit(0))
	}
	plan.Deficits = layout.deficits(&plan)
	for _, problem := range problems(&w, policy, limit) {
		plan.Warnings = append(plan.Warnings, problem.Error())
	}
	ofLimit := layout.entries()
	plan.Lines = linesByPool(chosen.tunable.lines, p.fixed.lines, ofLimit.lines)
	plan.Expected = plan.Heap.Add(expectedNative(plan.Lines))
	plan.Warnings = append(plan.Warnings, layout.findings(&plan, slices.Concat(chosen.tunable.notes, p.fixed.notes, ofLimit.notes))...)
	return plan
}

// RequiredLimit returns the smallest limit, in whole MiB, that holds a load; MaxBytes if none does, as with MaxRAMPercentage=95. Where the
// heap is independent of the limit, only native memory counts: no limit cures a small -Xmx.
//
// A larger limit holds too, with one exception: at 1792 MiB the JVM changes to a costlier collector, so a load that fits just below may
// not fit just above. Plan.RequiredLimit for a limit above 1792 MiB is then the larger limit that holds.
//
// A running process keeps the heap that it was started with: set it as HeapFixed. A running JVM does not follow its limit.
func RequiredLimit(w Workload, load Load, policy Policy) Bytes {
	return newProcess(&w, load, policy).atFloors().requiredLimit(0)
}

// Bootstrap plans with only the limit and the JVM known: the regions of the process, one stream thread with default clients, the heap, and
// the rest for the shared cache.
func Bootstrap(jvm JVM, policy Policy, limit Bytes) Plan {
	w := NewWorkload(Fact[Version]{})
	w.JVM = jvm
	w.Bounded = true
	return PlanFor(w, Load{Threads: 1}, policy, limit)
}

// plan returns the numbers of the layout as a plan.
func (r *layout) plan() Plan {
	plan := Plan{Limit: r.limit, Headroom: r.headroom, Collector: r.collector, Load: r.load, Heap: r.heapHigh, Verdict: r.verdict(), Split: r.split()}
	if r.workload.JVM.HeapMode != HeapPlanned {
		plan.Heap = r.workload.JVM.HeapUnder(r.limit)
	}
	plan.Bound = r.heapHigh.Add(r.jvm).Add(plan.Split.StateRequired)
	plan.Configs = r.configs(plan.Heap)
	return plan
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

// expectedNative returns the sum of the expected peaks outside of the heap.
func expectedNative(lines []Line) Bytes {
	sum := Bytes(0)
	for i := range lines {
		if lines[i].Pool == Native {
			sum = sum.Add(lines[i].Expected)
		}
	}
	return sum
}

// deficits returns the missing amounts of each pool.
func (r *layout) deficits(plan *Plan) []Deficit {
	var found []Deficit
	if r.heapDeficit > 0 {
		required := r.heap.over(liveShare)
		found = append(found, Deficit{Pool: Heap, Missing: required.Sub(r.heapLow), Message: fmt.Sprintf(
			"the heap of %v is too small: its lines take %s and may fill %d %% of it; a heap of %v holds them%s",
			plan.Heap, short(r.heap), liveShare.num*100/liveShare.den, required.alignUp(MiB), r.heapCure(required))})
	}
	if r.deficit > 0 {
		cure := fmt.Sprintf("a limit of %v holds the load", plan.RequiredLimit)
		if plan.RequiredLimit == MaxBytes {
			cure = "no limit holds the load, since the heap's percentage, headroom and page cache leave no room; lower MaxRAMPercentage"
		}
		found = append(found, Deficit{Pool: Native, Missing: r.deficit, Message: fmt.Sprintf(
			"the limit of %v is too small by %s: %s", r.limit, short(r.deficit), cure)})
	}
	return found
}

// heapCure describes how a heap that is a percentage of the limit reaches the required size, where the limit has room for it. A larger
// limit would be the more expensive cure.
func (r *layout) heapCure(required Bytes) string {
	isPercentage := r.workload.JVM.HeapMode == HeapPercent && r.workload.JVM.MaxRAM.Value <= 0
	room := r.heapHigh.Sub(r.deficit)
	if !isPercentage || required.Add(maxHeapAlignment) > room || r.limit <= 0 {
		return ""
	}
	return fmt.Sprintf(", and the limit has room for it: set MaxRAMPercentage to %d, a larger limit is not needed", required.Scale(100, int64(r.limit))+1)
}
