// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// activePlan is a fixture with 300 tasks whose plan is active in three pods. No part of its memory is in the process: each pass restores it.
func activePlan(t *testing.T) fixture {
	t.Helper()
	g := reported()
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "8Gi"))
	g.reports = manyReports(100)
	for range 2 {
		g.pods = testobjects.RunningPods(3, limitText(g.after(t)), withAgent)
		g = g.after(t)
	}
	return g
}

// limitText returns the limit of a new pod.
func limitText(g fixture) string {
	if limit := g.injection.Spec.Memory.Limit; limit != nil {
		return limit.String()
	}
	return "1Gi"
}

// TestSilentPodsKeepTheirLoad: limits, plan and injection stay as they were with all reports.
func TestSilentPodsKeepTheirLoad(t *testing.T) {
	silent := func(names ...string) func(*fixture) {
		return func(g *fixture) {
			g.reports = maps.Clone(g.reports)
			for _, name := range names {
				delete(g.reports, name)
			}
		}
	}
	errs := func(names ...string) func(*fixture) {
		return func(g *fixture) {
			g.reports = maps.Clone(g.reports)
			*g = unreachable(*g, names...)
		}
	}
	again := func(g *fixture) { // another StreamApp of the same name
		g.app = g.app.DeepCopy()
		g.app.UID = "another"
		g.app.Status = v1alpha1.StreamAppStatus{}
	}
	bare := func(names ...string) func(*fixture) {
		return func(g *fixture) {
			silent(names...)(g)
			g.pods = nil
			for i := range 3 {
				name := fmt.Sprintf("orders-%d", i)
				pod := testobjects.RunningPod(i, limitText(*g), withAgent)
				if slices.Contains(names, name) {
					pod = testobjects.RunningPod(i, "1Gi", testobjects.NotInjected)
					pod.UID = types.UID("bare " + name)
				}
				g.pods = append(g.pods, pod)
			}
		}
	}
	replaced := func(g *fixture) { // pods of a workload that was created again, and have run for an hour without a report
		silent("orders-0", "orders-1")(g)
		g.pods = nil
		for i := range 3 {
			pod := testobjects.RunningPod(i, limitText(*g), withAgent)
			if i < 2 {
				pod.UID = types.UID(fmt.Sprint("new ", i))
			}
			g.pods = append(g.pods, pod)
		}
	}
	cases := map[string][]func(*fixture){
		"one silent pod":                           {silent("orders-1")},
		"one unreachable pod":                      {errs("orders-0")},
		"two silent pods":                          {silent("orders-0", "orders-2")},
		"all are silent":                           {silent("orders-0", "orders-1", "orders-2")},
		"one silent pod, created again":            {silent("orders-1"), again},
		"all are silent, created again":            {silent("orders-0", "orders-1", "orders-2"), again},
		"one pod without plan and agent":           {bare("orders-1")},
		"all pods without plan and agent":          {bare("orders-0", "orders-1", "orders-2")},
		"two pods of a workload created again":     {replaced},
		"the same, and the StreamApp, too":         {replaced, again},
		"no silent pod, StreamApp created again":   {again},
		"one pod without plan and agent, reported": {bare("orders-1"), again},
	}
	for name, changes := range cases {
		t.Run(name, func(t *testing.T) {
			g := activePlan(t)
			want := g.decide(t)
			for _, change := range changes {
				change(&g)
			}
			for pass := range 3 {
				d := g.decide(t)
				injection := d.Injection
				if injection == nil && d.Frozen.Reason == v1alpha1.ReasonAssignmentUnknown {
					injection = &g.injection.Spec
				} else {
					wantNoDiff(t, "files", want.Files, d.Files)
				}
				wantNoDiff(t, fmt.Sprint("injection of pass ", pass), want.Injection, injection)
				if len(d.Resizes) > 0 && !strings.Contains(name, "without plan") {
					t.Errorf("resizes %v", d.resizes())
				}
				status := d.status()
				lost := status.RequiredLimit == nil && name != "all are silent, created again"
				if lost || status.Tasks == nil || *status.Tasks != 300 {
					t.Errorf("the status has lost its figures: required %v, tasks %v", status.RequiredLimit, status.Tasks)
				}
				if !d.Frozen.Found() {
					g = g.after(t)
				}
				g.app = g.app.DeepCopy()
				g.app.Status = status
			}
		})
	}
}

