// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

const (
	testImage  = "registry.example/orders:1"
	testDigest = "registry.example/orders@sha256:1"
)

// withAgent makes a pod one that was created with the agent, from the template's image.
func withAgent(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: v1alpha1.AgentVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: testAgentMap}},
	}})
	ofImage(testImage, testDigest)(p)
}

func ofImage(name, digest string) change[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Status.ContainerStatuses[0].ImageID = name, digest
		p.Status.ContainerStatuses[0].State = runningSince(testNow.Add(-time.Hour))
	}
}

// reportWith is a report of a bounded process with so many tasks, from a partition on.
func reportWith(first, tasks int, changes ...change[report.Report]) report.PodReport {
	thread := report.Thread{Name: "orders-StreamThread-1"}
	for i := range tasks {
		thread.Tasks = append(thread.Tasks, report.Task{
			ID: fmt.Sprintf("0_%d", first+i), Role: report.RoleActive, Stores: []report.Store{{Name: "totals", Scope: "rocksdb-state"}},
		})
	}
	reported := build(report.Report{
		Schema: report.Schema, Started: testNow.Add(-59 * time.Minute).UnixMilli(), Bounded: report.BoundedActive,
		Plan: report.Plan{OnDisk: "first", Active: "first"},
		Clients: []report.Client{{
			ApplicationID: testApp, ClientID: testApp, Version: "4.4.0", State: "RUNNING", Brokers: 3, Threads: []report.Thread{thread},
		}},
		JVM: report.JVM{Version: 21},
	}, changes)
	return report.PodReport{Report: reported, At: testNow}
}

// reported is a world whose three pods have four tasks each, and say so.
func reported(changes ...change[report.Report]) given {
	return given{
		agent: true, workload: statefulSet(3, podTemplate("1Gi")), pods: runningPodsOf(3, "1Gi", withAgent),
		reports: map[string]report.PodReport{
			"orders-0": reportWith(0, 4, changes...), "orders-1": reportWith(4, 4, changes...), "orders-2": reportWith(8, 4, changes...),
		},
	}
}

func TestTheReportsAloneTellWhoRunsWhat(t *testing.T) {
	p := passOf(t, reported())
	if !p.planned.tasksKnown || p.planned.tasks != 12 || len(p.planned.invalid) > 0 {
		t.Fatalf("tasks = %d (known: %t, invalid: %v), want 12", p.planned.tasks, p.planned.tasksKnown, p.planned.invalid)
	}
	for name, pod := range p.planned.pods {
		if pod.tasks != 4 {
			t.Errorf("%s runs %d tasks, want 4", name, pod.tasks)
		}
	}
	w := p.planned.workload
	want := memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.Measured)
	wantNoDiff(t, "version", want, w.Version)
	wantNoDiff(t, "JVM", memplan.Known(21, memplan.Measured), w.JVM.Version)
	if !w.Bounded {
		t.Error("the workload is not bounded, though every pod says that it is")
	}
	if got := judgeAssignment(p.obs, p.planned); got.reason != v1alpha1.ReasonFromReports || got.status != metav1.ConditionTrue {
		t.Errorf("AssignmentKnown = %+v", got)
	}
}

func TestTheNeedOfABoundedApplicationIsFarBelowThatOfOneAsShipped(t *testing.T) {
	bounded, pending := passOf(t, reported()), passOf(t, reported(func(r *report.Report) { r.Bounded = report.BoundedPending }))
	if bounded.planned.need >= pending.planned.need {
		t.Errorf("bounded it needs %s, as shipped %s", humanBytes(bounded.planned.need), humanBytes(pending.planned.need))
	}
	for what, p := range map[string]pass{"bounded": bounded, "as shipped": pending} {
		if got := p.want.planData[planfile.PropertiesKey]; !strings.Contains(got, "rocksdb.cache.bytes=") {
			t.Errorf("%s: the plan has no bounds:\n%s", what, got)
		}
	}
	if got := envelopeOf(pending.obs).floor(); got != 1<<30 {
		t.Errorf("before anything is proven the least limit is %s, want the template's", humanBytes(got))
	}
	if got := envelopeOf(bounded.obs).floor(); got != 512*mib {
		t.Errorf("after it is proven the least limit is %s, want minLimit", humanBytes(got))
	}
}

