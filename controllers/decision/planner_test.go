// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
	"streamweir.dev/streamweir/memplan"
)

// elsewhere is a group whose last process runs at an unknown address.
func elsewhere(tasks ...int) *assignment.Group {
	group := groupOf(tasks...)
	group.Processes[len(tasks)-1].Host = "192.0.2.1"
	return group
}

// twoPods are two running pods; the changes apply to the second.
func twoPods(changes ...testobjects.Change[corev1.Pod]) []*corev1.Pod {
	return append(testobjects.RunningPods(1, "1Gi"), testobjects.RunningPod(1, "1Gi", changes...))
}

// createdAgo sets the age of a pod.
func createdAgo(age time.Duration) testobjects.Change[corev1.Pod] {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(testobjects.Now.Add(-age)) }
}

// inState gives the application's container a state.
func inState(state corev1.ContainerState) testobjects.Change[corev1.Pod] {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = state }
}

// waitsForRestart is the state of a container in a crash loop.
var waitsForRestart = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}

func runningFor(d time.Duration) corev1.ContainerState {
	return runningSince(testobjects.Now.Add(-d))
}

func activeTasks(partitions ...int32) memplan.Tasks {
	return memplan.Tasks{Active: tasksOfPartitions(partitions...)}
}

func tasksOfPartitions(partitions ...int32) []memplan.Task {
	var tasks []memplan.Task
	for _, p := range partitions {
		tasks = append(tasks, memplan.Task{Subtopology: "0", Partition: p})
	}
	return tasks
}

func TestPlannerAssignment(t *testing.T) {
	roles := groupOf(1, 1)
	roles.Processes[0].Tasks.Standby = []assignment.Task{{Subtopology: "0", Partition: 1}}
	roles.Processes[0].Tasks.WarmUp = []assignment.Task{{Subtopology: "0", Partition: 7}}
	roles.Processes[0].Target = &assignment.Tasks{Active: []assignment.Task{{Subtopology: "0", Partition: 5}}}
	failed := testobjects.RunningPod(2, "1Gi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	pod := func(name string, tasks memplan.Tasks) memplan.Pod {
		return memplan.Pod{Name: name, Threads: 1, Current: tasks}
	}
	both := []memplan.Pod{pod("orders-0", activeTasks(0, 1)), pod("orders-1", activeTasks(2))}
	cases := map[string]struct {
		replicas int32
		pods     []*corev1.Pod
		group    *assignment.Group
		want     memplan.Assignment
	}{
		"each pod has the tasks of its process": {2, twoPods(), groupOf(2, 1), memplan.Assignment{Pods: both}},
		"roles and target": {2, twoPods(), roles, memplan.Assignment{Pods: []memplan.Pod{
			{
				Name: "orders-0", Threads: 1,
				Current: memplan.Tasks{Active: tasksOfPartitions(0), Standby: tasksOfPartitions(1), WarmUp: tasksOfPartitions(7)},
				Target:  activeTasks(5),
			},
			pod("orders-1", activeTasks(1)),
		}}},
		"no pod runs":          {3, nil, groupOf(2, 1), memplan.Assignment{}},
		"a pod is unavailable": {3, twoPods(), groupOf(2, 1), memplan.Assignment{Pods: both}},
		"a pod has failed":     {2, append(twoPods(), failed), groupOf(2, 1), memplan.Assignment{Pods: both}},
		"a pod has no process": {2, twoPods(), groupOf(2), memplan.Assignment{Pods: []memplan.Pod{both[0], {Name: "orders-1"}}}},
		"a process has no pod": {2, twoPods(), elsewhere(2, 5), memplan.Assignment{
			Pods:      []memplan.Pod{both[0], {Name: "orders-1"}},
			Unmatched: []memplan.Pod{pod("heaviest process without a pod", activeTasks(2, 3, 4, 5, 6))},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := fixture{workload: testobjects.StatefulSet(c.replicas, testobjects.PodTemplate("1Gi")), pods: c.pods, group: c.group}
			f := g.facts(t)
			wantNoDiff(t, "assignment", c.want, plannerAssignment(f))
			if f.Failures.Instances != int(c.replicas) {
				t.Errorf("%d instances are planned for, want %d", f.Failures.Instances, c.replicas)
			}
		})
	}
}

