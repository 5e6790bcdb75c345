// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// injectedBounded is the kind of a pod with the plan and a shared cache.
var injectedBounded = PodKind{Injected: true, Bounded: true}

// steady is an application of 12 tasks on 3 pods of one thread, with the streams protocol: its quotas make the load after each number of
// failures exact. All pods have the limit that the load after one failure requires.
func steady() Application {
	w := keyValueApp(12)
	w.Subtopologies[0].Stores[0].Size = Known(20*MiB, Measured)
	w.StateDir.InMemory = true // so that each task costs its size
	w.Protocol = Known(Streams, Measured)
	w.JVM.HeapMode = HeapFixed
	w.JVM.MaxHeap = Known(300*MiB, App)
	bounded := w
	bounded.Bounded = true
	a := Application{
		Planned: bounded, Target: bounded, Assignment: evenly(w, 3, 1), Pods: map[string]RunningPod{},
		Running:  map[PodKind]Workload{{}: w, {Injected: true}: w, {Bounded: true}: bounded, injectedBounded: bounded},
		Range:    Range{Template: 256 * MiB, Adjustable: true, Max: MaxBytes, Cap: MaxBytes},
		Failures: Failures{Instances: 3, Tolerated: 1},
		Policy:   DefaultPolicy(),
	}
	a.setLimits(requiredFor(a.Planned, 6))
	return a
}

// requiredFor is the required limit of a pod with a number of active tasks.
func requiredFor(w Workload, tasks int) Bytes {
	return RequiredLimit(w, onlyCap(1, tasks, tasks), DefaultPolicy())
}

// setLimits gives every pod a limit; all of them read the plan.
func (a *Application) setLimits(limit Bytes) {
	a.PlanReaders = nil
	for _, pod := range a.Assignment.Pods {
		a.Pods[pod.Name] = RunningPod{Kind: injectedBounded, Limit: limit}
		a.PlanReaders = append(a.PlanReaders, limit)
	}
}

// run replaces the pods by others with so many tasks each.
func (a *Application) run(limit Bytes, tasks ...int) {
	a.Assignment = Assignment{}
	a.Pods = map[string]RunningPod{}
	first := 0
	for i, n := range tasks {
		name := string(rune('a' + i))
		a.Assignment.Pods = append(a.Assignment.Pods, activePod(name, 1, tasksOf(first, first+n)))
		first += n
	}
	a.setLimits(limit)
}

// numbers are the numbers of an application's plan. Pods have the same plan unless they are listed.
type numbers struct {
	limit, required, now, active, cold Bytes
	capped                             CappedBy
	tolerated                          int
	// representative and published are the active tasks of the two plans, publishedLimit is the limit of the latter.
	representative, published int
	publishedLimit            Bytes
	pod                       PodPlan
	pods                      map[string]PodPlan
}

