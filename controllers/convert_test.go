// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

func TestAssignmentOf(t *testing.T) {
	away := func(g given) memplan.Assignment {
		obs := observed(t, g)
		return assignmentOf(obs, countLossesOf(obs))
	}
	names := func(a memplan.Assignment) (all []string) {
		for _, pod := range a.Pods {
			all = append(all, pod.Name)
		}
		return all
	}
	two, three := statefulSet(2, podTemplate("1Gi")), statefulSet(3, podTemplate("1Gi"))

	t.Run("each pod has what its process runs", func(t *testing.T) {
		got := away(given{workload: two, pods: runningPodsOf(2, "1Gi"), group: groupOf(2, 1)})
		want := memplan.Assignment{Pods: []memplan.Pod{
			{Name: "orders-0", Threads: 1, Current: memplan.Tasks{Active: []memplan.Task{{Subtopology: "0", Partition: 0}, {Subtopology: "0", Partition: 1}}}},
			{Name: "orders-1", Threads: 1, Current: memplan.Tasks{Active: []memplan.Task{{Subtopology: "0", Partition: 2}}}},
		}}
		wantNoDiff(t, "assignment", want, got)
	})
	t.Run("roles and targets are kept apart", func(t *testing.T) {
		group := groupOf(1, 1)
		group.Processes[0].Tasks.Standby = []assignment.Task{{Subtopology: "0", Partition: 1}}
		group.Processes[0].Tasks.WarmUp = []assignment.Task{{Subtopology: "0", Partition: 7}}
		group.Processes[0].Target = &assignment.Tasks{Active: []assignment.Task{{Subtopology: "0", Partition: 5}}}
		got := away(given{workload: two, pods: runningPodsOf(2, "1Gi"), group: group}).Pods[0]
		want := memplan.Pod{
			Name: "orders-0", Threads: 1,
			Current: memplan.Tasks{
				Active: []memplan.Task{{Subtopology: "0"}}, Standby: []memplan.Task{{Subtopology: "0", Partition: 1}}, WarmUp: []memplan.Task{{Subtopology: "0", Partition: 7}},
			},
			Target: memplan.Tasks{Active: []memplan.Task{{Subtopology: "0", Partition: 5}}},
		}
		wantNoDiff(t, "pod", want, got)
	})
	t.Run("no pod runs: others stand in for those to come", func(t *testing.T) {
		got := away(given{workload: three, group: groupOf(2, 1)})
		if len(got.Pods) != 3 || len(got.Unmatched) > 0 && got.Unmatched[0].Name == "" {
			t.Errorf("pods = %v, want three", names(got))
		}
	})
	t.Run("a pod is away: another stands in", func(t *testing.T) {
		got := names(away(given{workload: three, pods: runningPodsOf(2, "1Gi"), group: groupOf(2, 1)}))
		if len(got) != 3 || !slices.Contains(got, "orders-0") || !slices.Contains(got, "orders-1") {
			t.Errorf("pods = %v, want both that run and another", got)
		}
	})
	t.Run("a pod that does not run has no part in it", func(t *testing.T) {
		pods := append(runningPodsOf(2, "1Gi"), runningPod(2, "1Gi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
		wantNoDiff(t, "pods", []string{"orders-0", "orders-1"}, names(away(given{workload: two, pods: pods, group: groupOf(2, 1)})))
	})
	t.Run("a process has no pod: each pod may be it", func(t *testing.T) {
		group := groupOf(2, 5)
		group.Processes[1].Host = "192.0.2.1"
		got := away(given{workload: two, pods: runningPodsOf(2, "1Gi"), group: group})
		if len(got.Unmatched) != 1 || len(got.Unmatched[0].Current.Active) != 5 || got.Unmatched[0].Name == "" {
			t.Errorf("unmatched = %+v, want the process with 5 tasks", got.Unmatched)
		}
	})
}

func TestProcessesFound(t *testing.T) {
	elsewhere := func(tasks ...int) *assignment.Group {
		group := groupOf(tasks...)
		group.Processes[len(tasks)-1].Host = "192.0.2.1"
		return group
	}
	aged := func(age time.Duration) []*corev1.Pod {
		return append(runningPodsOf(1, "1Gi"), runningPod(1, "1Gi", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(testNow.Add(-age)) }))
	}
	state := func(of corev1.ContainerState) []*corev1.Pod {
		return append(runningPodsOf(1, "1Gi"), runningPod(1, "1Gi", containerIs(of)))
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	shared := []*corev1.Pod{runningPod(0, "1Gi"), runningPod(1, "1Gi", func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "10.0.0.1" })}
	cases := map[string]struct {
		pods  []*corev1.Pod
		group *assignment.Group
		want  bool
	}{
		"all have a pod":                                     {aged(time.Hour), groupOf(2, 2), true},
		"one is elsewhere, and a pod has none":               {aged(time.Hour), elsewhere(2, 2), false},
		"one is gone, and the pod in its place just started": {aged(time.Minute), elsewhere(2, 2), true},
		"it started two minutes ago":                         {aged(joinGrace), elsewhere(2, 2), true},
		"it started more than two minutes ago":               {aged(joinGrace + time.Second), elsewhere(2, 2), false},
		"its image took an hour":                             {state(runningSince(testNow.Add(-time.Minute))), elsewhere(2, 2), true},
		"its container is started again and again":           {state(waiting), elsewhere(2, 2), true},
		"its container has run for an hour":                  {state(runningSince(testNow.Add(-time.Hour))), elsewhere(2, 2), false},
		"one is gone, and every pod has one":                 {aged(time.Hour), elsewhere(2, 2, 2), true},
		"all are elsewhere":                                  {aged(time.Minute), elsewhere(2), false},
		"pods share an address":                              {shared, groupOf(2), false},
		"a pod has none yet, and none is elsewhere":          {aged(time.Hour), groupOf(2), true},
		"there is no group":                                  {aged(time.Hour), nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obs := observed(t, given{workload: statefulSet(2, podTemplate("1Gi")), pods: c.pods, group: c.group})
			if got := obs.processesFound(); got != c.want {
				t.Errorf("processesFound = %v, want %v: %+v", got, c.want, obs.group.match)
			}
		})
	}
}