func TestProcessesMatched(t *testing.T) {
	sameAddress := twoPods(func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "10.0.0.1" })
	cases := map[string]struct {
		pods  []*corev1.Pod
		group *assignment.Group
		want  bool
	}{
		"every process has a pod":                                   {twoPods(), groupOf(2, 2), true},
		"a process and a pod are left":                              {twoPods(), elsewhere(2, 2), false},
		"a process is left, and a pod, started 1 min ago":           {twoPods(createdAgo(time.Minute)), elsewhere(2, 2), true},
		"a process is left, and a pod, started 2 min ago":           {twoPods(createdAgo(startingGrace)), elsewhere(2, 2), true},
		"a process is left, and a pod, started before that":         {twoPods(createdAgo(startingGrace + time.Second)), elsewhere(2, 2), false},
		"a process is left, and an old pod whose container started": {twoPods(inState(runningFor(time.Minute))), elsewhere(2, 2), true},
		"a process is left, and a pod whose container restarts":     {twoPods(inState(waitsForRestart)), elsewhere(2, 2), true},
		"a process is left, and a pod, running for an hour":         {twoPods(inState(runningFor(time.Hour))), elsewhere(2, 2), false},
		"a process is left, and no pod":                             {twoPods(), elsewhere(2, 2, 2), true},
		"no process has a pod":                                      {twoPods(createdAgo(time.Minute)), elsewhere(2), false},
		"two pods have the same address":                            {sameAddress, groupOf(2), false},
		"a pod is left, and no process":                             {twoPods(), groupOf(2), true},
		"no group":                                                  {twoPods(), nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fixture{workload: testobjects.StatefulSet(2, testobjects.PodTemplate("1Gi")), pods: c.pods, group: c.group}.facts(t)
			if got := f.Assignment.ProcessesMatched(f.Pods, f.Now); got != c.want {
				t.Errorf("matched = %t, want %t: %+v", got, c.want, f.Assignment.Matching)
			}
		})
	}
}

func TestStartingPods(t *testing.T) {
	cases := map[string]struct {
		state   corev1.ContainerState
		group   *assignment.Group
		want    int
		recheck time.Duration
	}{
		"has run for an hour, has tasks":              {runningFor(time.Hour), groupOf(2, 2), 0, 0},
		"has run for an hour, no tasks":               {runningFor(time.Hour), groupOf(4, 0), 0, 0},
		"restarted a minute ago, no process":          {runningFor(time.Minute), groupOf(4), 1, startingGrace - time.Minute + time.Second},
		"restarted a minute ago, process has no task": {runningFor(time.Minute), groupOf(4, 0), 1, startingGrace - time.Minute + time.Second},
		"restarted a minute ago, has tasks":           {runningFor(time.Minute), groupOf(2, 2), 0, 0},
		"waits for a restart":                         {waitsForRestart, groupOf(4), 1, 0},
		"waits for a restart, group unchanged":        {waitsForRestart, groupOf(2, 2), 0, 0},
		"waits for a restart, no group":               {waitsForRestart, nil, 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := fixture{workload: testobjects.StatefulSet(2, testobjects.PodTemplate("1Gi")), pods: twoPods(inState(c.state)), group: c.group}
			f := g.facts(t)
			if f.Failures.Starting != c.want {
				t.Errorf("%d pods are starting, want %d", f.Failures.Starting, c.want)
			}
			if d := g.decide(t); d.RecheckAfter != c.recheck {
				t.Errorf("rechecked after %s, want %s", d.RecheckAfter, c.recheck)
			}
		})
	}
}