func TestPlanApplication(t *testing.T) {
	planned := steady().Planned
	required := func(tasks int) Bytes { return requiredFor(planned, tasks) }
	largeTemplate := required(6) + 100*MiB
	withNeighbour := planned
	neighbour := keyValueApp(4)
	neighbour.Protocol = Known(Streams, Measured)
	withNeighbour.Others = []Client{{ApplicationID: "billing", Workload: neighbour, Load: onlyCap(1, 4, 4)}}
	unbounded := steady().Running[PodKind{}]
	percent := planned
	percent.JVM = NewJVM()
	percent.JVM.MaxRAMPercentage = Known(95.0, App)

	usual := func() numbers {
		return numbers{
			limit: required(6), required: required(6), now: required(4), active: required(4), tolerated: 1, representative: 6, published: 6,
			publishedLimit: required(6), pod: PodPlan{Tasks: 4, Required: required(6), RequiredNow: required(4), RaiseTo: required(6)},
		}
	}
	cases := map[string]struct {
		change func(*Application)
		want   func(*numbers)
	}{
		"limits for one failure": {},
		"limits for two failures": {
			change: func(a *Application) { a.Failures.Tolerated = 2 },
			want: func(n *numbers) {
				n.limit, n.required, n.representative = required(12), required(12), 12
				n.pod.Required, n.pod.RaiseTo = required(12), required(12)
			},
		},
		"limits for no failure": {
			change: func(a *Application) { a.Failures.Tolerated = 0 },
			want: func(n *numbers) {
				n.limit, n.required, n.representative, n.published, n.publishedLimit = required(4), required(4), 4, 4, required(4)
				n.pod.Required = required(4)
			},
		},
		"pods with limits for the present load": {
			change: func(a *Application) { a.setLimits(required(4)) },
			want:   func(n *numbers) { n.tolerated, n.published, n.publishedLimit = 0, 4, required(4) },
		},
		"pods beyond their limits": {
			change: func(a *Application) { a.setLimits(required(4) - MiB) },
			want:   func(n *numbers) { n.tolerated, n.published, n.publishedLimit = -1, 4, required(4)-MiB },
		},
		"pods with limits for every failure": {
			change: func(a *Application) { a.setLimits(required(12)) },
			want:   func(n *numbers) { n.tolerated, n.pod.RaiseTo = 2, required(12) },
		},
		"one pod beyond its limit": {
			change: func(a *Application) { a.Pods["pod-1"] = RunningPod{Kind: injectedBounded, Limit: required(4) - MiB} },
			want:   func(n *numbers) { n.tolerated = -1 },
		},
		"a pod without a limit": {
			change: func(a *Application) { a.Pods["pod-1"] = RunningPod{Kind: injectedBounded} },
		},
		"the smallest reader of the plan is pending": {
			change: func(a *Application) { a.PlanReaders = append(a.PlanReaders, required(5)) },
			want:   func(n *numbers) { n.published, n.publishedLimit = 4, required(5) },
		},

		"an unavailable pod changes no limit": {
			change: func(a *Application) {
				a.run(required(6), 6, 6)
				a.Failures.Unavailable = 1
			},
			want: func(n *numbers) {
				n.now, n.active = required(6), required(6)
				n.pod.Tasks, n.pod.RequiredNow = 6, required(6)
			},
		},
		"a lost pod does": {
			change: func(a *Application) {
				a.run(required(6), 6, 6)
				a.Failures.Instances = 2
			},
			want: func(n *numbers) {
				n.limit, n.required, n.representative, n.tolerated = required(12), required(12), 12, 0
				n.now, n.active = required(6), required(6)
				n.pod = PodPlan{Tasks: 6, Required: required(12), RequiredNow: required(6), RaiseTo: required(12)}
			},
		},
		"a starting pod without tasks changes no limit": {
			change: func(a *Application) {
				a.run(required(6), 6, 6, 0)
				a.Failures.Starting = 1
			},
			want: func(n *numbers) {
				n.now, n.active = required(6), required(6)
				n.pod.Tasks, n.pod.RequiredNow = 6, required(6)
				n.pods = map[string]PodPlan{"c": {Tasks: 0, Required: required(4), RequiredNow: required(0), RaiseTo: required(6)}}
			},
		},
		"nothing runs": {
			change: func(a *Application) { a.run(0) },
			want:   func(n *numbers) { n.pods = map[string]PodPlan{} },
		},
		"nothing runs, and no pod is expected": {
			change: func(a *Application) {
				a.run(0)
				a.Failures.Instances = 0
			},
			want: func(n *numbers) {
				n.limit, n.required, n.now, n.active, n.publishedLimit = required(12), required(12), required(12), required(12), required(12)
				n.tolerated, n.representative, n.published = 0, 12, 12
				n.pods = map[string]PodPlan{}
			},
		},
		"processes without known pods": {
			change: func(a *Application) {
				for i := range a.Assignment.Pods {
					a.Assignment.Pods[i].Current = Tasks{}
				}
				a.Assignment.Unmatched = []Pod{activePod("heaviest", 1, tasksOf(0, 5))}
			},
			want: func(n *numbers) {
				n.now, n.active = required(5), required(5)
				n.pod = PodPlan{Tasks: 0, Required: required(6), RequiredNow: required(5), RaiseTo: required(6)}
			},
		},

		"during a rollout the limit stays": {
			change: func(a *Application) {
				a.Rollout, a.Current = true, required(5)
				a.setLimits(required(5))
			},
			want: func(n *numbers) {
				n.limit, n.tolerated, n.publishedLimit = required(5), 0, required(5)
				n.representative, n.published = 6, 4
				n.pod.RaiseTo = required(5)
			},
		},
		"during a rollout a present load beyond the limit raises it": {
			change: func(a *Application) {
				a.Rollout, a.Current = true, required(4)-MiB
				a.setLimits(required(4) - MiB)
			},
			want: func(n *numbers) {
				n.tolerated, n.published, n.publishedLimit = -1, 4, required(4)-MiB
				n.pod.RaiseTo = required(4)
			},
		},
		"during a rollout a limit that just holds the present load stays": {
			change: func(a *Application) { a.Rollout, a.Current = true, required(4) },
			want:   func(n *numbers) { n.limit, n.published, n.publishedLimit = required(4), 4, required(4) },
		},
		"a rollout without an injected limit": {
			change: func(a *Application) { a.Rollout, a.Range.Template = true, required(5) },
		},
		"a current limit without a rollout": {change: func(a *Application) { a.Current = required(4) }},
		"withdrawn: new pods have the template's limit": {
			change: func(a *Application) {
				a.Withdrawn = true
				a.Range.Template = required(4)
			},
			want: func(n *numbers) { n.published, n.publishedLimit = 4, required(4) },
		},

		"pods of a cold start become ready one after the other": {
			change: func(a *Application) { a.StartsInOrder = true },
			want:   func(n *numbers) { n.cold = required(12) },
		},
		"a cold start": {
			change: func(a *Application) { a.ColdStart = true },
			want: func(n *numbers) {
				n.limit, n.required, n.now, n.representative = required(12), required(12), required(12), 12
				n.published = 12 // the pods hold 6, but the plan is for the first pod
			},
		},

		"capped by the user's maximum": {
			change: func(a *Application) { a.Range.Max = required(6) - MiB },
			want: func(n *numbers) {
				n.limit, n.capped, n.publishedLimit = required(6)-MiB, CappedByMax, required(6)-MiB
				n.published = 4
			},
		},
		"capped by the cluster": {
			change: func(a *Application) {
				a.Range.Cap = required(6) - MiB
				a.Range.Max = required(6)
			},
			want: func(n *numbers) {
				n.limit, n.capped, n.publishedLimit = required(6)-MiB, CappedByCluster, required(6)-MiB
				n.published = 4
			},
		},
		"a pod is raised to the cap": {
			change: func(a *Application) {
				a.setLimits(required(4))
				a.Range.Cap = required(5)
			},
			want: func(n *numbers) {
				n.limit, n.capped, n.tolerated, n.published, n.publishedLimit = required(5), CappedByCluster, 0, 4, required(4)
				n.pod.RaiseTo = required(5)
			},
		},
		"capped by the heap": {
			change: func(a *Application) {
				a.Planned, a.Target = percent, percent
				a.Running[injectedBounded] = percent
			},
			want: func(n *numbers) {
				n.limit, n.required, n.now, n.active, n.capped = 256*MiB, MaxBytes, MaxBytes, MaxBytes, CappedByHeap
				n.tolerated, n.publishedLimit, n.published = -1, 256*MiB, 4
				n.pod = PodPlan{Tasks: 4, Required: MaxBytes, RequiredNow: MaxBytes, RaiseTo: required(6)}
			},
		},
		"a limit below the template": {
			change: func(a *Application) {
				a.Range.Template, a.Range.Min, a.Range.BelowTemplate = largeTemplate, 100*MiB, true
			},
		},
		"not below the template before RocksDB is known to be bounded": {
			change: func(a *Application) { a.Range.Template, a.Range.Min = largeTemplate, 100*MiB },
			want:   func(n *numbers) { n.limit = largeTemplate },
		},
		"a minimum above the required limit": {
			change: func(a *Application) { a.Range.Min = largeTemplate },
			want:   func(n *numbers) { n.limit = largeTemplate },
		},
		"a limit that is not adjustable": {
			change: func(a *Application) {
				a.Range.Adjustable = false
				a.setLimits(required(4))
			},
			want: func(n *numbers) {
				n.limit, n.publishedLimit, n.tolerated, n.published = 256*MiB, 256*MiB, 0, 4
				n.pod.RaiseTo = required(4)
			},
		},

		"a pod that runs without a shared cache": {
			change: func(a *Application) { a.Pods["pod-1"] = RunningPod{Limit: required(6)} },
			want: func(n *numbers) {
				n.tolerated = -1
				n.pods = map[string]PodPlan{"pod-1": {
					Tasks: 4, Required: requiredFor(unbounded, 6), RequiredNow: requiredFor(unbounded, 4), RaiseTo: requiredFor(unbounded, 6),
				}}
			},
		},
		"a pod without a shared cache and with a limit for it": {
			change: func(a *Application) { a.Pods["pod-1"] = RunningPod{Limit: requiredFor(unbounded, 12)} },
			want: func(n *numbers) {
				n.pods = map[string]PodPlan{"pod-1": {
					Tasks: 4, Required: requiredFor(unbounded, 6), RequiredNow: requiredFor(unbounded, 4), RaiseTo: requiredFor(unbounded, 12),
				}}
			},
		},
		"a neighbour in the same processes": {
			change: func(a *Application) {
				a.Neighbours = []Neighbour{
					{ApplicationID: "billing", Workload: neighbour, Assignment: evenly(neighbour, 2, 1)},
					{ApplicationID: "idle", Workload: neighbour},
				}
			},
			want: func(n *numbers) {
				of := func(tasks int) Bytes { return requiredFor(withNeighbour, tasks) }
				n.limit, n.required, n.now, n.active, n.tolerated = of(6), of(6), of(4), of(4), 0
				n.published = 4
				n.pod = PodPlan{Tasks: 4, Required: of(6), RequiredNow: of(4), RaiseTo: of(6)}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, want := steady(), usual()
			if c.change != nil {
				c.change(&a)
			}
			if c.want != nil {
				c.want(&want)
			}
			plan := PlanApplication(a)
			got := numbers{
				limit: plan.Limit, required: plan.Required, now: plan.RequiredNow, active: plan.RequiredNowActive, cold: plan.ColdStart,
				capped: plan.CappedBy, tolerated: plan.Tolerated, representative: plan.Representative.Load.Active,
				published: plan.Published.Load.Active, publishedLimit: plan.Published.Limit, pods: plan.Pods,
			}
			pods := map[string]PodPlan{}
			for _, pod := range a.Assignment.Pods {
				pods[pod.Name] = want.pod
				if limit := a.Pods[pod.Name].Limit; limit > want.pod.RaiseTo || limit == 0 {
					raised := want.pod
					raised.RaiseTo = max(limit, raised.RaiseTo)
					pods[pod.Name] = raised
				}
			}
			maps.Copy(pods, want.pods)
			want.pods, want.pod = pods, PodPlan{}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(numbers{})); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			if !plan.TasksKnown {
				t.Error("the tasks are known")
			}
			if plan.Representative.Limit != plan.Limit {
				t.Errorf("the representative plan is for %v, the limit is %v", plan.Representative.Limit, plan.Limit)
			}
		})
	}
}