// TestAShortageAsShippedDoesNotKeepTheFirstPodFromBeingBounded: nothing could ever be proven otherwise.
func TestAShortageAsShippedDoesNotKeepTheFirstPodFromBeingBounded(t *testing.T) {
	g := reported(func(r *report.Report) { r.Bounded = report.BoundedPending })
	g.app = streamApp(limitsBetween("512Mi", "1Gi"))
	p := passOf(t, g)
	if p.planned.needNow <= 1<<30 {
		t.Fatalf("as shipped it needs %s: the case is none", humanBytes(p.planned.needNow))
	}
	if p.want.held.found() || p.want.injection == nil {
		t.Errorf("nothing is injected: %+v", p.want.held)
	}
	g.agent = false
	g.reports, g.group = nil, groupOf(4, 4, 4)
	if p := passOf(t, g); p.want.held.reason != v1alpha1.ReasonInsufficientMemory {
		t.Errorf("without an agent: held = %+v, want a shortage", p.want.held)
	}
}

func TestWhatThePlanHasSetIsNotTheApplicationsOwn(t *testing.T) {
	by := func(who report.SettingBy) change[report.Report] {
		return func(r *report.Report) {
			r.Clients[0].Settings = []report.Setting{{Name: "producer.buffer.memory", Value: "4194304", By: who}}
		}
	}
	own, plans := passOf(t, reported(by(report.SetByApp))), passOf(t, reported(by(report.SetByPlan)))
	wantNoDiff(t, "set by the application", memplan.Known(4*memplan.MiB, memplan.App), own.planned.workload.Clients.Producer.BufferMemory)
	wantNoDiff(t, "set by the plan", memplan.Known(32*memplan.MiB, memplan.Default), plans.planned.workload.Clients.Producer.BufferMemory)
}

func TestTheSpecGivesWayToTheReports(t *testing.T) {
	g := reported(func(r *report.Report) {
		r.Clients[0].Settings = []report.Setting{{Name: "processing.guarantee", Value: "exactly_once_v2", By: report.SetByApp}}
	})
	g.app = streamApp(limitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) {
		app.Spec.Streams = v1alpha1.StreamsSpec{
			Version: "3.6.0", Threads: 7, StandbyReplicas: new(int32(3)), ProcessingGuarantee: v1alpha1.AtLeastOnce,
			Configs: []v1alpha1.Config{{Name: "buffer.memory", Value: "1"}},
		}
	})
	w := passOf(t, g).planned.workload
	got := []any{w.Version.Value.String(), w.Threads.Value, w.Standbys.Value, w.Guarantee.Value, w.Clients.Producer.BufferMemory.Value}
	want := []any{"4.4.0", 1, 0, memplan.ExactlyOnceV2, 32 * memplan.MiB}
	wantNoDiff(t, "facts", want, got)
}

func TestReportsOfSomePodsAreNotTheWholeApplication(t *testing.T) {
	missing := func(change func(*given)) given {
		g := reported()
		delete(g.reports, "orders-2")
		change(&g)
		return g
	}
	seen := []assignment.Subtopology{{ID: "0", Tasks: 12}}
	starting := func(p *corev1.Pod) {
		if p.Name == "orders-2" {
			p.Status.ContainerStatuses[0].State = runningSince(testNow.Add(-time.Minute))
		}
	}
	cases := map[string]struct {
		given given
		want  bool
	}{
		"all":                                   {reported(), true},
		"one is missing, and was never there":   {missing(func(*given) {}), false},
		"one is missing that was there":         {missing(func(g *given) { g.known = seen }), false},
		"one has only just started":             {missing(func(g *given) { g.known, g.pods = seen, runningPodsOf(3, "1Gi", withAgent, starting) }), true},
		"one has only just started, as have we": {missing(func(g *given) { g.pods = runningPodsOf(3, "1Gi", withAgent, starting) }), false},
		"one has only just started, as have we, but all tasks are seen": {missing(func(g *given) {
			g.pods = runningPodsOf(3, "1Gi", withAgent, starting)
			g.reports["orders-1"] = reportWith(4, 8)
			g.app = streamApp(limitsBetween("512Mi", "4Gi"))
			g.app.Status.Tasks = new(int32(12))
		}), true},
		"one has no agent": {missing(func(g *given) {
			g.known = seen
			g.pods = append(runningPodsOf(2, "1Gi", withAgent), runningPod(2, "1Gi"))
		}), false},
		"one was restarted since it reported": {missing(func(g *given) {
			g.reports["orders-2"] = reportWith(8, 4)
			g.pods = runningPodsOf(3, "1Gi", withAgent, starting)
		}), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := observed(t, c.given).reports.usable; got != c.want {
				t.Errorf("usable = %t, want %t", got, c.want)
			}
		})
	}
}