// TestRecheckEndsTheStart: in the pass at the time of the recheck the pod is no longer starting.
func TestRecheckEndsTheStart(t *testing.T) {
	g := fixture{
		workload: testobjects.StatefulSet(2, testobjects.PodTemplate("1Gi")), pods: twoPods(createdAgo(30 * time.Second)), group: elsewhere(2, 2), now: testobjects.Now,
	}
	wantStart := func(started bool) time.Duration {
		t.Helper()
		d := g.decide(t)
		f := &d.Facts
		if matched := f.Assignment.ProcessesMatched(f.Pods, f.Now); matched != started || (f.Failures.Starting == 1) != started {
			t.Fatalf("at %s: matched = %t, %d pods are starting; want %t", g.now, matched, f.Failures.Starting, started)
		}
		return d.RecheckAfter
	}
	wait := wantStart(true)
	if wait <= 0 || wait > startingGrace {
		t.Fatalf("rechecked after %s, want at most %s", wait, startingGrace)
	}
	g.now = g.now.Add(wait)
	if wait := wantStart(false); wait != 0 {
		t.Errorf("rechecked after %s, want never", wait)
	}
	if wait := (fixture{group: groupOf(4, 4, 4)}).decide(t).RecheckAfter; wait != 0 {
		t.Errorf("without a problem rechecked after %s, want never", wait)
	}
}

func TestPolicy(t *testing.T) {
	wantNoDiff(t, "policy of an empty spec", memplan.DefaultPolicy(), policyOf(&v1alpha1.MemorySpec{}))
	policy := policyOf(&v1alpha1.MemorySpec{
		HeadroomPercent: new(int32(0)),
		Pins: []v1alpha1.Pin{
			{Region: v1alpha1.RegionMetaspace, Size: testobjects.Memory("200Mi")}, {Region: v1alpha1.RegionHeap, Size: testobjects.Memory("1Gi")},
			{Region: "Unknown", Size: testobjects.Memory("1Gi")}, {Region: v1alpha1.RegionCollector},
		},
	})
	wantNoDiff(t, "pins", map[memplan.Region]memplan.Bytes{memplan.RegionMetaspace: 200 * memplan.MiB}, policy.Pins)
	if policy.HeadroomPercent != 0 {
		t.Errorf("headroom = %d %%, want none", policy.HeadroomPercent)
	}
}

// TestFailuresReachThePlanner: the number of failures to tolerate is an input of the planner.
func TestFailuresReachThePlanner(t *testing.T) {
	g := fixture{group: groupOf(4, 4, 4), app: tolerating(2)}
	f := g.facts(t)
	resolved := resolveApplication(f)
	wantNoDiff(t, "failures", memplan.Failures{Instances: 3, Tolerated: 2}, plannerInput(f, &resolved).Failures)
}

// tolerating is a StreamApp with this number of pod failures to tolerate.
func tolerating(failures int32) *v1alpha1.StreamApp {
	return testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "8Gi"), func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.PodFailuresToTolerate = &failures
	})
}

func TestPinIsALineOfThePlan(t *testing.T) {
	app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionMetaspace, Size: testobjects.Memory("200Mi")}}
	})
	d := fixture{app: app, group: groupOf(4, 4, 4), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi")), pods: testobjects.RunningPods(3, "4Gi")}.decide(t)
	for _, line := range d.Plan.Representative.Lines {
		if line.Name == string(memplan.RegionMetaspace) {
			if line.Bound.Value() != 200*mib || line.Source != v1alpha1.SourceSpec {
				t.Errorf("metaspace is %s from %s, want 200Mi from the spec", line.Bound, line.Source)
			}
			return
		}
	}
	t.Error("the plan has no line for the metaspace")
}