func TestPlanApplicationWithoutTasks(t *testing.T) {
	a := steady()
	a.Planned.Subtopologies = nil
	a.PlanReaders = []Bytes{GiB, 2 * GiB}
	a.Range.Template, a.StartsInOrder = 1536*MiB, true
	want := ApplicationPlan{
		Limit: 1536 * MiB, Pods: map[string]PodPlan{},
		Representative: Bootstrap(a.Planned.JVM, a.Policy, 1536*MiB), Published: Bootstrap(a.Planned.JVM, a.Policy, GiB),
	}
	if d := cmp.Diff(want, PlanApplication(a)); d != "" {
		t.Errorf("bootstrap plan (-want +got):\n%s", d)
	}
}

func TestThePublishedHeapIsNotBelowThatOfUnboundedProcesses(t *testing.T) {
	a := steady()
	a.Planned = a.Running[PodKind{}] // bounded stores are not proven yet
	a.Planned.JVM = NewJVM()
	a.Planned.JVM.HeapMode = HeapPlanned
	a.Planned.Application.LiveSet = Known(200*MiB, Measured)
	a.PlanReaders = nil
	published := func(limit Bytes) (published, planned, alone Plan) {
		a.Target = a.Planned
		a.Target.Bounded = true
		a.Range.Template = limit
		a.Range.Max = limit
		load := onlyCap(1, 6, 6)
		plan := PlanApplication(a)
		planned = PlanFor(a.Planned, load, a.Policy, limit)
		if plan.Representative.Bound != planned.Bound {
			t.Errorf("representative plan of %v, that of a new pod has %v", plan.Representative.Bound, planned.Bound)
		}
		return plan.Published, planned, PlanFor(a.Target, load, a.Policy, limit)
	}
	defaults := a.Planned.RocksDB
	a.Planned.RocksDB.BlockCache = Known(MiB, App) // so that unbounded stores fit a limit for which a bounded process lowers configs
	a.Planned.RocksDB.WriteBuffer = Known(MiB, App)
	got, planned, alone := published(1070 * MiB)
	if !planned.Fits() || alone.Heap >= planned.Heap || got.Heap != planned.Heap {
		t.Errorf("published heap %v; that of the planned pods is %v, fits: %v; that of a bounded process %v", got.Heap, planned.Heap, planned.Fits(), alone.Heap)
	}
	a.Planned.RocksDB = defaults
	got, planned, alone = published(1000 * MiB)
	if planned.Fits() || alone.Heap >= planned.Heap || got.Heap != alone.Heap {
		t.Errorf("published heap %v; that of the planned pods is %v, fits: %v; that of a bounded process %v", got.Heap, planned.Heap, planned.Fits(), alone.Heap)
	}

	a.Range.Template = 8 * GiB
	a.Range.Max = MaxBytes
	alone = PlanFor(a.Target, onlyCap(1, 6, 6), a.Policy, 8*GiB)
	a.Target.JVM.LeastHeap = alone.Heap + 64*MiB
	if got := PlanApplication(a).Published.Heap; got < a.Target.JVM.LeastHeap {
		t.Errorf("published heap %v, the application is known to run with %v", got, a.Target.JVM.LeastHeap)
	}
}

