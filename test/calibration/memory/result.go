// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"streamweir.dev/streamweir/memplan"
)

// measurement is the result of a run. All amounts are bytes.
type measurement struct {
	Scenario string `json:"scenario"`
	Date     string `json:"date"`
	// Limit of the cgroup and Heap of the JVM, from the plan of that day. The heap is fully resident from the start.
	Limit int64 `json:"limit"`
	Heap  int64 `json:"heap"`
	// HeapLive is the used heap after a full collection at the end.
	HeapLive int64         `json:"heapLive"`
	OOMKills int64         `json:"oomKills"`
	Phases   []phaseResult `json:"phases"`
}

// result is a measurement with the prediction of the current planner for the same scenario, so that a change of the model is compared with
// all measurements.
type result struct {
	measurement
	Title string
	// Cache is the shared cache, Tasks and Stores are the tasks and RocksDB instances (segments included) at the peak.
	Cache  int64
	Tasks  int
	Stores int64
	// Lines of the plan that are anonymous native memory.
	Lines []lineResult
	// Bound and Expected are the sums of those lines, Peak is the largest anonymous memory of a cgroup less the heap.
	Bound, Expected, Peak int64
	// HeapLines is the sum of the bounds of the heap's lines without the collector's reserve, KernelBound the bound of the kernel's memory:
	// page tables, kernel objects, sockets.
	HeapLines, KernelBound int64
}

// lineResult is a line of the plan. Measured is its largest measured value, 0 if it cannot be measured separately.
type lineResult struct {
	Region                    memplan.Region
	Name                      string
	Bound, Expected, Measured int64
}

// phaseResult is a phase of a run.
type phaseResult struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	peaks
}

// anonymous reports whether a native line is anonymous memory, shown by memory.stat as rss or anon: all but the page cache and the memory
// of the kernel.
func anonymous(l *memplan.Line) bool {
	return l.Pool == memplan.Native && l.Region != memplan.RegionPageCache && !kernels(l)
}

// kernels reports whether a line is memory of the kernel.
func kernels(l *memplan.Line) bool {
	return slices.Contains([]memplan.Region{memplan.RegionKernel, memplan.RegionKernelObjects, memplan.RegionSockets}, l.Region)
}

// compare combines a measurement and the plan.
func compare(s *scenario, plan *memplan.Plan, m *measurement) result {
	all, _ := m.peaks()
	r := result{
		measurement: *m, Title: s.Title, Cache: int64(s.Cache), Tasks: plan.Load.Total, Stores: all.Stores, Peak: all.Anon - m.Heap,
	}
	for i := range plan.Lines {
		l := &plan.Lines[i]
		switch {
		case anonymous(l):
			r.Lines = append(r.Lines, lineResult{Region: l.Region, Name: l.Name, Bound: int64(l.Bound), Expected: int64(l.Expected), Measured: measured(l, &all)})
			r.Bound += int64(l.Bound)
			r.Expected += int64(l.Expected)
		case kernels(l):
			r.KernelBound += int64(l.Bound)
		case l.Pool == memplan.Heap && l.Region != memplan.RegionHeapReserve:
			r.HeapLines += int64(l.Bound)
		}
	}
	return r
}

// measured is the peak of a line that the JVM or the agent reports separately.
func measured(l *memplan.Line, p *peaks) int64 {
	switch l.Region {
	case memplan.RegionMetaspace:
		return p.Metaspace
	case memplan.RegionCodeCache:
		return p.CodeCache
	case memplan.RegionDirectMemory:
		return p.Direct
	case memplan.RegionBlockCache:
		return p.Cache
	default:
		return 0
	}
}

// compared returns all measurements with the current plans.
func compared(folder string) ([]result, error) {
	measured, err := readLines[measurement](filepath.Join(folder, "scenarios.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []result
	for _, s := range scenarios() {
		i := slices.IndexFunc(measured, func(m measurement) bool { return m.Scenario == s.Name })
		if i < 0 {
			continue
		}
		plan, err := planned(&s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		all = append(all, compare(&s, &plan, &measured[i]))
	}
	return all, nil
}

// peaks returns the peaks of all phases, and the phase with the largest anonymous memory.
func (m *measurement) peaks() (all peaks, phase string) {
	largest := int64(-1)
	for i := range m.Phases {
		p := &m.Phases[i]
		all.merge(&p.peaks)
		if p.Anon > largest {
			largest, phase = p.Anon, p.Name
		}
	}
	return all, phase
}

// tolerance is the largest acceptable deviation of the expected peak from the measured one, in percent.
const tolerance = 10

// verdict is "holds" if the measurement is within the plan, else the first violation.
func (r *result) verdict() string {
	switch {
	case r.OOMKills > 0:
		return "OOM-killed"
	case r.Peak > r.Bound:
		return "peak above the bound"
	case r.HeapLive > r.Heap:
		return "live set above the heap"
	case r.off() > tolerance || r.off() < -tolerance:
		return fmt.Sprintf("bound holds; expected peak %+.0f %%", r.off())
	default:
		return "holds"
	}
}

// off is the deviation of the expected peak from the measured one, in percent.
func (r *result) off() float64 {
	if r.Peak <= 0 {
		return 0
	}
	return 100 * float64(r.Expected-r.Peak) / float64(r.Peak)
}

// keep stores a result in a file of JSON lines. It replaces an earlier one of the same name.
func keep[T any](path string, r *T, name func(*T) string) error {
	all, err := readLines[T](path)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(o T) bool { return name(&o) == name(r) }); i >= 0 {
		all[i] = *r
	} else {
		all = append(all, *r)
	}
	return writeLines(path, all)
}

// readLines reads a file of JSON lines. A missing file has none.
func readLines[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var all []T
	for decoder := json.NewDecoder(file); decoder.More(); {
		var one T
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("%s: value %d: %w", path, len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// writeLines replaces a file of JSON lines.
func writeLines[T any](path string, all []T) error {
	var text []byte
	for i := range all {
		line, err := json.Marshal(all[i])
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