// TestSilentPodCountsWithItsLastLoad, as the Kafka group shows it, or with the heaviest one.
func TestSilentPodCountsWithItsLastLoad(t *testing.T) {
	uneven := func() fixture {
		g := reported()
		g.reports = map[string]report.PodReport{"orders-0": reportWith(0, 2), "orders-1": reportWith(2, 7), "orders-2": reportWith(9, 3)}
		return g.after(t)
	}
	tasks := func(g fixture) map[string]int {
		counts := map[string]int{}
		for name, pod := range g.decide(t).Plan.Pods {
			counts[name] = pod.Tasks
		}
		return counts
	}
	g := uneven()
	delete(g.reports, "orders-2")
	wantNoDiff(t, "last known", map[string]int{"orders-0": 2, "orders-1": 7, "orders-2": 3}, tasks(g))
	g.group = groupOf(2, 7, 3)
	g.group.Processes[2].Tasks.Active = g.group.Processes[2].Tasks.Active[:1]
	wantNoDiff(t, "shown by Kafka", map[string]int{"orders-0": 2, "orders-1": 7, "orders-2": 1}, tasks(g))
	g = uneven()
	delete(g.reports, "orders-2")
	g.pods[2].UID = "never seen"
	wantNoDiff(t, "that of the pod that is gone", map[string]int{"orders-0": 2, "orders-1": 7, "orders-2": 3}, tasks(g))
	g.pods = append(g.pods, testobjects.RunningPod(3, "1Gi", withAgent))
	wantNoDiff(t, "heaviest", map[string]int{"orders-0": 2, "orders-1": 7, "orders-2": 3, "orders-3": 7}, tasks(g))
	g.pods = g.pods[:3]
	g.pods[2].Status.ContainerStatuses[0].State = runningFor(time.Minute)
	wantNoDiff(t, "starting", map[string]int{"orders-0": 2, "orders-1": 7, "orders-2": 0}, tasks(g))
}

// TestLoadsAreKeptWhileTasksMove: a pod that has given up tasks is not remembered without them.
func TestLoadsAreKeptWhileTasksMove(t *testing.T) {
	g := reported().after(t)
	before := g.decide(t).Memory.Assignment
	g.reports["orders-1"] = reportWith(4, 1)
	wantNoDiff(t, "while tasks move", before.Loads, g.decide(t).Memory.Assignment.Loads)
	g.reports["orders-2"] = reportWith(5, 7)
	after := g.decide(t).Memory.Assignment
	if got := after.Loads["orders-1-uid"].Tasks.Len(); got != 1 {
		t.Errorf("%d tasks are remembered, want the 1 that is left", got)
	}
}

// TestAnotherTopologyIsNotPlannedFromMemory: a new version of the application may have other tasks and stores.
func TestAnotherTopologyIsNotPlannedFromMemory(t *testing.T) {
	g := activePlan(t)
	another := func(r *report.Report) {
		r.Clients[0].Topology = "of another version"
		r.Started = testobjects.Now.UnixMilli()
	}
	g.reports = map[string]report.PodReport{"orders-0": reportWith(0, 1, another), "orders-1": reportWith(100, 100)}
	if d := g.decide(t); d.Frozen.Reason != v1alpha1.ReasonAssignmentUnknown {
		t.Errorf("frozen = %+v, want reason %s", d.Frozen, v1alpha1.ReasonAssignmentUnknown)
	}
}

// TestMemoryOutlivesTheProcess: the annotation restores everything that the process knows.
func TestMemoryOutlivesTheProcess(t *testing.T) {
	g := reported(func(r *report.Report) { r.JVM.Metaspace = 130 * mib })
	g.reports["orders-1"].Report.Clients[0].Threads[0].Tasks[0].Role = report.RoleStandby
	g.reports["orders-2"].Report.Clients[0].Threads[0].Tasks[0].Stores[0].Scope = "in-memory-state"
	w, m := g.world(t)
	d := Decide(w, m)
	if len(d.Memory.Assignment.Topology.Subtopologies) == 0 {
		t.Fatal("no assignment is known")
	}
	plan := &corev1.ConfigMap{}
	plan.Annotations = map[string]string{AnnotationMemory: d.MemoryText()}
	app := testobjects.StreamApp()
	restored := Recall(app, plan, nil, nil, Volatile{})
	wantNoDiff(t, "assignment", d.Memory.Assignment, restored.Assignment)
	wantNoDiff(t, "images", d.Memory.Images, restored.Images)
	wantNoDiff(t, "measured", d.Memory.Measured, restored.Measured)
	wantNoDiff(t, "tasks", d.Memory.Tasks, restored.Tasks)

	app.Status.ObservedGeneration = 1
	if m := Recall(app, plan, nil, nil, Volatile{}); m.Images != nil || m.Tasks != nil || m.Assignment == nil {
		t.Errorf("a StreamApp with a status takes images or tasks from the annotation, or no assignment: %+v", m)
	}
	other := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.TargetRef.Name = "payments" })
	if m := Recall(other, plan, nil, nil, Volatile{}); m.Images != nil || m.Tasks != nil || m.Assignment != nil {
		t.Errorf("the memory about another target is used: %+v", m)
	}
}