// At 1792 MiB the JVM changes to a costlier collector: a load that fits just below does not fit there.
func TestPodsAtTheChangeOfCollectorRequireMore(t *testing.T) {
	a := steady()
	a.Planned.JVM.MaxHeap.Value = 512 * MiB
	a.Planned.Application.Native = Known((1785*MiB-requiredFor(a.Planned, 6)).Scale(85, 100), Measured)
	a.Target = a.Planned
	a.Running[injectedBounded] = a.Planned
	below := requiredFor(a.Planned, 6)
	above := newProcess(&a.Planned, onlyCap(1, 6, 6), a.Policy).atFloors().requiredLimit(serverClass)
	if below >= serverClass || above <= serverClass {
		t.Fatalf("required %v below the change and %v above it", below, above)
	}
	a.setLimits(serverClass)
	a.Range.Template = serverClass
	plan := PlanApplication(a)
	if plan.Required != above || plan.Limit != above {
		t.Errorf("limit %v, required %v; want %v", plan.Limit, plan.Required, above)
	}
	if pod := plan.Pods["pod-0"]; pod.Required != above || pod.RaiseTo != above {
		t.Errorf("pod %+v, want %v", pod, above)
	}
}

// With the classic protocol, warm-ups come on top of the present load even without a failure.
func TestThePublishedPlanCoversAtLeastThePresentLoad(t *testing.T) {
	a := steady()
	for kind, w := range a.Running {
		w.Protocol = Known(Classic, Measured)
		a.Running[kind] = w
	}
	a.Planned = a.Running[injectedBounded]
	a.Target = a.Planned
	withoutFailure := LoadsAfter(a.Planned, a.Assignment, 0)[0]
	if d := cmp.Diff(onlyCap(1, 4, 6), withoutFailure); d != "" {
		t.Fatalf("load without a failure (-want +got):\n%s", d)
	}
	a.setLimits(RequiredLimit(a.Planned, withoutFailure, a.Policy))
	if d := cmp.Diff(withoutFailure, PlanApplication(a).Published.Load); d != "" {
		t.Errorf("load of the published plan (-want +got):\n%s", d)
	}
	a.setLimits(requiredFor(a.Planned, 4))
	plan := PlanApplication(a)
	if d := cmp.Diff(onlyCap(1, 4, 4), plan.Published.Load); d != "" || !plan.Published.Fits() {
		t.Errorf("load of the published plan with smaller limits (-want +got), fits: %v:\n%s", plan.Published.Fits(), d)
	}
}