// TestRequiredLimitGrowsWithFailures: more failures to tolerate never require less, and each required limit holds its loads.
func TestRequiredLimitGrowsWithFailures(t *testing.T) {
	given := func(limit int64, tolerate int32) *Decision {
		g := fixture{group: groupOf(4, 4, 4), app: tolerating(tolerate), pods: testobjects.RunningPods(3, bytesText(limit))}
		// Only the pods have this limit. The template keeps its own, and with it the application's smallest heap.
		g.app.Spec.Memory.MinLimit = testobjects.Memory(bytesText(limit))
		g.app.Spec.Memory.MaxLimit = g.app.Spec.Memory.MinLimit
		return g.decide(t)
	}
	last := int64(0)
	for tolerate := range int32(3) {
		plan := fixture{group: groupOf(4, 4, 4), app: tolerating(tolerate)}.decide(t).Plan
		if plan.Required < last || plan.Required < plan.RequiredNow {
			t.Errorf("%d failures require %s after %s, and %s now", tolerate, bytesText(plan.Required), bytesText(last), bytesText(plan.RequiredNow))
		}
		last = plan.Required
		atRequired, now, tooSmall := given(plan.Required, tolerate).Plan, given(plan.RequiredNow, tolerate).Plan, given(plan.RequiredNow/2, tolerate).Plan
		if !atRequired.Published.Fits || !now.Published.Fits || tooSmall.Published.Fits {
			t.Errorf("%d failures: the published plan fits %t under the required limit, %t under that of now, %t under half of it",
				tolerate, atRequired.Published.Fits, now.Published.Fits, tooSmall.Published.Fits)
		}
		if atRequired.Tolerated < int(tolerate) {
			t.Errorf("the limit required for %d failures tolerates %d", tolerate, atRequired.Tolerated)
		}
	}
}

// TestPodsWithoutThePlan: without the plan the JVM chooses the heap, so such pods require at least as much.
func TestPodsWithoutThePlan(t *testing.T) {
	g := fixture{app: testobjects.StreamApp(), group: groupOf(4, 4, 4), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi"))}
	g.pods = testobjects.RunningPods(3, "2Gi")
	with := g.decide(t).Plan
	g.pods = testobjects.RunningPods(3, "2Gi", testobjects.NotInjected)
	without := g.decide(t).Plan
	if without.Required != with.Required {
		t.Errorf("new pods require %s, and %s if some run without the plan; want the same", bytesText(with.Required), bytesText(without.Required))
	}
	if without.Tolerated > with.Tolerated || without.Pods["orders-0"].Required < with.Pods["orders-0"].Required {
		t.Errorf("without the plan %d failures are tolerated and %s required, with it %d and %s", without.Tolerated,
			bytesText(without.Pods["orders-0"].Required), with.Tolerated, bytesText(with.Pods["orders-0"].Required))
	}
}

func TestPlanBeforeTheFirstPod(t *testing.T) {
	large := fixture{app: testobjects.StreamApp(), group: groupOf(4, 4, 4), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("8Gi"))}.decide(t)
	if large.Plan.Tolerated < 1 || large.Facts.Failures.Tolerated != 1 || large.Facts.Failures.Instances != 3 || len(large.Plan.Pods) > 0 {
		t.Errorf("tolerates %d failures, failures %+v, pods %v; want the plan for three pods to come", large.Plan.Tolerated, large.Facts.Failures, large.Plan.Pods)
	}
	small := fixture{app: testobjects.StreamApp(), group: groupOf(40, 40, 40), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("512Mi"))}.decide(t)
	if small.Plan.Tolerated != -1 {
		t.Errorf("tolerates %d failures with a limit that holds nothing, want -1", small.Plan.Tolerated)
	}
	if fits := judge(small, small.outcome())[v1alpha1.ConditionFits]; fits.status != metav1.ConditionFalse || fits.reason != v1alpha1.ReasonInsufficientMemory {
		t.Errorf("Fits = %+v, want False for insufficient memory", fits)
	}
}

func TestColdStart(t *testing.T) {
	inOrder := testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi"))
	inOrder.Spec.PodManagementPolicy = ""
	g := fixture{app: testobjects.StreamApp(), group: groupOf(4, 4, 4), workload: inOrder, pods: testobjects.RunningPods(3, "2Gi")}
	if plan := g.decide(t).Plan; plan.ColdStart <= plan.Required {
		t.Errorf("the first pod requires %s, want more than the %s after a failure", bytesText(plan.ColdStart), bytesText(plan.Required))
	}
	g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi"))
	if plan := g.decide(t).Plan; plan.ColdStart != 0 {
		t.Errorf("pods start all at once: the first requires %s, want 0", bytesText(plan.ColdStart))
	}
}

func TestErrorTexts(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	wantNoDiff(t, "texts", []string{"one", "two", "one"}, errorTexts(nil, errors.Join(one, errors.Join(two, nil)), one))
	if got := errorTexts(nil, nil); got != nil {
		t.Errorf("texts of no errors = %v", got)
	}
}