// TestThePodsKnowBestAndTheBrokersKnowTheRest: tasks and open stores from the pods, retention from the changelog topics.
func TestThePodsKnowBestAndTheBrokersKnowTheRest(t *testing.T) {
	g := reported(func(r *report.Report) {
		for i := range r.Clients[0].Threads[0].Tasks {
			r.Clients[0].Threads[0].Tasks[i].Stores = []report.Store{{Name: "totals", Scope: "rocksdb-window-state"}}
		}
	})
	g.group = groupOf(6, 6)
	g.group.Subtopologies[0].Changelogs[0].Kind, g.group.Subtopologies[0].Changelogs[0].Retention = assignment.Window, time.Hour
	p := passOf(t, g)
	want := []memplan.Store{{Name: "totals", Kind: memplan.Window, Caching: true, RetentionMs: memplan.Known(time.Hour.Milliseconds(), memplan.Measured)}}
	wantNoDiff(t, "stores", want, p.planned.workload.Subtopologies[0].Stores)
	for name, pod := range p.planned.pods {
		if pod.tasks != 4 {
			t.Errorf("%s runs %d tasks, want the 4 that it reports", name, pod.tasks)
		}
	}
}

func TestAStoreOnTheHeapIsSeenWhereTheTopologyDoesNotTell(t *testing.T) {
	text := "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [in])\n      --> KSTREAM-AGGREGATE-0000000001\n" +
		"    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [totals])\n      --> none\n      <-- s\n"
	p := passOf(t, reported(func(r *report.Report) {
		r.Clients[0].Topology = text
		for i := range r.Clients[0].Threads[0].Tasks {
			r.Clients[0].Threads[0].Tasks[i].Stores[0].Scope = "in-memory-state"
		}
	}))
	stores := p.planned.workload.Subtopologies[0].Stores
	if len(stores) != 1 || !stores[0].InMemory || familyOf(stores[0].Kind) != memplan.KeyValue {
		t.Errorf("stores = %+v, want one key-value store on the heap", stores)
	}
	if slices.ContainsFunc(p.planned.notes, func(note string) bool { return strings.Contains(note, "counts as") }) {
		t.Errorf("notes = %q: the kind of the store is known", p.planned.notes)
	}
}