func TestTheHeaviestLoad(t *testing.T) {
	w := steady().Planned
	light, heavy := onlyCap(1, 2, 6), onlyCap(1, 3, 6) // the required limit, in whole MiB, is the same
	if RequiredLimit(w, light, DefaultPolicy()) != RequiredLimit(w, heavy, DefaultPolicy()) {
		t.Fatal("the loads should have the same required limit")
	}
	for _, loads := range [][]Load{{light, heavy}, {heavy, light}} {
		if got, found := heaviestOf(&w, DefaultPolicy(), loads); !found || !got.equal(heavy) {
			t.Errorf("heaviest load %+v of %+v", got, loads)
		}
	}
	if _, found := heaviestOf(&w, DefaultPolicy(), nil); found {
		t.Error("a heaviest load of none")
	}
}

func TestLoadOrder(t *testing.T) {
	ascending := []Load{
		{}, onlyCap(9, 1, 1), onlyCap(1, 1, 2), onlyCap(2, 1, 2),
		{Threads: 2, Active: 1, Total: 2, Caps: []Cap{{Active: 1, Total: 3}}}, {Threads: 2, Active: 1, Total: 2, Caps: []Cap{{Active: 2, Total: 2}}},
		onlyCap(1, 2, 2),
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := a.compare(b); got != min(max(i-j, -1), 1) {
				t.Errorf("%+v and %+v compare as %d", a, b, got)
			}
		}
	}
}

