// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
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
	"streamweir.dev/streamweir/internal/testobjects"
	"streamweir.dev/streamweir/memplan"
)

// bounds changes the boundedness in a report.
func bounds(state report.Boundedness) testobjects.Change[report.Report] {
	return func(r *report.Report) { r.Bounded = state }
}

func TestReportsAreASourceOfTasks(t *testing.T) {
	d := reported().decide(t)
	if !d.Plan.TasksKnown || d.Plan.Tasks != 12 || len(d.Plan.Invalid) > 0 {
		t.Fatalf("%d tasks (known = %t, invalid: %v), want 12", d.Plan.Tasks, d.Plan.TasksKnown, d.Plan.Invalid)
	}
	for name, pod := range d.Plan.Pods {
		if pod.Tasks != 4 {
			t.Errorf("%s runs %d tasks, want 4", name, pod.Tasks)
		}
	}
	w := reported().planned(t)
	wantNoDiff(t, "version", memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.Measured), w.Version)
	wantNoDiff(t, "JVM", memplan.Known(21, memplan.Measured), w.JVM.Version)
	if !w.Bounded {
		t.Error("the workload is not bounded, although every pod reports that it is")
	}
	known := judge(d, d.outcome())[v1alpha1.ConditionAssignmentKnown]
	if known.reason != v1alpha1.ReasonFromReports || known.status != metav1.ConditionTrue {
		t.Errorf("AssignmentKnown = %+v", known)
	}
}

func TestBoundedPodsRequireLess(t *testing.T) {
	bounded, pending := reported().decide(t), reported(bounds(report.BoundedPending)).decide(t)
	if bounded.Plan.Required >= pending.Plan.Required {
		t.Errorf("%s required bounded, %s with default RocksDB memory", bytesText(bounded.Plan.Required), bytesText(pending.Plan.Required))
	}
	for name, d := range map[string]*Decision{"bounded": bounded, "default RocksDB memory": pending} {
		if got := d.Files[planfile.PropertiesKey]; !strings.Contains(got, "rocksdb.cache.bytes=") {
			t.Errorf("%s: the plan has no bounds:\n%s", name, got)
		}
	}
	if got := limitRange(&pending.Facts).Floor(); got != memplan.GiB {
		t.Errorf("before the image is proven the smallest limit is %s, want the template's", got)
	}
	if got := limitRange(&bounded.Facts).Floor(); got != 512*memplan.MiB {
		t.Errorf("after the image is proven the smallest limit is %s, want minLimit", got)
	}
}

// TestApplicationWithoutRocksDBIsProven: it never opens a store that the agent could bound.
func TestApplicationWithoutRocksDBIsProven(t *testing.T) {
	const inMemory = "Processor: A (stores: [totals])\n"
	cases := map[string]struct {
		change testobjects.Change[report.Report]
		want   bool
	}{
		"stateless": {func(r *report.Report) {
			r.Clients[0].Topology = "Processor: A (stores: [])\n"
			setStores(r)
		}, true},
		"all stores in memory":     {func(r *report.Report) { setStores(r, report.Store{Name: "totals", Scope: "in-memory-state"}) }, true},
		"a store that is not open": {func(r *report.Report) { setStores(r) }, false},
		"a store of RocksDB":       {func(r *report.Report) { setStores(r, report.Store{Name: "totals", Scope: "rocksdb-state"}) }, false},
		"an open store": {func(r *report.Report) {
			setStores(r, report.Store{Name: "totals", Scope: "in-memory-state"})
			r.RocksDB.Opened = 1
		}, false},
		"a client that rebalances": {func(r *report.Report) { r.Clients[0].Topology, r.Clients[0].State = "A\n", "REBALANCING" }, false},
		"no tasks":                 {func(r *report.Report) { r.Clients[0].Topology, r.Clients[0].Threads = "A\n", nil }, false},
		"no clients":               {func(r *report.Report) { r.Clients = nil }, false},
		"an unknown topology":      {func(r *report.Report) { r.Clients[0].Topology = ""; setStores(r) }, false},
		"omitted tasks":            {func(r *report.Report) { r.Clients[0].Topology, r.Truncated = "A\n", true; setStores(r) }, false},
		"a store that failed":      {func(r *report.Report) { r.Clients[0].Topology, r.Bounded = "A\n", report.BoundedOff; setStores(r) }, false},
		"another client with state": {func(r *report.Report) {
			r.Clients = append(r.Clients, report.Client{State: "RUNNING", Topology: inMemory})
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := reportWith(0, 2, bounds(report.BoundedPending), func(r *report.Report) { r.Clients[0].Topology = inMemory }, c.change).Report
			if got := (&PodReport{Report: r}).Bounded(); got != c.want {
				t.Errorf("bounded = %t, want %t", got, c.want)
			}
		})
	}
}