// TestADeadConnectionIsTheFirstSignOfALoss: the survivors' need is that of one pod fewer, as long as the plan covers the suspected.
func TestADeadConnectionIsTheFirstSignOfALoss(t *testing.T) {
	silent := func(names ...string) given {
		g := reported()
		for _, name := range names {
			answer := g.reports[name]
			answer.Gone = testNow.Add(-time.Second)
			g.reports[name] = answer
		}
		g.known = []assignment.Subtopology{{ID: "0", Tasks: 12}}
		return g
	}
	calm := passOf(t, silent())
	for name, c := range map[string]struct {
		given    given
		suspects int
	}{
		"one of three":                            {silent("orders-2"), 1},
		"two of three are more than are covered":  {silent("orders-1", "orders-2"), 0},
		"all at once: the operator's own network": {silent("orders-0", "orders-1", "orders-2"), 0},
		"none": {silent(), 0},
		"two of three, where two are to be covered": {withLosses(silent("orders-1", "orders-2"), 2), 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := passOf(t, c.given)
			suspects := 0
			for i := range p.obs.pods {
				if p.obs.pods[i].suspected {
					suspects++
				}
			}
			if suspects != c.suspects {
				t.Fatalf("%d pods are suspected, want %d", suspects, c.suspects)
			}
			if p.lost.instances != 3-suspects || p.lost.away != 0 {
				t.Errorf("instances = %d, away = %d", p.lost.instances, p.lost.away)
			}
			if suspects == 1 && p.planned.need <= calm.planned.need {
				t.Errorf("need = %s, want more than %s", humanBytes(p.planned.need), humanBytes(calm.planned.need))
			}
			if suspects > 0 && !p.obs.pods[2].exists() {
				t.Error("a pod that is only suspected still reads the plan")
			}
		})
	}
}

func withLosses(g given, losses int32) given {
	g.app = streamApp(limitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Memory.PodFailuresToTolerate = &losses })
	return g
}

func TestTouchesAreRepeatedUntilThePlanIsSeen(t *testing.T) {
	g := after(t, reported())
	generation := g.plan.Data[planfile.RevisionKey]
	told := func(count int, ago time.Duration) change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Annotations[v1alpha1.PublishedAnnotation] = generation
			p.Annotations[annotationTouched] = touched{count, testNow.Add(-ago)}.String()
		}
	}
	type result struct {
		Touch  bool
		Unseen bool
		Note   string
	}
	cases := map[string]struct {
		pod    change[corev1.Pod]
		onDisk string
		want   result
	}{
		"not told yet":                      {func(*corev1.Pod) {}, "older", result{Touch: true, Note: "1"}},
		"told, and it sees it":              {told(1, time.Hour), generation, result{}},
		"told a moment ago":                 {told(1, time.Second), "older", result{}},
		"told, and it has not seen it":      {told(1, 11*time.Second), "older", result{Touch: true, Unseen: true, Note: "2"}},
		"told twice":                        {told(2, 11*time.Second), "older", result{Unseen: true}},
		"told twice, and long ago":          {told(2, 21*time.Second), "older", result{Touch: true, Unseen: true, Note: "3"}},
		"told so often that it is seldom":   {told(20, 4*time.Minute), "older", result{Unseen: true}},
		"told so often, and it was a while": {told(20, 5*time.Minute), "older", result{Touch: true, Unseen: true, Note: "21"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := g
			g.pods = runningPodsOf(3, "1Gi", withAgent, c.pod)
			g.reports = reported(func(r *report.Report) { r.Plan.OnDisk = c.onDisk }).reports
			p := passOf(t, g)
			got := result{Touch: slices.Contains(p.want.touches, "orders-0"), Unseen: slices.Contains(p.want.unseen, "orders-0")}
			if got.Touch {
				got.Note, _, _ = strings.Cut(p.obs.nextTouch("orders-0", p.want.generation), " ")
			}
			wantNoDiff(t, "touch", c.want, got)
			if !sees(p.obs.reports.of(&p.obs.pods[0]), p.want.generation) && p.want.recheckAfter == 0 && !got.Touch {
				t.Error("nobody looks again")
			}
		})
	}
	for _, note := range []string{"", "x", "1", "-1 2026-03-14T09:26:53Z", "1 yesterday"} {
		if got := readTouched(note); got != (touched{}) {
			t.Errorf("%q is read as %v", note, got)
		}
	}
}

