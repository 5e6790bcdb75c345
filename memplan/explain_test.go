// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"strings"
	"testing"

	"streamweir.dev/streamweir/internal/golden"
)

// explained are the plans whose explanations are kept in testdata, by file name.
func explained(t *testing.T) map[string]Plan {
	t.Helper()
	policy := DefaultPolicy()
	shipped := boundedRun()
	shipped.Bounded, shipped.RocksDB = false, NewWorkload(shipped.Version).RocksDB
	shipped.JVM = NewJVM()
	bounded := boundedRun()
	planned := with(boundedRun(), func(w *Workload) {
		w.RocksDB, w.JVM = RocksDB{}, NewJVM()
		w.JVM.HeapMode = HeapPlanned
	})
	fixed := with(keyValueApp(4), flags(t, "-Xmx64m"))
	hopeless := with(keyValueApp(4), flags(t, "-XX:MaxRAMPercentage=95"))
	leaking := with(keyValueApp(4), version(4, 1, 0), codec(Zstd, 3), writing(100))
	tight := derivable()
	planner := NewJVM()
	planner.HeapMode = HeapPlanned
	return map[string]Plan{
		"default-rocksdb-after-a-failure": PlanFor(shipped, onlyCap(1, 8, 10), policy, 760*MiB),
		"bounded-after-a-failure":         PlanFor(bounded, onlyCap(1, 8, 10), policy, 1100*MiB),
		"planned-now":                     PlanFor(planned, onlyCap(1, 4, 4), policy, 1100*MiB),
		"heap-too-small":                  PlanFor(fixed, onlyCap(1, 4, 4), policy, 2*GiB),
		"no-limit-holds":                  PlanFor(hopeless, onlyCap(1, 4, 4), policy, 2*GiB),
		"leaking-version":                 PlanFor(leaking, onlyCap(2, 4, 4), policy, 4*GiB),
		"derived-when-tight":              PlanFor(tight, onlyCap(2, 8, 8), policy, RequiredLimit(tight, onlyCap(2, 8, 8), policy)+24*MiB),
		"two-clients-of-one-jvm":          PlanFor(beside(keyValueApp(4), "billing", onlyCap(2, 6, 6)), onlyCap(1, 4, 4), policy, 4*GiB),
		"bootstrap":                       Bootstrap(planner, policy, 1*GiB),
	}
}

func TestExplain(t *testing.T) {
	for name, plan := range explained(t) {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, name+".golden", plan.Explain())
		})
	}
}

func TestExplainShowsTheLargestLinesFirstInEachPool(t *testing.T) {
	for name, plan := range explained(t) {
		bounds := map[string]Bytes{}
		for _, l := range plan.Lines {
			bounds[l.Pool.String()+" "+l.Name] = l.Bound
		}
		last, pool := Bytes(0), ""
		for row := range strings.Lines(plan.Explain()) {
			end := 8 + plan.nameWidth()
			if len(row) < end {
				continue
			}
			key := strings.TrimSpace(row[:7]) + " " + strings.TrimSpace(row[8:end])
			bound, ok := bounds[key]
			if !ok {
				continue
			}
			in, _, _ := strings.Cut(key, " ")
			if in == pool && bound > last {
				t.Errorf("%s: %s of %v comes after %v", name, key, bound, last)
			}
			last, pool = bound, in
			delete(bounds, key)
		}
		if len(bounds) > 0 {
			t.Errorf("%s: not shown: %v", name, bounds)
		}
	}
}
