// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
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
	p := derived(&w, load, policy, limit)
	search := p.limits()
	r, least := search.at(limit), search
	if w.derives() {
		least = atFloors(&w, load, policy)
	}
	plan := Plan{Limit: max(limit, 0), Headroom: r.headroom, Collector: r.collector, Load: p.load}
	plan.Heap = r.heapHigh
	if w.JVM.HeapMode != HeapPlanned {
		plan.Heap = w.JVM.HeapUnder(limit)
	}
	plan.Verdict = search.verdict(r)
	plan.RequiredLimit = least.need(0)
	if plan.Verdict == LimitTooSmall && plan.RequiredLimit <= limit {
		plan.RequiredLimit = least.need(limit)
	}
	plan.RequiredLimitAtDefaults = plan.RequiredLimit
	if w.derives() {
		plan.RequiredLimitAtDefaults = max(plan.RequiredLimit, newPlanner(&w, load, policy).limits().need(0))
	}
	plan.Deficits = p.shortages(plan, r)
	p.limitLines(r)
	plan.Lines = byPool(p.lines)
	plan.Bound = r.heapHigh.Add(p.nativeSum)
	plan.Expected = plan.Heap.Add(expectedNative(p.lines))
	plan.Split = splitOf(plan, r)
	plan.Configs = p.configs(plan, r)
	for _, problem := range problems(&w, policy, limit) {
		plan.Warnings = append(plan.Warnings, problem.Error())
	}
	plan.Warnings = append(plan.Warnings, p.findings(plan)...)
	return plan
}

// Bootstrap plans with nothing but the limit and the JVM known: process regions, one stream thread with default clients, the heap, and
// the rest for the shared cache.
func Bootstrap(jvm JVM, policy Policy, limit Bytes) Plan {
	w := NewWorkload(Fact[Version]{})
	w.JVM, w.Bounded = jvm, true
	return PlanFor(w, Load{Threads: 1}, policy, limit)
}

// limitLines adds the lines that depend on the limit.
func (p *planner) limitLines(r layout) {
	reserve := r.heapHigh.Sub(p.heapSum)
	p.add(RegionHeapReserve.line(reserve, p.heapFrom(), "heap - its lines: what the collector works with"))
	p.add(RegionCollector.line(r.collectorNative, Measured, "beside the heap, by collector and heap size"))
	if p.w.Bounded {
		p.boundedLines(r.cache)
	}
	p.add(RegionKernel.line(r.kernel, Derived, "limit / 512"))
	p.add(RegionPageCache.line(r.pageCache, Assumed, "a floor: with less the JVM stalls on re-reading its own code"))
}

// heapFrom is where the size of the heap came from.
func (p *planner) heapFrom() Provenance {
	jvm := &p.w.JVM
	switch jvm.HeapMode {
	case HeapFixed:
		return jvm.MaxHeap.From
	case HeapPlanned:
		if jvm.MaxHeap.Value > 0 {
			return jvm.MaxHeap.From
		}
		return Derived
	default:
		return jvm.MaxRAMPercentage.From
	}
}

// byPool puts the heap lines first and otherwise keeps the order.
func byPool(lines []Line) []Line {
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Pool, b.Pool) })
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

// verdict judges a layout.
func (l limits) verdict(r layout) Verdict {
	switch {
	case r.fits():
		return Fits
	case r.short <= 0 && l.heapIsGiven():
		return HeapTooSmall
	default:
		return LimitTooSmall
	}
}

// heapIsGiven says whether the heap does not depend on the limit, so that no limit cures a heap that is too small.
func (l limits) heapIsGiven() bool {
	jvm := &l.p.w.JVM
	switch jvm.HeapMode {
	case HeapFixed:
		return true
	case HeapPlanned:
		return jvm.MaxHeap.Value > 0
	default:
		return jvm.MaxRAM.Value > 0
	}
}

// shortages says what is missing in each pool.
func (p *planner) shortages(plan Plan, r layout) []Deficit {
	var found []Deficit
	if r.heapShort > 0 {
		heap := p.heapSum.Scale(liveDen, liveNum)
		found = append(found, Deficit{Pool: Heap, Missing: heap.Sub(r.heapLow), Message: fmt.Sprintf(
			"the heap of %v is too small: its lines take %s and may fill %d %% of it; a heap of %v holds them%s",
			plan.Heap, short(p.heapSum), liveNum*100/liveDen, heap.alignUp(MiB), p.heapCure(plan, r, heap))})
	}
	if r.short > 0 {
		cure := fmt.Sprintf("a limit of %v holds the load", plan.RequiredLimit)
		if plan.RequiredLimit == MaxBytes {
			cure = "no limit holds the load: the heap's percentage, headroom and page cache leave nothing; lower MaxRAMPercentage"
		}
		found = append(found, Deficit{Pool: Native, Missing: r.short, Message: fmt.Sprintf(
			"the limit of %v is too small by %s: %s", plan.Limit, short(r.short), cure)})
	}
	return found
}

// heapCure says how a heap that is a percentage gets as large as it must be, where the limit has room for that: a larger limit would be
// the dearer cure.
func (p *planner) heapCure(plan Plan, r layout, heap Bytes) string {
	room := Bytes(0).Sub(r.short).Add(r.heapHigh)
	if p.w.JVM.HeapMode != HeapPercent || p.w.JVM.MaxRAM.Value > 0 || heap.Add(maxHeapAlignment) > room || plan.Limit <= 0 {
		return ""
	}
	return fmt.Sprintf(", and the limit has room for it: set MaxRAMPercentage to %d, a larger limit is not needed", heap.Scale(100, int64(plan.Limit))+1)
}