// setStores sets the stores of each task.
func setStores(r *report.Report, stores ...report.Store) {
	for _, thread := range r.Clients[0].Threads {
		for i := range thread.Tasks {
			thread.Tasks[i].Stores = stores
		}
	}
}

// TestDefaultRocksDBMemoryDoesNotFreeze: otherwise no pod could be bounded and no image proven.
func TestDefaultRocksDBMemoryDoesNotFreeze(t *testing.T) {
	g := reported(bounds(report.BoundedPending))
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "1Gi"))
	d := g.decide(t)
	if d.Plan.RequiredNow <= 1<<30 {
		t.Fatalf("default RocksDB memory requires %s, want more than maxLimit", bytesText(d.Plan.RequiredNow))
	}
	if d.Frozen.Found() || d.Injection == nil {
		t.Errorf("no injection: %+v", d.Frozen)
	}
	g.agent = false
	g.reports = nil
	g.group = groupOf(4, 4, 4)
	if d := g.decide(t); d.Frozen.Reason != v1alpha1.ReasonInsufficientMemory {
		t.Errorf("without an agent: frozen = %+v, want reason %s", d.Frozen, v1alpha1.ReasonInsufficientMemory)
	}
}

func TestSettingsOfThePlanAreNotTheApplications(t *testing.T) {
	bufferMemory := func(by report.SettingBy) memplan.Fact[memplan.Bytes] {
		return reported(func(r *report.Report) {
			r.Clients[0].Settings = []report.Setting{{Name: "producer.buffer.memory", Value: "4194304", By: by}}
		}).planned(t).Clients.Producer.BufferMemory
	}
	wantNoDiff(t, "set by the application", memplan.Known(4*memplan.MiB, memplan.App), bufferMemory(report.SetByApp))
	wantNoDiff(t, "set by the plan", memplan.Known(32*memplan.MiB, memplan.Default), bufferMemory(report.SetByPlan))
}

func TestReportsReplaceTheSpec(t *testing.T) {
	g := reported(func(r *report.Report) {
		r.Clients[0].Settings = []report.Setting{{Name: "processing.guarantee", Value: "exactly_once_v2", By: report.SetByApp}}
	})
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) {
		app.Spec.Streams = v1alpha1.StreamsSpec{
			Version: "3.6.0", Threads: 7, StandbyReplicas: new(int32(3)), ProcessingGuarantee: v1alpha1.AtLeastOnce,
			Configs: []v1alpha1.Config{{Name: "buffer.memory", Value: "1"}},
		}
	})
	w := g.planned(t)
	got := []any{w.Version.Value.String(), w.Threads.Value, w.Standbys.Value, w.Guarantee.Value, w.Clients.Producer.BufferMemory.Value}
	wantNoDiff(t, "facts", []any{"4.4.0", 1, 0, memplan.ExactlyOnceV2, 32 * memplan.MiB}, got)
}