func TestRangeClamp(t *testing.T) {
	usual := Range{Template: GiB, Adjustable: true, Max: MaxBytes, Cap: MaxBytes}
	with := func(change func(*Range)) Range {
		r := usual
		change(&r)
		return r
	}
	cases := map[string]struct {
		r        Range
		required Bytes
		want     Bytes
		capped   CappedBy
	}{
		"the required limit":        {r: usual, required: 3 * GiB, want: 3 * GiB},
		"the template":              {r: usual, required: 1, want: GiB},
		"nothing required":          {r: usual, required: 0, want: GiB},
		"no limit holds":            {r: usual, required: MaxBytes, want: GiB, capped: CappedByHeap},
		"not adjustable":            {r: with(func(r *Range) { r.Adjustable = false }), required: 3 * GiB, want: GiB},
		"not adjustable, none hold": {r: with(func(r *Range) { r.Adjustable = false }), required: MaxBytes, want: GiB},
		"the user's minimum":        {r: with(func(r *Range) { r.Min = 2 * GiB }), required: 1, want: 2 * GiB},
		"no limit holds, from the minimum on": {
			r: with(func(r *Range) { r.Min = 2 * GiB }), required: MaxBytes, want: 2 * GiB, capped: CappedByHeap,
		},
		"the user's maximum":            {r: with(func(r *Range) { r.Max = 2 * GiB }), required: 3 * GiB, want: 2 * GiB, capped: CappedByMax},
		"the required limit at the end": {r: with(func(r *Range) { r.Max = 2 * GiB }), required: 2 * GiB, want: 2 * GiB},
		"the cluster's cap":             {r: with(func(r *Range) { r.Cap = 2 * GiB }), required: 3 * GiB, want: 2 * GiB, capped: CappedByCluster},
		"cap below maximum":             {r: with(func(r *Range) { r.Cap, r.Max = 2*GiB, 3*GiB }), required: 4 * GiB, want: 2 * GiB, capped: CappedByCluster},
		"maximum below cap":             {r: with(func(r *Range) { r.Cap, r.Max = 3*GiB, 2*GiB }), required: 4 * GiB, want: 2 * GiB, capped: CappedByMax},
		"cap below template":            {r: with(func(r *Range) { r.Cap = GiB / 2 }), required: 3 * GiB, want: GiB, capped: CappedByCluster},
		"minimum above cap":             {r: with(func(r *Range) { r.Min, r.Cap = 4*GiB, 2*GiB }), required: 1, want: 2 * GiB},
		"below the template":            {r: with(func(r *Range) { r.Min, r.BelowTemplate = GiB/2, true }), required: 700 * MiB, want: 700 * MiB},
		"a minimum above template and cap": {
			r: with(func(r *Range) { r.Min, r.Cap, r.BelowTemplate = 2*GiB, 1536*MiB, true }), required: 1, want: 1536 * MiB,
		},
		"down to the minimum":              {r: with(func(r *Range) { r.Min, r.BelowTemplate = GiB/2, true }), required: 1, want: GiB / 2},
		"below the template, no minimum":   {r: with(func(r *Range) { r.BelowTemplate = true }), required: 1, want: GiB},
		"minimum below template, no leave": {r: with(func(r *Range) { r.Min = GiB / 2 }), required: 1, want: GiB},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, capped := c.r.clamp(c.required); got != c.want || capped != c.capped {
				t.Errorf("limit %v, capped by %d; want %v, %d", got, capped, c.want, c.capped)
			}
		})
	}
}

