// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/memplan"
)

// warmedUpAfter is how long a process must have run for its figures to be effective where they are below the assumed ones: its code is
// compiled, its classes are loaded, and its day has begun. A choice.
const warmedUpAfter = time.Hour

// measuredStep is the step to which measured regions are rounded up, so that a plan does not follow each small figure. A choice: less
// than a hundredth of the limit of an ordinary pod.
const measuredStep = 8 << 20

// maxRecord is the largest effective record: a producer holds a request in one array.
const maxRecord = 1 << 31

// growthNum and growthDen are the growth to expect of a region below its assumed size: a warmed-up process has not run every code path yet. A
// choice.
const growthNum, growthDen = 5, 4

// measuredOf returns the measured figures: the largest that any pod of the newest image has reported. The figures of one image do not apply to
// another.
func measuredOf(f *Facts, remembered v1alpha1.MeasuredRegions) v1alpha1.MeasuredRegions {
	measured := *remembered.DeepCopy()
	pods := f.Pods
	newest := newestImage(pods)
	if newest == "" {
		return measured
	}
	if measured.ImageID != newest {
		measured = v1alpha1.MeasuredRegions{ImageID: newest, Age: v1alpha1.ProcessWarmingUp}
	}
	measured.HeapPercent = heapPercentOf(f, measured.HeapPercent)
	for i := range pods {
		p := &pods[i]
		r := p.Report.Report
		if r == nil || p.ImageID != newest || !withinLimit(r, p) {
			continue
		}
		raise(&measured.Metaspace, inSteps(r.JVM.Metaspace))
		raise(&measured.CodeCache, inSteps(r.JVM.CodeCache))
		if live := r.JVM.HeapLive; live > 0 {
			raise(&measured.ApplicationHeap, inSteps(max(1, live-recordCache(r))))
		}
		for _, c := range r.Clients {
			if size := c.Records.AverageSize; size > 0 && size <= maxRecord {
				raise(&measured.AverageRecord, int64(1)<<bits.Len64(uint64(size-1))) // to a power of two
			}
		}
		if f.Now.Sub(time.UnixMilli(r.Started)) >= warmedUpAfter {
			measured.Age = v1alpha1.ProcessWarmedUp
		}
	}
	return measured
}

// heapPercentOf returns the share of the limit that the newest process has as its own heap; 0 where the plan decides the heap.
func heapPercentOf(f *Facts, remembered int32) int32 {
	if !heapLeftToPlan(f) {
		return 0
	}
	percent, known := ownHeapPercent(f.Reports.Newest, publishedJVM(f.PlanConfigMap))
	if !known {
		return remembered
	}
	return percent
}

// heapTolerance is a difference between a heap and its percentage that a JVM's rounding explains: two steps of the alignment of small heaps.
const heapTolerance = 4 << 20

// ownHeapPercent returns the share of the limit that a process has as its heap where neither the plan nor the JVM's default explains it; 0 where
// they do. An option in a start script or in the entry point of an image wins over the plan, and the pod template does not show it. known is
// false if the report does not show the origin of the heap.
func ownHeapPercent(r *report.Report, published memplan.JVM) (percent int32, known bool) {
	flags := firstRAMFlags(r.JVM.Flags) // the plan's options come first
	planned, err := memplan.ParseJVMFlags(flags)
	if err != nil || r.JVM.HeapMax <= 0 {
		return 0, false
	}
	if published.MaxRAMPercentage.From == memplan.Default {
		// The published plan leaves the percentage to the application, so that in the flags is its own.
		planned.MaxRAMPercentage = published.MaxRAMPercentage
		planned.MinRAMPercentage = published.MinRAMPercentage
	}
	base := planned.MaxRAM.Value // the plan sets it, and the JVM's percentages refer to it
	if base <= 0 {
		base = memplan.Bytes(r.Cgroup.Limit)
	}
	heap := memplan.Bytes(r.JVM.HeapMax)
	explained := planned.HeapUnder(base)
	if heap <= explained.Add(max(heapTolerance, explained/50)) {
		return 0, true
	}
	if len(flags) == 0 || heap > base {
		return 0, false
	}
	// After a raise of the limit the share is too small, but the flag still has that of new pods.
	last, _ := memplan.ParseJVMFlags(slices.DeleteFunc(slices.Clone(r.JVM.Flags), func(flag string) bool { return !strings.Contains(flag, "RAM") }))
	share := max(math.Ceil(float64(heap)*100/float64(base)), math.Ceil(last.MaxRAMPercentage.Value))
	return int32(min(share, 100)), true
}