func TestReportsOfSomePods(t *testing.T) {
	seen := []assignment.Subtopology{{ID: "0", Tasks: 12}}
	justStarted := func(p *corev1.Pod) {
		if p.Name == "orders-2" {
			p.Status.ContainerStatuses[0].State = runningFor(time.Minute)
		}
	}
	starting := testobjects.RunningPods(3, "1Gi", withAgent, justStarted)
	withoutAgent := append(testobjects.RunningPods(2, "1Gi", withAgent), testobjects.RunningPod(2, "1Gi"))
	// with is the fixture without the report of orders-2, changed.
	with := func(change func(*fixture)) fixture {
		g := reported()
		delete(g.reports, "orders-2")
		change(&g)
		return g
	}
	cases := map[string]struct {
		input  fixture
		usable bool
	}{
		"all pods report":                        {reported(), true},
		"one is missing, topology unknown":       {with(func(*fixture) {}), false},
		"one is missing, topology known":         {with(func(g *fixture) { g.known = seen }), true},
		"one has just started, topology known":   {with(func(g *fixture) { g.known, g.pods = seen, starting }), true},
		"one has just started, topology unknown": {with(func(g *fixture) { g.pods = starting }), false},
		"one has just started, the others run all tasks of the status": {with(func(g *fixture) {
			g.pods = starting
			g.reports["orders-1"] = reportWith(4, 8)
			g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
			g.app.Status.Tasks = new(int32(12))
		}), true},
		"one has no agent, topology known":   {with(func(g *fixture) { g.known, g.pods = seen, withoutAgent }), true},
		"one has no agent, topology unknown": {with(func(g *fixture) { g.pods = withoutAgent }), false},
		"no report, topology known": {with(func(g *fixture) {
			g.known = seen
			g.reports = nil
		}), false},
		"one has reported before its restart": {with(func(g *fixture) {
			g.pods = starting
			g.reports["orders-2"] = reportWith(8, 4)
		}), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.input.facts(t).Reports.Usable; got != c.usable {
				t.Errorf("usable = %t, want %t", got, c.usable)
			}
		})
	}
}

// TestReportsAndGroupAreCombined: tasks and open stores are those of the pods, brokers and retention those of the cluster.
func TestReportsAndGroupAreCombined(t *testing.T) {
	g := reported(func(r *report.Report) {
		tasks := r.Clients[0].Threads[0].Tasks
		for i := range tasks {
			tasks[i].Stores = []report.Store{{Name: "totals", Scope: "rocksdb-window-state"}}
		}
	})
	g.group = groupOf(6, 6)
	g.group.Brokers = 5
	changelog := &g.group.Subtopologies[0].Changelogs[0]
	changelog.Kind = assignment.Window
	changelog.Retention = time.Hour
	want := []memplan.Store{{Name: "totals", Kind: memplan.Window, Caching: true, RetentionMs: memplan.Known(time.Hour.Milliseconds(), memplan.Measured)}}
	w := g.planned(t)
	wantNoDiff(t, "stores", want, w.Subtopologies[0].Stores)
	wantNoDiff(t, "brokers", memplan.Known(5, memplan.Measured), w.Brokers)
	for name, pod := range g.decide(t).Plan.Pods {
		if pod.Tasks != 4 {
			t.Errorf("%s runs %d tasks, want the 4 that it reports", name, pod.Tasks)
		}
	}
}

func TestOpenStoreReplacesAssumptionOfTopology(t *testing.T) {
	g := reported(func(r *report.Report) {
		r.Clients[0].Topology = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [in])\n      --> KSTREAM-AGGREGATE-0000000001\n" +
			"    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [totals])\n      --> none\n      <-- s\n"
		tasks := r.Clients[0].Threads[0].Tasks
		for i := range tasks {
			tasks[i].Stores[0].Scope = "in-memory-state"
		}
	})
	stores := g.planned(t).Subtopologies[0].Stores
	if len(stores) != 1 || !stores[0].InMemory || storageKind(stores[0].Kind) != memplan.KeyValue {
		t.Errorf("stores = %+v, want one key-value store on the heap", stores)
	}
	if notes := g.decide(t).Plan.Notes; slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "counts as") }) {
		t.Errorf("notes = %q, although the kind of the store is known", notes)
	}
}