// TestTheClockAloneIsWaitedFor: what a pass says may change once a new pod should have joined, with nothing else to wake it.
func TestPodsThatHaveYetToJoin(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	cases := map[string]struct {
		state     corev1.ContainerState
		group     *assignment.Group
		want      int
		wantAgain time.Duration
	}{
		"it has run for long, and has tasks":          {runningSince(testNow.Add(-time.Hour)), groupOf(2, 2), 0, 0},
		"it has run for long, and has none":           {runningSince(testNow.Add(-time.Hour)), groupOf(4, 0), 0, 0},
		"it has just been started again":              {runningSince(testNow.Add(-time.Minute)), groupOf(4), 1, joinGrace - time.Minute + time.Second},
		"it has joined, and has none yet":             {runningSince(testNow.Add(-time.Minute)), groupOf(4, 0), 1, joinGrace - time.Minute + time.Second},
		"it has just been started, and has tasks":     {runningSince(testNow.Add(-time.Minute)), groupOf(2, 2), 0, 0},
		"it waits to be started again":                {waiting, groupOf(4), 1, 0},
		"it waits, and the group has not noticed yet": {waiting, groupOf(2, 2), 0, 0},
		"nobody has tasks":                            {waiting, nil, 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pods := append(runningPodsOf(1, "1Gi"), runningPod(1, "1Gi", containerIs(c.state)))
			obs := observed(t, given{workload: statefulSet(2, podTemplate("1Gi")), pods: pods, group: c.group})
			if got, again := obs.joiningPods(), obs.recheckAfter(); got != c.want || again != c.wantAgain {
				t.Errorf("%d are joining, looking again after %v; want %d and %v", got, again, c.want, c.wantAgain)
			}
		})
	}
}

func TestTheClockAloneIsWaitedFor(t *testing.T) {
	group := groupOf(2, 2)
	group.Processes[1].Host = "192.0.2.1"
	young := runningPod(1, "1Gi", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(testNow.Add(-30 * time.Second)) })
	g := given{workload: statefulSet(2, podTemplate("1Gi")), pods: append(runningPodsOf(1, "1Gi"), young), group: group}
	obs := observed(t, g)
	wait := obs.recheckAfter()
	if !obs.processesFound() || obs.joiningPods() != 1 || wait <= 0 || wait > joinGrace {
		t.Fatalf("found %v, joining %d, looking again after %v", obs.processesFound(), obs.joiningPods(), wait)
	}
	g.now = testNow.Add(wait)
	if later := observed(t, g); later.processesFound() || later.joiningPods() != 0 || later.recheckAfter() != 0 {
		t.Errorf("after %v: found %v, joining %d, looking again after %v; want a doubt, and nothing to wait for", wait, later.processesFound(), later.joiningPods(), later.recheckAfter())
	}
	if wait := observed(t, given{group: groupOf(4, 4, 4)}).recheckAfter(); wait != 0 {
		t.Errorf("where all is well it looks again after %v, want never", wait)
	}
}

func TestPolicy(t *testing.T) {
	defaults := memplan.DefaultPolicy()
	policy := policyOf(streamApp(), losses{tolerated: 2})
	if policy.PodFailures != 2 || policy.HeadroomPercent != defaults.HeadroomPercent || policy.Pins != nil {
		t.Errorf("policy = %+v, want the defaults and two losses", policy)
	}
	app := streamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.HeadroomPercent = new(int32(0))
		app.Spec.Memory.Pins = []v1alpha1.Pin{
			{Region: v1alpha1.RegionMetaspace, Size: memory("200Mi")}, {Region: v1alpha1.RegionHeap, Size: memory("1Gi")},
			{Region: "Unheard", Size: memory("1Gi")}, {Region: v1alpha1.RegionCollector},
		}
	})
	policy = policyOf(app, losses{tolerated: 1})
	wantNoDiff(t, "pins", map[memplan.Region]memplan.Bytes{memplan.RegionMetaspace: 200 * memplan.MiB}, policy.Pins)
	if policy.HeadroomPercent != 0 {
		t.Errorf("headroom = %d %%, want none", policy.HeadroomPercent)
	}
}