// knownOf has pods with this number of tasks each, in every second partition, so that no range is longer than one.
func knownOf(pods, tasks int) *KnownAssignment {
	known := &KnownAssignment{
		Topology: KnownTopology{Hash: "0123456789abcdef", Subtopologies: []assignment.Subtopology{{ID: "0", Tasks: int32(2 * pods * tasks)}}},
		Loads:    map[types.UID]assignment.PodLoad{},
	}
	for pod := range pods {
		load := assignment.PodLoad{Pod: fmt.Sprintf("orders-%d", pod), Threads: 4}
		for task := range tasks {
			load.Tasks.Active = append(load.Tasks.Active, assignment.Task{Subtopology: "0", Partition: int32(2 * (pod*tasks + task))})
		}
		known.Loads[types.UID(fmt.Sprintf("%08d-0000-4000-8000-%012d", pod, pod*7919))] = load
	}
	return known
}

// TestMemoryFitsIntoAnAnnotation: loads are left out before the topology.
func TestMemoryFitsIntoAnAnnotation(t *testing.T) {
	app := testobjects.StreamApp()
	for name, c := range map[string]struct {
		pods, tasks int
		packed      bool
		loads       int
	}{
		"small":      {3, 4, false, 3},
		"large":      {500, 60, true, 500},
		"very large": {2500, 100, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := Memory{Volatile: Volatile{Assignment: knownOf(c.pods, c.tasks)}}
			text := memoryText(app, &m, nil)
			if len(text) > maxMemory || strings.HasPrefix(text, packedPrefix) != c.packed {
				t.Errorf("%d bytes, packed %t", len(text), strings.HasPrefix(text, packedPrefix))
			}
			t.Logf("%d pods with %d tasks: %d bytes", c.pods, c.tasks, len(text))
			plan := &corev1.ConfigMap{}
			plan.Annotations = map[string]string{AnnotationMemory: text}
			_, known, found := readMemory(app, plan)
			if !found || len(known.Loads) != c.loads {
				t.Fatalf("found %t, %d loads", found, len(known.Loads))
			}
			wantNoDiff(t, "topology", m.Assignment.Topology, known.Topology)
			if c.loads > 0 {
				wantNoDiff(t, "loads", m.Assignment.Loads, known.Loads)
			}
			if again := memoryText(app, &m, plan); again != text {
				t.Error("the same memory has another text")
			}
		})
	}
}

// TestPresentTextStays: another compressor, as that of another Go version, is no reason for a write.
func TestPresentTextStays(t *testing.T) {
	app := testobjects.StreamApp()
	m := Memory{Volatile: Volatile{Assignment: knownOf(3, 4)}}
	plain := memoryText(app, &m, nil)
	plan := &corev1.ConfigMap{}
	plan.Annotations = map[string]string{AnnotationMemory: packedPrefix + compressed([]byte(plain))}
	if got := memoryText(app, &m, plan); got != plan.Annotations[AnnotationMemory] {
		t.Errorf("the text is replaced by %s", got)
	}
	m.Assignment = knownOf(3, 5)
	if got := memoryText(app, &m, plan); got == plan.Annotations[AnnotationMemory] {
		t.Error("the text stays although the memory has changed")
	}
}