// TestDeadConnectionIsTheFirstSignOfAFailure: as long as the plan tolerates the suspected failures, the survivors require as much as after a
// failure.
func TestDeadConnectionIsTheFirstSignOfAFailure(t *testing.T) {
	disconnected := func(toTolerate int32, names ...string) fixture {
		g := reported()
		for _, name := range names {
			answer := g.reports[name]
			answer.Gone = testobjects.Now.Add(-time.Second)
			g.reports[name] = answer
		}
		g.known = []assignment.Subtopology{{ID: "0", Tasks: 12}}
		g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) {
			app.Spec.Memory.PodFailuresToTolerate = &toTolerate
		})
		return g
	}
	connected := disconnected(1).decide(t)
	cases := map[string]struct {
		input     fixture
		suspected []string
	}{
		"none":                            {disconnected(1), nil},
		"one of three":                    {disconnected(1, "orders-2"), []string{"orders-2"}},
		"two of three, one tolerated":     {disconnected(1, "orders-1", "orders-2"), nil},
		"two of three, two tolerated":     {disconnected(2, "orders-1", "orders-2"), []string{"orders-1", "orders-2"}},
		"all: the operator's own network": {disconnected(1, "orders-0", "orders-1", "orders-2"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := c.input.decide(t)
			var suspected []string
			for i := range d.Facts.Pods {
				p := &d.Facts.Pods[i]
				if p.Suspected {
					suspected = append(suspected, p.Name)
				}
				if !d.Facts.readsPlan(p) {
					t.Errorf("%s no longer counts as a reader of the plan", p.Name)
				}
			}
			wantNoDiff(t, "suspected pods", c.suspected, suspected)
			if f := d.Facts.Failures; f.Instances != 3-len(suspected) || f.Unavailable != 0 {
				t.Errorf("%d instances, %d unavailable", f.Instances, f.Unavailable)
			}
			if len(suspected) == 1 && d.Plan.Required <= connected.Plan.Required {
				t.Errorf("%s required, want more than %s", bytesText(d.Plan.Required), bytesText(connected.Plan.Required))
			}
		})
	}
}

// TestRefreshIsRepeated until the pod has loaded the plan.
func TestRefreshIsRepeated(t *testing.T) {
	active := reported().after(t)
	revision := active.plan.Data[planfile.RevisionKey]
	refreshed := func(count int, ago time.Duration) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Annotations[v1alpha1.PublishedAnnotation] = revision
			p.Annotations[AnnotationRefresh] = Refresh{Count: count, At: testobjects.Now.Add(-ago)}.String()
		}
	}
	notNotified := func(*corev1.Pod) {}
	type result struct {
		Count           int // of the refresh of this pass; 0 without one
		NotAcknowledged bool
	}
	cases := map[string]struct {
		pod    testobjects.Change[corev1.Pod]
		onDisk string
		want   result
	}{
		"not notified":           {notNotified, "older", result{Count: 1}},
		"refreshed, loaded":      {refreshed(1, time.Hour), revision, result{}},
		"refreshed a second ago": {refreshed(1, time.Second), "older", result{}},
		"refreshed 11 s ago":     {refreshed(1, 11*time.Second), "older", result{Count: 2, NotAcknowledged: true}},
		"refreshed an hour ago, restarted 5 s ago": {func(p *corev1.Pod) {
			refreshed(1, time.Hour)(p)
			p.Status.ContainerStatuses[0].State = runningFor(5 * time.Second)
		}, "older", result{}},
		"refreshed twice, 11 s ago":     {refreshed(2, 11*time.Second), "older", result{NotAcknowledged: true}},
		"refreshed twice, 21 s ago":     {refreshed(2, 21*time.Second), "older", result{Count: 3, NotAcknowledged: true}},
		"refreshed 20 times, 4 min ago": {refreshed(20, 4*time.Minute), "older", result{NotAcknowledged: true}},
		"refreshed 20 times, 5 min ago": {refreshed(20, 5*time.Minute), "older", result{Count: 21, NotAcknowledged: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := active
			g.pods = testobjects.RunningPods(3, "1Gi", withAgent, c.pod)
			g.reports = reported(func(r *report.Report) {
				r.Plan.OnDisk = c.onDisk
				r.Started = testobjects.Now.UnixMilli()
			}).reports
			d := g.decide(t)
			got := result{NotAcknowledged: slices.Contains(d.NotAcknowledged, "orders-0")}
			for _, refresh := range d.Refreshes {
				if refresh.Pod == "orders-0" {
					got.Count = refresh.Count
					wantNoDiff(t, "remembered refresh", refresh.Refresh, d.Memory.Refreshes["orders-0"])
				}
			}
			wantNoDiff(t, "refresh", c.want, got)
			if c.onDisk != revision && got.Count == 0 && d.RecheckAfter == 0 {
				t.Error("the pod is not rechecked")
			}
		})
	}
}