func TestPinsReachThePlan(t *testing.T) {
	app := streamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionMetaspace, Size: memory("200Mi")}}
	})
	p := passOf(t, given{app: app, group: groupOf(4, 4, 4), workload: statefulSet(3, podTemplate("4Gi")), pods: runningPodsOf(3, "4Gi")})
	for _, line := range p.want.typical.lines {
		if line.Name == string(memplan.RegionMetaspace) {
			if line.Bound.Value() != 200*mib || line.Source != v1alpha1.SourceSpec {
				t.Errorf("metaspace is %v from %s, want 200Mi from the spec", line.Bound, line.Source)
			}
			return
		}
	}
	t.Error("the plan has no line for the metaspace")
}

// TestNeedGrowsWithLosses: more to survive never needs less, and what is published for a limit is the best that it holds.
func TestNeedGrowsWithLosses(t *testing.T) {
	last := int64(0)
	for survive := range int32(3) {
		app := streamApp(limitsBetween("", "8Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Memory.PodFailuresToTolerate = &survive })
		p := passOf(t, given{app: app, group: groupOf(4, 4, 4)}).planned
		if p.need < last || p.need < p.needNow || p.policy.PodFailures != int(survive) || len(p.worst) != int(survive)+2 {
			t.Errorf("to survive %d: need %s after %s, now %s, losses %d, %d loads", survive, humanBytes(p.need), humanBytes(last), humanBytes(p.needNow), p.policy.PodFailures, len(p.worst))
		}
		if !p.publish(p.need).fits || !p.publish(p.needNow).fits || p.publish(p.needNow/2).fits {
			t.Errorf("to survive %d: a plan fits %v under the need, %v under that of now, %v under half of it",
				survive, p.publish(p.need).fits, p.publish(p.needNow).fits, p.publish(p.needNow/2).fits)
		}
		last = p.need
	}
}

func TestPodsThatRunAsShippedAreJudgedSo(t *testing.T) {
	bare := func(p *corev1.Pod) { p.Annotations = nil }
	g := given{app: streamApp(), group: groupOf(4, 4, 4), workload: statefulSet(3, podTemplate("2Gi")), pods: runningPodsOf(3, "2Gi")}
	with := passOf(t, g).planned
	g.pods = runningPodsOf(3, "2Gi", bare)
	without := passOf(t, g).planned
	if without.need != with.need {
		t.Errorf("new pods need %s, and %s once some run without the plan; want the same", humanBytes(with.need), humanBytes(without.need))
	}
	if without.survives > with.survives || without.pods["orders-0"].need < with.pods["orders-0"].need {
		t.Errorf("without the plan they survive %d losses with a need of %s, with it %d with %s", without.survives, humanBytes(without.pods["orders-0"].need),
			with.survives, humanBytes(with.pods["orders-0"].need))
	}
}

func TestNoPodsYet(t *testing.T) {
	roomy := passOf(t, given{app: streamApp(), group: groupOf(4, 4, 4), workload: statefulSet(3, podTemplate("8Gi"))}).planned
	if roomy.survives < 1 || roomy.policy.PodFailures != 1 || len(roomy.pods) > 0 {
		t.Errorf("survives %d, losses %d, pods %v; want the plan for three that are to come", roomy.survives, roomy.policy.PodFailures, roomy.pods)
	}
	tight := passOf(t, given{app: streamApp(), group: groupOf(40, 40, 40), workload: statefulSet(3, podTemplate("512Mi"))})
	if tight.planned.survives >= 0 {
		t.Errorf("survives %d with a limit that holds nothing, want -1", tight.planned.survives)
	}
	isNo(v1alpha1.ReasonInsufficientMemory, "").check(t, judged(t, tight, &applied{})[v1alpha1.ConditionFits])
}

func TestColdStart(t *testing.T) {
	ordered := statefulSet(3, podTemplate("2Gi"))
	ordered.Spec.PodManagementPolicy = ""
	g := given{app: streamApp(), group: groupOf(4, 4, 4), workload: ordered, pods: runningPodsOf(3, "2Gi")}
	p := passOf(t, g)
	if p.planned.coldStart <= p.planned.need {
		t.Errorf("the first pod needs %s, want more than the %s after a loss", humanBytes(p.planned.coldStart), humanBytes(p.planned.need))
	}
	g.workload = statefulSet(3, podTemplate("2Gi"))
	if p := passOf(t, g); p.planned.coldStart != 0 {
		t.Errorf("pods that start together: the first needs %s, want nothing said", humanBytes(p.planned.coldStart))
	}
}

func TestInvalidTexts(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	got := invalidTexts(nil, errors.Join(one, errors.Join(two, nil)), one)
	wantNoDiff(t, "sentences", []string{"one", "two", "one"}, got)
	if got := invalidTexts(nil, nil); got != nil {
		t.Errorf("no errors give %v", got)
	}
}
