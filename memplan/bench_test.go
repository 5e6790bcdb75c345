// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"testing"
)

// bigApp has tasks spread over 10 subtopologies of three stores each, and an even assignment to pods.
func bigApp(tasks, pods int) (Workload, Assignment) {
	w := release(4, 4, 0)
	for i := range 10 {
		w.Subtopologies = append(w.Subtopologies, Subtopology{
			ID: fmt.Sprint(i), Tasks: tasks / 10, InputPartitions: 2, WrittenPartitions: tasks / 10,
			Stores: []Store{
				{Kind: TimestampedKeyValue, Caching: true, Size: Known(10*MiB, Measured)},
				{Kind: Window, RetentionMs: Known(int64(3_600_000), Measured)},
				{Kind: JoinWindow, RetentionMs: Known(int64(3_600_000), Measured)},
			},
		})
	}
	w.JVM.HeapMode = HeapPlanned
	return w, evenly(w, pods, 4)
}

// benchmarkPlans plans every pod of an application: one operation is the loads of all pods after a loss and a plan for each.
func benchmarkPlans(b *testing.B, tasks, pods int) {
	w, a := bigApp(tasks, pods)
	b.ReportAllocs()
	for b.Loop() {
		for _, load := range LoadsAfter(w, a, 1) {
			if PlanFor(w, load, DefaultPolicy(), 4*GiB).Bound <= 0 {
				b.Fatal("a plan of nothing")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*pods), "µs/pod")
}

func BenchmarkPlan10000Tasks(b *testing.B) { benchmarkPlans(b, 10_000, 100) }

func BenchmarkPlan10Tasks(b *testing.B) { benchmarkPlans(b, 10, 1) }

func BenchmarkNeed(b *testing.B) {
	w, a := bigApp(10_000, 100)
	load := LoadAfter(w, a, "pod-0", 1)
	b.ReportAllocs()
	for b.Loop() {
		if RequiredLimit(w, load, DefaultPolicy()) == MaxBytes {
			b.Fatal("no limit holds")
		}
	}
}

func BenchmarkSurvives(b *testing.B) {
	w, a := bigApp(10_000, 100)
	w.Bounded = true
	limits := map[string]Bytes{}
	for _, pod := range a.Pods {
		limits[pod.Name] = 8 * GiB
	}
	b.ReportAllocs()
	for b.Loop() {
		if Survives(w, a, DefaultPolicy(), limits) < 0 {
			b.Fatal("does not even fit now")
		}
	}
}
