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

// benchmarkPlans plans every pod of an application: one operation is the loads of all pods after a failure and a plan for each.
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

// BenchmarkTightPlan plans under a limit that holds the load with lowered configs only.
func BenchmarkTightPlan(b *testing.B) {
	w, load := derivable(), onlyCap(2, 8, 8)
	limit := RequiredLimit(w, load, DefaultPolicy()) + 24*MiB
	b.ReportAllocs()
	for b.Loop() {
		if !PlanFor(w, load, DefaultPolicy(), limit).Fits() {
			b.Fatal("does not fit")
		}
	}
}

// BenchmarkApplication plans 100 pods of a bounded application with 10,000 tasks.
func BenchmarkApplication(b *testing.B) {
	w, a := bigApp(10_000, 100)
	w.Bounded = true
	kind := PodKind{Injected: true, Bounded: true}
	application := Application{
		Planned: w, Target: w, Running: map[PodKind]Workload{kind: w}, Assignment: a, Pods: map[string]RunningPod{},
		Range: Range{Template: 8 * GiB, Adjustable: true, Max: MaxBytes, Cap: MaxBytes}, Policy: DefaultPolicy(),
		Failures: Failures{Instances: 100, Tolerated: 1},
	}
	for _, pod := range a.Pods {
		application.Pods[pod.Name] = RunningPod{Kind: kind, Limit: 8 * GiB}
		application.PlanReaders = append(application.PlanReaders, 8*GiB)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !PlanApplication(application).Published.Fits() {
			b.Fatal("does not fit")
		}
	}
}

func BenchmarkRequiredLimit(b *testing.B) {
	w, a := bigApp(10_000, 100)
	load := LoadsAfter(w, a, 1)[0]
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
		if survives(w, a, DefaultPolicy(), limits) < 0 {
			b.Fatal("does not even fit now")
		}
	}
}