// firstRAMFlags returns the first flag of each of those that size the heap by the memory of the container.
func firstRAMFlags(flags []string) []string {
	var firsts []string
	seen := map[string]bool{}
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if strings.Contains(name, "RAM") && !seen[name] {
			seen[name] = true
			firsts = append(firsts, flag)
		}
	}
	return firsts
}

// newestImage returns the digest of the process that started last; empty without a report.
func newestImage(pods []Pod) string {
	var image string
	var started int64
	for i := range pods {
		p := &pods[i]
		if r := p.Report.Report; r != nil && r.Started > started && p.ImageID != "" && len(p.ImageID) <= maxImageName {
			image = p.ImageID
			started = r.Started
		}
	}
	return image
}

// withinLimit returns whether the regions of a process fit into the limit of its pod. Figures of a process that reports more do not count.
func withinLimit(r *report.Report, p *Pod) bool {
	limit := p.EffectiveLimit()
	sum := memplan.Bytes(r.JVM.Metaspace).Add(memplan.Bytes(r.JVM.CodeCache)).Add(memplan.Bytes(r.JVM.HeapLive))
	return limit == nil || int64(sum) <= limit.Value()
}

// inSteps rounds up to measuredStep.
func inSteps(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return int64(memplan.Bytes(bytes).Add(measuredStep-1) / measuredStep * measuredStep)
}

// raise sets a figure that is larger than the known one.
func raise(figure **resource.Quantity, bytes int64) {
	if bytes > 0 && (*figure == nil || (*figure).Value() < bytes) {
		*figure = new(quantity(bytes))
	}
}

// recordCache returns the capacity of the record caches of a process. Their content is planned for by itself. Each of their bytes takes more
// than one on the heap, so the rest is not too small once they are full.
func recordCache(r *report.Report) int64 {
	sum := memplan.Bytes(0)
	for i := range r.Clients {
		properties := map[string]string{}
		for _, s := range r.Clients[i].Settings {
			properties[s.Name] = s.Value
		}
		w := memplan.NewWorkload(memplan.Fact[memplan.Version]{})
		if err := w.ApplyProperties(properties); err != nil {
			continue // the plan reports an invalid setting
		}
		sum = sum.Add(max(0, w.Clients.RecordCache.Value))
	}
	return int64(sum)
}

// measuredSource returns the effective figures. base has the assumed ones, which the spec may replace.
func measuredSource(measured v1alpha1.MeasuredRegions, base *memplan.Workload, spec *source) *source {
	record := base.Records.Average
	if spec.averageRecord != nil {
		record = *spec.averageRecord
	}
	return &source{
		averageRecord: effective(record, measured.AverageRecord, measured.Age),
		liveHeap:      effective(base.Application.LiveSet, measured.ApplicationHeap, measured.Age),
		metaspace:     effective(base.JVM.Metaspace, measured.Metaspace, measured.Age),
		codeCache:     effective(base.JVM.CodeCache, measured.CodeCache, measured.Age),
	}
}

// effective returns a measured figure as far as it replaces the assumed one; nil if it does not. A larger figure counts at once. A smaller one
// counts from a warmed-up process only, with a part for growth.
func effective(assumed memplan.Fact[memplan.Bytes], measured *resource.Quantity, age v1alpha1.ProcessAge) *memplan.Fact[memplan.Bytes] {
	if measured == nil || assumed.From == memplan.App {
		return nil
	}
	value := memplan.Bytes(measured.Value())
	switch {
	case value >= assumed.Value:
		return new(memplan.Known(value, memplan.Measured))
	case age == v1alpha1.ProcessWarmedUp:
		return new(memplan.Known(min(assumed.Value, value.Scale(growthNum, growthDen)), memplan.Measured))
	}
	return nil
}