func TestFailuresWithinRanges(t *testing.T) {
	cases := map[string]struct {
		failures  Failures
		running   int
		want      Failures
		remaining int // with all unavailable pods
	}{
		"as given":             {failures: Failures{Instances: 3, Tolerated: 1, Unavailable: 1, Starting: 1}, running: 2, want: Failures{Instances: 3, Tolerated: 1, Unavailable: 1, Starting: 1}, remaining: 1},
		"negative":             {failures: Failures{Instances: -3, Tolerated: -1, Unavailable: -1, Starting: -1}, running: 2, want: Failures{}, remaining: 1},
		"absurd":               {failures: Failures{Instances: 1 << 31, Tolerated: 1 << 31, Unavailable: 1 << 31, Starting: 1 << 31}, running: 2, want: Failures{Instances: 1002, Tolerated: 1002, Unavailable: 1000, Starting: 2}, remaining: 1001},
		"scaled in":            {failures: Failures{Instances: 2, Tolerated: 1}, running: 5, want: Failures{Instances: 2, Tolerated: 1}, remaining: 4},
		"all may fail but one": {failures: Failures{Instances: 3, Tolerated: 9}, running: 3, want: Failures{Instances: 3, Tolerated: 3}, remaining: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.failures.within(c.running)
			if got != c.want {
				t.Errorf("failures %+v, want %+v", got, c.want)
			}
			if remaining := got.remaining(c.running + got.Unavailable); remaining != c.remaining {
				t.Errorf("%d failures remain, want %d", remaining, c.remaining)
			}
		})
	}
}

func TestOrderOfPodsChangesNoPlan(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		a := g.application()
		want := PlanApplication(a)
		b := a
		b.Assignment.Pods = slices.Clone(a.Assignment.Pods)
		g.Shuffle(len(b.Assignment.Pods), func(i, j int) {
			b.Assignment.Pods[i], b.Assignment.Pods[j] = b.Assignment.Pods[j], b.Assignment.Pods[i]
		})
		b.PlanReaders = slices.Clone(a.PlanReaders)
		slices.Reverse(b.PlanReaders)
		if d := cmp.Diff(want, PlanApplication(b)); d != "" {
			t.Errorf("plan in another order (-first +second):\n%s", d)
		}
	})
}

func TestRaisingALimitNeverLowersTheToleratedFailures(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		a := g.application()
		tolerated := PlanApplication(a).Tolerated
		for range 5 {
			if len(a.Assignment.Pods) == 0 {
				return
			}
			name := pick(g, a.Assignment.Pods...).Name
			pod := a.Pods[name]
			if pod.Limit == 0 {
				continue // no limit is the largest one
			}
			pod.Limit += Bytes(g.IntN(2000)) * MiB
			a.Pods[name] = pod
			now := PlanApplication(a).Tolerated
			if now < tolerated {
				t.Errorf("%d failures tolerated with a larger limit of %s, %d before", now, name, tolerated)
			}
			tolerated = now
		}
	})
}