func TestUnreadableMemoryCountsAsAbsent(t *testing.T) {
	app := testobjects.StreamApp()
	target := `{"target":"StatefulSet/orders"`
	for _, text := range []string{
		"", "x", "{}", "null", "[]", `{"target":1}`, packedPrefix, packedPrefix + "x", packedPrefix + compressed([]byte("{}"))[:20],
		target + `,"loads":{"u":{"active":{"0":"x"}}}}`, target + `,"loads":{"u":{"active":{"0":"5-1"}}}}`, target + `,"loads":{"u":{"active":{"0":"-1"}}}}`,
		target + `,"loads":{"u":{"active":{"0":""}}}}`, target + `,"loads":{"u":{"active":{"0":"0-2000000000"}}}}`,
		target + `,"loads":{"u":{"active":{"0":"0-900000","1":"0-900000"}}}}`, target + `,"tasks":"many"}`,
		packedPrefix + compressed([]byte(target+`,"topology":"`+strings.Repeat("x", maxUnpacked)+`"}`)),
	} {
		plan := &corev1.ConfigMap{}
		plan.Annotations = map[string]string{AnnotationMemory: text}
		if m := Recall(app, plan, nil, nil, Volatile{}); m.Assignment != nil || m.Tasks != nil || m.Images != nil {
			t.Errorf("%.60q is read as %+v", text, m)
		}
	}
}

// TestFirstReportIsAwaitedBeforeARaise: the process may turn out to be bounded, and limits are never lowered in place.
func TestFirstReportIsAwaitedBeforeARaise(t *testing.T) {
	g := reported()
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("", "32Gi"))
	g.group = groupOf(20, 20, 20)
	g.reports = nil
	raises := func(tracked time.Duration, change func(*World)) int {
		w, m := g.world(t)
		w.TrackedSince = w.Now.Add(-tracked)
		change(&w)
		d := Decide(w, m)
		if len(d.Resizes) == 0 && (d.RecheckAfter == 0 || d.RecheckAfter > sourcesGrace) {
			t.Errorf("rechecked after %s", d.RecheckAfter)
		}
		return len(d.Resizes)
	}
	unreachable := func(w *World) {
		for i := range w.Pods {
			w.Reports[string(w.Pods[i].UID)] = report.PodReport{Err: &report.Error{Fault: report.Unreachable}, Since: w.Now}
		}
	}
	if got := raises(time.Second, func(*World) {}); got != 0 {
		t.Errorf("%d limits are raised before the first report", got)
	}
	if got := raises(sourcesGrace, func(*World) {}); got != 3 {
		t.Errorf("%d limits are raised after the grace, want 3", got)
	}
	if got := raises(time.Second, unreachable); got != 3 {
		t.Errorf("%d limits of unreachable pods are raised, want 3", got)
	}
}

// TestPodsWithAnotherPlan, as after a rename of the StreamApp, are neither refreshed nor awaited. Their limits are raised.
func TestPodsWithAnotherPlan(t *testing.T) {
	other := func(p *corev1.Pod) {
		p.Spec.Volumes[0] = testobjects.ConfigMapVolume(v1alpha1.PlanVolume, PlanConfigMapName("orders-before"))
	}
	g := activePlan(t)
	g.pods = testobjects.RunningPods(3, "700Mi", withAgent, other)
	d := g.decide(t)
	if len(d.Refreshes)+len(d.NotAcknowledged) > 0 {
		t.Errorf("refreshed %v, not acknowledged %v", d.Refreshes, d.NotAcknowledged)
	}
	if len(d.Resizes) != 3 {
		t.Errorf("resizes %v, want 3", d.resizes())
	}
	if limit := d.publishedLimit(); limit <= 700*mib {
		t.Errorf("the plan is for %s, that of the pods without it", bytesText(limit))
	}
	g.pods = testobjects.RunningPods(3, "8Gi", withAgent, other)
	wantVerdict(t, v1alpha1.ConditionApplied, isFalse(v1alpha1.ReasonRestartNeeded, "3 pods (orders-0) mount the plan of another StreamApp"),
		judge(g.decide(t), &Outcome{})[v1alpha1.ConditionApplied])
}

// TestMemoryOutlivesTheTarget: images and figures stay in the status while the target does not exist.
func TestMemoryOutlivesTheTarget(t *testing.T) {
	g := activePlan(t)
	want := g.app.Status
	g.workload = missing{}
	got := g.decide(t).status()
	wantNoDiff(t, "images", want.Images, got.Images)
	wantNoDiff(t, "measured", want.Measured, got.Measured)
	wantNoDiff(t, "tasks", want.Tasks, got.Tasks)
}