func TestMeasuredRegions(t *testing.T) {
	figures := func(metaspace, codeCache, live int64, ago time.Duration) testobjects.Change[report.Report] {
		return func(r *report.Report) {
			r.JVM.Metaspace = metaspace * mib
			r.JVM.CodeCache = codeCache * mib
			r.JVM.HeapLive = live * mib
			r.Started = testobjects.Now.Add(-ago).UnixMilli()
		}
	}
	old := inState(runningFor(2 * time.Hour))
	text := func(fact memplan.Fact[memplan.Bytes]) string { return fact.Value.String() + " " + fact.From.String() }
	regions := func(g fixture) []string {
		w := g.planned(t)
		return []string{text(w.JVM.Metaspace), text(w.JVM.CodeCache), text(w.Application.LiveSet)}
	}
	assumed := []string{"120 MiB assumed", "100 MiB assumed", "48 MiB assumed"}
	cases := map[string]struct {
		change testobjects.Change[report.Report]
		want   []string
	}{
		"no figures":                                {func(*report.Report) {}, assumed},
		"less than assumed, warming up":             {figures(50, 30, 20, time.Minute), assumed},
		"more than assumed, warming up":             {figures(130, 120, 100, time.Minute), []string{"136 MiB measured", "120 MiB measured", "96 MiB measured"}},
		"less than assumed, warmed up: with growth": {figures(50, 30, 20, 2*time.Hour), []string{"70 MiB measured", "40 MiB measured", "20 MiB measured"}},
		"more than the pod's limit: does not count": {figures(900, 200, 20, 2*time.Hour), assumed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := reported(c.change)
			g.pods = testobjects.RunningPods(3, "1Gi", withAgent, old)
			wantNoDiff(t, "regions", c.want, regions(g))
		})
	}

	t.Run("the largest figure of the image counts", func(t *testing.T) {
		g := reported(figures(50, 30, 20, time.Minute))
		g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
		g.app.Status.Measured = v1alpha1.MeasuredRegions{ImageID: testDigest, Metaspace: testobjects.Memory("200Mi")}
		wantNoDiff(t, "metaspace", "200 MiB measured", regions(g)[0])
		g.app.Status.Measured.ImageID = "another"
		wantNoDiff(t, "metaspace of another image", "120 MiB assumed", regions(g)[0])
	})
	t.Run("a small difference changes no plan", func(t *testing.T) {
		one, other := reported(figures(129, 101, 60, time.Minute)), reported(figures(135, 103, 62, time.Minute))
		wantNoDiff(t, "files", one.decide(t).Files, other.decide(t).Files)
	})
}