func TestPlanApplicationAgreesWithItsInput(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		a := g.application()
		requireApplication(t, a, PlanApplication(a))
	})
}

// requireApplication fails where an application's plan contradicts its input or itself.
func requireApplication(t *testing.T, a Application, plan ApplicationPlan) {
	t.Helper()
	floor, ceiling := a.Range.Floor(), a.Range.Ceiling()
	inRange := plan.Limit >= floor && plan.Limit <= max(ceiling, a.Current)
	if a.Range.Adjustable && !inRange {
		t.Errorf("limit %v is outside of %v to %v", plan.Limit, floor, ceiling)
	}
	if !a.Range.Adjustable && plan.Limit != a.Range.Template {
		t.Errorf("limit %v, the template has %v", plan.Limit, a.Range.Template)
	}
	if plan.CappedBy == NotCapped && a.Range.Adjustable && !a.Rollout && plan.Limit < plan.Required {
		t.Errorf("limit %v is below the required %v, but not capped", plan.Limit, plan.Required)
	}
	for _, reader := range append([]Bytes{plan.Limit}, a.PlanReaders...) {
		if plan.Published.Limit > reader {
			t.Errorf("the published plan is for %v, a pod with %v reads it", plan.Published.Limit, reader)
		}
	}
	if a.Withdrawn && plan.Published.Limit > a.Range.Template {
		t.Errorf("the published plan is for %v, new pods have %v", plan.Published.Limit, a.Range.Template)
	}
	if plan.Tolerated < -1 || plan.Tolerated > max(0, a.Failures.Instances-1) {
		t.Errorf("%d failures of %d instances tolerated", plan.Tolerated, a.Failures.Instances)
	}
	if plan.TasksKnown && len(plan.Pods) != len(a.Assignment.Pods) {
		t.Errorf("%d pods planned, %d run", len(plan.Pods), len(a.Assignment.Pods))
	}
	for name, pod := range plan.Pods {
		now := a.Pods[name].Limit
		if pod.RaiseTo < now {
			t.Errorf("%s is to get %v, below its %v", name, pod.RaiseTo, now)
		}
		if pod.RaiseTo > now && (!a.Range.Adjustable || pod.RaiseTo < floor || pod.RaiseTo > ceiling) {
			t.Errorf("%s is to get %v, outside of %v to %v (adjustable: %v)", name, pod.RaiseTo, floor, ceiling, a.Range.Adjustable)
		}
	}
	requireSound(t, plan.Representative)
	requireSound(t, plan.Published)
}

func TestTheRequiredLimitFitsAndNothingSmallerDoes(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		a := g.application()
		a.Rollout = false
		plan := PlanApplication(a)
		if !plan.TasksKnown || plan.Required == MaxBytes {
			return
		}
		w, load := withClientsOf(a), plan.Representative.Load
		if got := PlanFor(w, load, a.Policy, plan.Required); got.Verdict == LimitTooSmall {
			t.Errorf("the required %v is too small: %v", plan.Required, got.Deficits)
		}
		smaller := plan.Required - 2*MiB
		crossesCollectors := smaller < serverClass && plan.Required >= serverClass
		if got := PlanFor(w, load, a.Policy, smaller); smaller > 0 && got.Verdict != LimitTooSmall && !crossesCollectors {
			t.Errorf("%v is required, but %v holds the load as well: %d", plan.Required, smaller, got.Verdict)
		}
	})
}

// withClientsOf is the planned workload with the neighbours as the plan has them.
func withClientsOf(a Application) Workload { return newApplicationPlanner(a).Planned }

func TestMoreFailuresToTolerateNeverLowerTheRequiredLimit(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		a := g.application()
		a.ColdStart = false
		a.Neighbours = nil // their load after failures depends on the number of failures as well
		least := Bytes(0)
		for tolerated := range a.Failures.Instances + 2 {
			a.Failures.Tolerated = tolerated
			required := PlanApplication(a).Required
			if required < least {
				t.Errorf("%v required for %d failures, %v for one fewer", required, tolerated, least)
			}
			least = required
		}
	})
}
