// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// viewOf returns a view with one ready pod.
func viewOf(limit string, tasks ...assignment.Task) *view {
	memory := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Resources: memory}}},
		Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Resources: &memory}},
		},
	}
	return &view{pods: []corev1.Pod{pod}, tasks: map[string][]assignment.Task{"orders-0": tasks}}
}

func TestPodsShowTasksAndTheChangeOfTheLimit(t *testing.T) {
	before := viewOf("1Gi", assignment.Task{Subtopology: "0", Partition: 1})
	after := viewOf("1536Mi", assignment.Task{Subtopology: "0", Partition: 1}, assignment.Task{Subtopology: "0", Partition: 11})
	after.app.Status = v1alpha1.StreamAppStatus{RequiredLimit: new(resource.MustParse("1400Mi")), PodFailuresTolerated: new(int32(1))}
	var out strings.Builder
	show{out: &out}.pods(after, before)
	want := `     POD       TASKS     MEMORY LIMIT
     orders-0  0_1 0_11  1024 MiB -> 1536 MiB
   required limit 1400 MiB, limit -, heap -; further pod failures tolerated: 1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestLinesShowTheLargestAndAddUpTheRest(t *testing.T) {
	v := &view{}
	for i, pool := range []v1alpha1.Pool{v1alpha1.PoolHeap, v1alpha1.PoolNative} {
		for n := range 5 {
			bound := resource.NewQuantity(int64(n+1+i)<<20, resource.BinarySI)
			v.app.Status.Lines = append(v.app.Status.Lines, v1alpha1.Line{
				Name: string(rune('a'+n)) + string(pool), Pool: pool, Bound: bound, Source: v1alpha1.SourceDefault, Count: new(int64(n)),
			})
		}
	}
	var out strings.Builder
	show{out: &out}.lines(v)
	want := `     PLAN OF THE REPRESENTATIVE POD, AFTER THE NEXT POD FAILURE  POOL    COUNT  BOUND  SOURCE
     eNative                                                     Native  4      6 MiB  Default
     eHeap                                                       Heap    4      5 MiB  Default
     dNative                                                     Native  3      5 MiB  Default
     dHeap                                                       Heap    3      4 MiB  Default
     cNative                                                     Native  2      4 MiB  Default
     cHeap                                                       Heap    2      3 MiB  Default
     bNative                                                     Native  1      3 MiB  Default
     bHeap                                                       Heap    1      2 MiB  Default
     the rest                                                    Heap           1 MiB  ` + `
     the rest                                                    Native         2 MiB  ` + `
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestPlanChangesShowOnlyWhatChanged(t *testing.T) {
	before := &view{plan: map[string]string{"jvm.options": "-XX:MaxRAM=1\n-XX:A\n", "same": "x"}}
	after := &view{plan: map[string]string{"jvm.options": "-XX:MaxRAM=2\n-XX:A\n", "same": "x"}}
	var out strings.Builder
	show{out: &out}.planChanges(before, after)
	want := `   changes of the plan ConfigMap, as mounted in both pods:
     jvm.options
     - -XX:MaxRAM=1
     + -XX:MaxRAM=2
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestChecksReportTheFirstProblem(t *testing.T) {
	planned := func(limit string) *view {
		memory := resource.MustParse(limit)
		v := viewOf(limit, assignment.Task{Subtopology: "0"})
		v.plan = map[string]string{"jvm.options": "-XX:MaxRAM=" + fmt.Sprint(memory.Value()) + "\n-XX:MaxRAMPercentage=25.0"}
		v.mounted = map[string]map[string]string{"orders-0": v.plan}
		v.app.Status = v1alpha1.StreamAppStatus{
			Pods: new(int32(1)), RequiredLimit: new(resource.MustParse("512Mi")), Limit: &memory, Heap: new(resource.MustParse("256Mi")),
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionAssignmentKnown, Status: metav1.ConditionTrue},
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
			},
		}
		return v
	}
	for name, tc := range map[string]struct {
		check  func(*view) error
		change func(*view)
		want   string
	}{
		"everything is as planned":        {check: checkPlanned, change: func(*view) {}},
		"an unobserved StreamApp":         {checkPlanned, func(v *view) { v.app.Generation = 1 }, "has not observed"},
		"unknown tasks":                   {checkPlanned, func(v *view) { v.app.Status.Conditions = nil }, "does not know the assignment"},
		"another number of pods":          {checkPlanned, func(v *view) { v.app.Status.Pods = new(int32(3)) }, "does not report 1 pods"},
		"no plan":                         {checkPlanned, func(v *view) { v.app.Status.Limit = nil }, "no plan yet"},
		"a required limit that is higher": {checkPlanned, func(v *view) { v.app.Status.RequiredLimit = new(resource.MustParse("9Gi")) }, "below the required limit"},
		"a StreamApp that is not ready":   {checkPlanned, func(v *view) { v.app.Status.Conditions = v.app.Status.Conditions[:1] }, "not ready"},
		"a heap above the plan's":         {checkPlanned, func(v *view) { v.app.Status.Heap = new(resource.MustParse("1Mi")) }, "a heap of 256 MiB"},
		"options without a number":        {checkPlanned, func(v *view) { v.plan["jvm.options"] = "-XX:MaxRAM=x" }, "option -XX:MaxRAM=x"},
		"a limit that is not applied":     {checkPlanned, func(v *view) { v.pods[0].Status.ContainerStatuses = nil }, "actual 0"},
		"a plan that is not mounted":      {checkPlanned, func(v *view) { v.mounted = nil }, "published plan is not mounted"},
		"an unchanged limit":              {checkFollowed(planned("1Gi")), func(*view) {}, "the limit of pod orders-0 is unchanged"},
		"a pod without additional tasks":  {checkFollowed(planned("768Mi")), func(*view) {}, "has no additional tasks"},
		"unassigned tasks":                {checkTasksOn([]string{"orders-0"}), func(v *view) { v.allTasks = 11 }, "11 of 12"},
		"tasks on another pod":            {checkTasksOn([]string{"orders-1"}), func(v *view) { v.allTasks = 12 }, "want [orders-1]"},
		"a missing pod":                   {checkPodsRun(2), func(*view) {}, "1 pods are ready, not 2"},
		"a pod without the annotation":    {checkInjected, func(*view) {}, "has no annotation"},
		"a pod without the plan":          {checkInjected, annotate, "JVM options of pod orders-0 are"},
		"a failed first check":            {both(checkPodsRun(2), checkPlanned), func(*view) {}, "not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			v := planned("1Gi")
			tc.change(v)
			got := ""
			if err := tc.check(v); err != nil {
				got = err.Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// annotate marks the pod as injected.
func annotate(v *view) {
	v.pods[0].Annotations = map[string]string{v1alpha1.PlanAnnotation: "abc"}
}