func TestMeasuredRegions(t *testing.T) {
	figures := func(metaspace, codeCache, live int64, ago time.Duration) change[report.Report] {
		return func(r *report.Report) {
			r.JVM.Metaspace, r.JVM.CodeCache, r.JVM.HeapLive = metaspace*mib, codeCache*mib, live*mib
			r.Started = testNow.Add(-ago).UnixMilli()
		}
	}
	old := func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = runningSince(testNow.Add(-2 * time.Hour)) }
	regions := func(p pass) []string {
		w := p.planned.workload
		return []string{
			w.JVM.Metaspace.Value.String() + " " + w.JVM.Metaspace.From.String(), w.JVM.CodeCache.Value.String() + " " + w.JVM.CodeCache.From.String(),
			w.Application.LiveSet.Value.String() + " " + w.Application.LiveSet.From.String(),
		}
	}
	cases := map[string]struct {
		changes change[report.Report]
		want    []string
	}{
		"nothing was measured":                   {func(*report.Report) {}, []string{"120 MiB assumed", "100 MiB assumed", "48 MiB assumed"}},
		"less than assumed, but it is young":     {figures(50, 30, 20, time.Minute), []string{"120 MiB assumed", "100 MiB assumed", "48 MiB assumed"}},
		"more than assumed counts at once":       {figures(130, 120, 100, time.Minute), []string{"136 MiB measured", "120 MiB measured", "96 MiB measured"}},
		"less than assumed, with a part to grow": {figures(50, 30, 20, 2*time.Hour), []string{"70 MiB measured", "40 MiB measured", "20 MiB measured"}},
		"more than the pod has is not believed":  {figures(900, 200, 20, 2*time.Hour), []string{"120 MiB assumed", "100 MiB assumed", "48 MiB assumed"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := reported(c.changes)
			g.pods = runningPodsOf(3, "1Gi", withAgent, old)
			wantNoDiff(t, "regions", c.want, regions(passOf(t, g)))
		})
	}

	t.Run("the most counts, as long as the image stays", func(t *testing.T) {
		g := reported(figures(50, 30, 20, time.Minute))
		g.app = streamApp(limitsBetween("512Mi", "4Gi"))
		g.app.Status.Measured = v1alpha1.MeasuredRegions{ImageID: testDigest, Metaspace: memory("200Mi")}
		wantNoDiff(t, "metaspace", "200 MiB measured", regions(passOf(t, g))[0])
		g.app.Status.Measured.ImageID = "another"
		wantNoDiff(t, "metaspace of another image", "120 MiB assumed", regions(passOf(t, g))[0])
	})
	t.Run("a small change changes no plan", func(t *testing.T) {
		one, other := reported(figures(129, 101, 60, time.Minute)), reported(figures(135, 103, 62, time.Minute))
		wantNoDiff(t, "plan", passOf(t, one).want.planData, passOf(t, other).want.planData)
	})
}

func TestOtherClientsOfTheSameProcessesAreCounted(t *testing.T) {
	alone := passOf(t, reported())
	g := reported(func(r *report.Report) {
		other := r.Clients[0]
		other.ApplicationID, other.ClientID = "payments", "payments"
		r.Clients = append(r.Clients, other)
	})
	g.app = streamApp(limitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Kafka.ApplicationID = testApp })
	both := passOf(t, g)
	if both.planned.tasks != 12 || both.planned.need <= alone.planned.need {
		t.Errorf("tasks = %d, need = %s; want 12, and more than %s", both.planned.tasks, humanBytes(both.planned.need), humanBytes(alone.planned.need))
	}
}

// TestATaskThatCannotBeStaysWithinTheUsersOwnWalls: a pod that lies about its tasks gets no more than maxLimit, at once and without harm.
func TestATaskThatCannotBeStaysWithinTheUsersOwnWalls(t *testing.T) {
	p := passOf(t, reported(func(r *report.Report) {
		thread := &r.Clients[0].Threads[0]
		thread.Tasks = append(thread.Tasks, report.Task{ID: "0_99999", Role: report.RoleActive})
	}))
	if p.want.limit > 4<<30 {
		t.Errorf("the limit is %s, above maxLimit", humanBytes(p.want.limit))
	}
	for pod, limit := range p.resizes() {
		if q := memory(limit); q.Value() > 4<<30 {
			t.Errorf("%s is raised to %s", pod, limit)
		}
	}
	verdicts := judged(t, p, &applied{})
	isNo(v1alpha1.ReasonCapped, "`maxLimit` is 4Gi").check(t, verdicts[v1alpha1.ConditionCascadeSafe])
}