// TestOwnBlockCacheIsOneLine: the status lists a name once, so the application's own cache and the shared one are one line.
func TestOwnBlockCacheIsOneLine(t *testing.T) {
	d := reported(func(r *report.Report) { r.RocksDB.OwnCaches = []report.Cache{{Capacity: 64 * mib, Stores: 4}} }).decide(t)
	bounds := func(lines []v1alpha1.Line) []int64 {
		var all []int64
		for _, line := range lines {
			if line.Name == string(memplan.RegionBlockCache) {
				all = append(all, line.Bound.Value())
			}
		}
		return all
	}
	planned := bounds(d.Plan.Representative.Lines)
	if len(planned) != 2 {
		t.Fatalf("block caches %v, want two", planned)
	}
	lines := d.status().Lines
	wantNoDiff(t, "block cache in the status", []int64{planned[0] + planned[1]}, bounds(lines))
	if !slices.IsSortedFunc(lines, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) }) {
		t.Errorf("lines %v are not sorted", lines)
	}
}

func TestOwnBlockCacheMayBeReplaced(t *testing.T) {
	g := reported(func(r *report.Report) { r.RocksDB.OwnCaches = []report.Cache{{Capacity: 64 * mib, Stores: 4}} })
	kept := g.decide(t)
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Streams.OwnCaches = v1alpha1.OwnCachesReplace })
	replaced := g.decide(t)
	const property = "rocksdb.replace.caches=true\n"
	if strings.Contains(kept.Files[planfile.PropertiesKey], property) || !strings.Contains(replaced.Files[planfile.PropertiesKey], property) {
		t.Errorf("properties of a cache that is kept:\n%s\nof one that is replaced:\n%s", kept.Files[planfile.PropertiesKey], replaced.Files[planfile.PropertiesKey])
	}
	if replaced.Plan.Required >= kept.Plan.Required {
		t.Errorf("%s required with a replaced cache, %s with a kept one", bytesText(replaced.Plan.Required), bytesText(kept.Plan.Required))
	}
}

func TestOtherClientsOfTheProcessCount(t *testing.T) {
	alone := reported().decide(t)
	g := reported(func(r *report.Report) {
		other := r.Clients[0]
		other.ApplicationID = "payments"
		other.ClientID = "payments"
		r.Clients = append(r.Clients, other)
	})
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Kafka.ApplicationID = testobjects.App })
	both := g.decide(t)
	if both.Plan.Tasks != 12 || both.Plan.Required <= alone.Plan.Required {
		t.Errorf("%d tasks, %s required; want 12 and more than %s", both.Plan.Tasks, bytesText(both.Plan.Required), bytesText(alone.Plan.Required))
	}
}

// TestImpossibleTaskStaysWithinRange: a pod with an impossible task in its report gets no more than maxLimit.
func TestImpossibleTaskStaysWithinRange(t *testing.T) {
	d := reported(func(r *report.Report) {
		thread := &r.Clients[0].Threads[0]
		thread.Tasks = append(thread.Tasks, report.Task{ID: "0_99999", Role: report.RoleActive})
	}).decide(t)
	if d.Plan.Limit > 4<<30 {
		t.Errorf("the limit is %s, above maxLimit", bytesText(d.Plan.Limit))
	}
	for _, resize := range d.Resizes {
		if resize.To > 4<<30 {
			t.Errorf("%s is raised to %s, above maxLimit", resize.Pod, bytesText(resize.To))
		}
	}
	safe := judge(d, d.outcome())[v1alpha1.ConditionCascadeSafe]
	if safe.status != metav1.ConditionFalse || safe.reason != v1alpha1.ReasonCapped || !strings.Contains(safe.message, "`maxLimit` is 4Gi") {
		t.Errorf("CascadeSafe = %+v, want False because of maxLimit", safe)
	}
}
