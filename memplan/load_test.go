// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onlyCap is a load of one subtopology in which every task may be of it.
func onlyCap(threads, active, total int) Load {
	return Load{Threads: threads, Active: active, Total: total, Caps: []Cap{{Active: active, Total: total}}}
}

func TestLoadsAfter(t *testing.T) {
	streams := func(w Workload) Workload { w.Protocol = Known(Streams, Measured); return w }
	standbys := func(w Workload, n int) Workload { w.Standbys = Known(n, App); return w }
	persistent := func(w Workload) Workload { w.StateDir.Persistent = true; return w }
	stateless := keyValueApp(12)
	stateless.Subtopologies[0].Stores = nil
	three := func(tasks int) []Pod {
		return []Pod{
			activePod("a", 1, tasksOf(0, tasks/3)), activePod("b", 1, tasksOf(tasks/3, 2*tasks/3)), activePod("c", 1, tasksOf(2*tasks/3, tasks)),
		}
	}
	cases := map[string]struct {
		w        Workload
		a        Assignment
		failures int
		want     Load
	}{
		"streams: the quota is per thread, so 3 pods of 5 threads that start one by one stay at 10 of 20 tasks": {
			w:    streams(keyValueApp(20)),
			a:    Assignment{Pods: []Pod{activePod("a", 5, tasksOf(0, 10)), activePod("b", 5, tasksOf(10, 15)), activePod("c", 5, tasksOf(15, 20))}},
			want: onlyCap(5, 10, 10),
		},
		"streams: 24 tasks on 2 pods of 7 threads may be 14 and 10": {
			w:    streams(keyValueApp(24)),
			a:    Assignment{Pods: []Pod{activePod("a", 7, tasksOf(0, 12)), activePod("b", 7, tasksOf(12, 24))}},
			want: onlyCap(7, 14, 14),
		},
		"streams: after a failure the survivors share all tasks": {
			w: streams(keyValueApp(12)), a: Assignment{Pods: three(12)}, failures: 1,
			want: onlyCap(1, 6, 6),
		},
		"streams: the last survivor has all tasks": {
			w: streams(keyValueApp(12)), a: Assignment{Pods: three(12)}, failures: 2,
			want: onlyCap(1, 12, 12),
		},
		"streams: more failures than pods count as all others": {
			w: streams(keyValueApp(12)), a: Assignment{Pods: three(12)}, failures: 99,
			want: onlyCap(1, 12, 12),
		},
		"streams: the largest pod fails first": {
			w: streams(keyValueApp(12)),
			a: Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 2)), activePod("b", 4, tasksOf(2, 10)), activePod("c", 1, tasksOf(10, 12))}}, failures: 1,
			want: onlyCap(1, 6, 6),
		},
		"streams: standbys come on top, and never two copies of a task on one pod": {
			w: standbys(streams(keyValueApp(12)), 1), a: Assignment{Pods: three(12)}, failures: 1,
			want: onlyCap(1, 6, 12),
		},
		"streams: a standby goes to the least loaded of those that have no copy, so a small pod may have as many per thread as the second": {
			w: standbys(streams(keyValueApp(12)), 1), failures: 2,
			a: Assignment{Pods: []Pod{
				activePod("a", 1, tasksOf(0, 1)), activePod("b", 5, tasksOf(1, 6)), activePod("c", 5, tasksOf(6, 10)), activePod("d", 3, tasksOf(10, 12)),
			}},
			want: onlyCap(1, 3, 12),
		},
		"streams: standbys that no survivor is left for do not count": {
			w: standbys(streams(keyValueApp(12)), 2), a: Assignment{Pods: three(12)}, failures: 2,
			want: onlyCap(1, 12, 12),
		},
		"classic: own tasks stay, uncovered come, and warm-ups come on top": {
			w: keyValueApp(24), a: Assignment{Pods: three(24)}, failures: 1,
			want: onlyCap(1, 8+8, 8+8+2),
		},
		"classic: while a pod has more than its share, twice as many tasks as warm-ups may return to old directories": {
			w: keyValueApp(24), failures: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 6)), activePod("b", 1, tasksOf(6, 14)), activePod("c", 1, tasksOf(14, 24))}},
			want: onlyCap(1, 6+10+4, 6+10+4+2),
		},
		"classic: and while a task warms up": {
			w: with(keyValueApp(100), func(w *Workload) { w.WarmUps = Known(3, App) }), a: warming(evenlyNamed(keyValueApp(100), 10)), failures: 1,
			want: onlyCap(1, 10+10+6, 10+10+6+3),
		},
		"classic: no more returns than what others run": {
			w: keyValueApp(4), failures: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, nil), activePod("b", 1, tasksOf(0, 1)), activePod("c", 1, tasksOf(1, 4))}},
			want: onlyCap(1, 4, 4),
		},
		"classic: without a failure the own tasks stay, and two more may warm up": {
			w: keyValueApp(24), a: Assignment{Pods: three(24)},
			want: onlyCap(1, 8, 10),
		},
		"classic: with persistent directories all uncovered may have their best copy here": {
			w: persistent(keyValueApp(24)), failures: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 1)), activePod("b", 1, tasksOf(1, 18)), activePod("c", 1, tasksOf(18, 24))}},
			want: onlyCap(1, 1+17+4, 24),
		},
		"classic: without them the even share bounds the uncovered": {
			w: keyValueApp(24), failures: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 2)), activePod("b", 1, tasksOf(2, 22)), activePod("c", 1, tasksOf(22, 24))}},
			want: onlyCap(1, 2+12+4, 2+12+4+2),
		},
		"classic: a task with a standby elsewhere goes there": {
			w: standbys(keyValueApp(20), 1), failures: 1,
			a: Assignment{Pods: []Pod{
				{Name: "a", Threads: 1, Current: Tasks{Standby: tasksOf(0, 1)}},
				{Name: "b", Threads: 1, Current: Tasks{Active: tasksOf(0, 20)}}, {Name: "c", Threads: 1, Current: Tasks{Standby: tasksOf(1, 20)}},
			}},
			want: onlyCap(1, 10, 20),
		},
		"classic: standbys come on top, dealt out among those that have none, and one for rounding": {
			w: standbys(keyValueApp(100), 1), a: withStandbys(keyValueApp(100), 10),
			want: onlyCap(1, 10+10, 10+12+1+2), // 12 is a ninth of the standbys
		},
		"classic: all copies of the failed pod may be made again on one pod": {
			w: standbys(keyValueApp(100), 1), a: withStandbys(keyValueApp(100), 10), failures: 1,
			want: onlyCap(1, 20, 20+20+2),
		},
		"classic: and so may all standbys that are not there yet": {
			w: standbys(keyValueApp(100), 1), a: evenlyNamed(keyValueApp(100), 2),
			want: onlyCap(1, 50, 100),
		},
		"classic: its standbys may become active": {
			w: standbys(keyValueApp(6), 1), failures: 1,
			a: Assignment{Pods: []Pod{
				{Name: "a", Threads: 1, Current: Tasks{Active: tasksOf(0, 2), Standby: tasksOf(2, 6)}},
				{Name: "b", Threads: 1, Current: Tasks{Active: tasksOf(2, 4), Standby: tasksOf(0, 2)}},
				{Name: "c", Threads: 1, Current: Tasks{Active: tasksOf(4, 6)}},
			}},
			want: onlyCap(1, 6, 6),
		},
		"classic: stateless tasks do not warm up": {
			w: stateless, a: Assignment{Pods: three(12)},
			want: onlyCap(1, 4, 4),
		},
		"classic: unassigned tasks are assigned evenly": {
			w: keyValueApp(12), a: Assignment{Pods: []Pod{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
			want: onlyCap(1, 4, 6),
		},
		"classic: unassigned tasks may come on top of those that stay": {
			w: keyValueApp(12), a: Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 4)), activePod("b", 1, tasksOf(4, 9))}},
			want: onlyCap(1, 4+3, 9),
		},
		"classic: when a pod joins, an even share may return to old directories": {
			w: keyValueApp(24), a: Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 12)), activePod("b", 1, tasksOf(12, 24)), {Name: "c"}}},
			want: onlyCap(1, 12+8, 12+8+2),
		},
		"classic: a pod without tasks may have come back with its directory, and take as many as any": {
			w: keyValueApp(24), a: Assignment{Pods: []Pod{{Name: "a"}, activePod("b", 1, tasksOf(12, 24)), activePod("c", 1, tasksOf(0, 12))}},
			want: onlyCap(1, 12+8, 12+8+2),
		},
		"both sides of a hand-over count in full": {
			w:    streams(keyValueApp(4)),
			a:    Assignment{Pods: []Pod{{Name: "a", Threads: 1, Current: Tasks{Active: tasksOf(0, 2)}, Target: Tasks{Active: tasksOf(1, 4)}}, {Name: "b", Threads: 1}}},
			want: onlyCap(1, 4, 4),
		},
		"where only the heaviest process is known, the others may be as heavy": {
			w: keyValueApp(24), failures: 1,
			a:    Assignment{Pods: []Pod{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Unmatched: []Pod{activePod("process", 1, tasksOf(0, 9))}},
			want: onlyCap(1, 9+9+4, 24),
		},
		"the copies of the others are not missing where only the heaviest process is known": {
			w: standbys(keyValueApp(100), 1), failures: 1,
			a: Assignment{
				Pods:      evenlyNamed(Workload{}, 10).Pods,
				Unmatched: []Pod{{Name: "process", Threads: 1, Current: Tasks{Active: tasksOf(0, 10), Standby: tasksOf(10, 20)}}},
			},
			want: onlyCap(1, 10+10+10+4, 34+13+1+2),
		},
		"where all processes are known but not their pods, each pod may be the heaviest": {
			w:    streams(keyValueApp(12)),
			a:    Assignment{Pods: []Pod{{Name: "a"}, {Name: "b"}}, Unmatched: []Pod{activePod("p", 1, tasksOf(0, 8)), activePod("q", 1, tasksOf(8, 12))}},
			want: onlyCap(1, 8, 8),
		},
		"a task of a subtopology that is not known may cost as much as any other": {
			w:    streams(keyValueApp(2)),
			a:    Assignment{Pods: []Pod{activePod("a", 1, []Task{{Subtopology: "9"}, {Subtopology: "0"}})}},
			want: Load{Threads: 1, Active: 3, Total: 3, Caps: []Cap{{Active: 3, Total: 3}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, loadAfter(c.w, c.a, "a", c.failures)); d != "" {
				t.Errorf("load (-want +got):\n%s", d)
			}
		})
	}
}

func TestSubtopologiesMayLandTogether(t *testing.T) {
	w := keyValueApp(6)
	w.Protocol = Known(Streams, Measured)
	w.Subtopologies = append(w.Subtopologies, Subtopology{ID: "1", Tasks: 2, InputPartitions: 1})
	got := loadAfter(w, evenly(w, 2, 1), "pod-0", 0)
	want := Load{Threads: 1, Active: 4, Total: 4, Caps: []Cap{{Active: 4, Total: 4}, {Active: 2, Total: 2}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("load (-want +got):\n%s", d)
	}
}

func TestObserved(t *testing.T) {
	w := keyValueApp(12)
	pods := []Pod{
		{Name: "a", Threads: 2, Current: Tasks{Active: tasksOf(0, 4), Standby: tasksOf(4, 6), WarmUp: tasksOf(6, 7)}, Target: Tasks{Active: tasksOf(0, 5)}},
		{Name: "b", Threads: 1},
	}
	cases := map[string]struct {
		a    Assignment
		pod  string
		want Load
	}{
		"all roles, each task once":                 {a: Assignment{Pods: pods}, pod: "a", want: onlyCap(2, 5, 7)},
		"a pod without tasks":                       {a: Assignment{Pods: pods}, pod: "b", want: onlyCap(1, 0, 0)},
		"the heaviest process where one has no pod": {a: Assignment{Pods: pods[1:], Unmatched: pods[:1]}, pod: "b", want: onlyCap(2, 5, 7)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, observed(w, c.a, c.pod)); d != "" {
				t.Errorf("load (-want +got):\n%s", d)
			}
		})
	}
}

func TestColdStartHasAllTasks(t *testing.T) {
	w := keyValueApp(12)
	w.Threads = Known(3, App)
	if d := cmp.Diff(onlyCap(3, 12, 12), ColdStart(w, 0)); d != "" {
		t.Errorf("load (-want +got):\n%s", d)
	}
	if got := ColdStart(w, 5).Threads; got != 5 {
		t.Errorf("threads = %d, want those given", got)
	}
}

// evenlyNamed is evenly with the name a for the first pod.
func evenlyNamed(w Workload, pods int) Assignment {
	a := evenly(w, pods, 1)
	a.Pods[0].Name = "a"
	return a
}

// warming has one task of the second pod warm up on the third.
func warming(a Assignment) Assignment {
	a.Pods[2].Current.WarmUp = a.Pods[1].Current.Active[:1]
	return a
}

// withStandbys has each task's standby on the pod that follows its active one.
func withStandbys(w Workload, pods int) Assignment {
	a := evenlyNamed(w, pods)
	for i := range a.Pods {
		a.Pods[(i+1)%pods].Current.Standby = a.Pods[i].Current.Active
	}
	return a
}

// The tolerated failures can be found without the planner: the brute force below tries each set of failed pods.
func TestSurvivesAgreesWithBruteForce(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		w.Standbys, w.Protocol = Known(0, App), Known(pick(g, Classic, Streams), App)
		w.JVM = NewJVM()
		w.JVM.HeapMode = HeapPlanned
		a := g.assignment(w, 1+g.IntN(5))
		policy := DefaultPolicy()
		limits := map[string]Bytes{}
		for i, pod := range a.Pods {
			limits[pod.Name] = RequiredLimit(w, LoadsAfter(w, a, g.IntN(len(a.Pods)))[i], policy) + Bytes(g.IntN(2))*MiB
		}
		want := bruteForce(w, a, policy, limits)
		if got := survives(w, a, policy, limits); got != want {
			t.Errorf("tolerates %d, brute force has %d", got, want)
		}
	})
}

// bruteForce tries all sets of failed pods, smallest first, and judges each survivor by its load after this very set.
func bruteForce(w Workload, a Assignment, policy Policy, limits map[string]Bytes) int {
	survived := -1
	for failures := range len(a.Pods) {
		for set := range 1 << len(a.Pods) {
			if failed := failedIn(set, len(a.Pods)); len(failed) == failures && !holds(w, a, policy, limits, failed) {
				return survived
			}
		}
		survived = failures
	}
	return survived
}

// failedIn are the indexes of the bits that are set.
func failedIn(set, pods int) map[int]bool {
	failed := map[int]bool{}
	for i := range pods {
		if set>>i&1 == 1 {
			failed[i] = true
		}
	}
	return failed
}

// holds reports whether each survivor of a set of failures fits its limit.
func holds(w Workload, a Assignment, policy Policy, limits map[string]Bytes, failed map[int]bool) bool {
	for i, pod := range a.Pods {
		if failed[i] {
			continue
		}
		if !PlanFor(w, loadWithout(w, a, i, failed), policy, limits[pod.Name]).Fits() {
			return false
		}
	}
	return true
}

// loadWithout has the rules of the load bounds again, for one set of failed pods, groups without standbys and equal threads.
func loadWithout(w Workload, a Assignment, i int, failed map[int]bool) Load {
	load := observed(w, a, a.Pods[i].Name)
	active, total := worstWithout(w, a, i, failed)
	if len(union(a.Pods[i])) == 0 && w.Protocol.Value == Classic {
		for j := range a.Pods { // it may have come back with its directory
			if !failed[j] && len(union(a.Pods[j])) > 0 {
				otherActive, otherTotal := worstWithout(w, a, j, failed)
				active, total = max(active, otherActive), max(total, otherTotal)
			}
		}
	}
	load.Active = max(load.Active, min(active, w.Tasks()))
	load.Total = max(load.Total, min(total, w.Tasks()))
	for s := range load.Caps {
		load.Caps[s].Active = max(load.Caps[s].Active, min(load.Active, w.Subtopologies[s].Tasks))
		load.Caps[s].Total = max(load.Caps[s].Total, min(load.Total, w.Subtopologies[s].Tasks))
	}
	return load
}

// worstWithout is the number of active tasks, and of all, that a pod with tasks may have.
func worstWithout(w Workload, a Assignment, i int, failed map[int]bool) (active, total int) {
	all, threads := w.Tasks(), w.Threads.Value
	left := threads * (len(a.Pods) - len(failed))
	if w.Protocol.Value == Streams {
		quota := threads * ((all + left - 1) / left)
		return quota, quota
	}
	even, own := (all*threads+left-1)/left, len(union(a.Pods[i]))
	uncovered, stateful, waiting, moving := 0, 0, false, false
	for j := range a.Pods {
		waiting = waiting || len(union(a.Pods[j])) == 0
		moving = moving || len(union(a.Pods[j])) > (all+len(a.Pods)-1)/len(a.Pods)
		for _, task := range union(a.Pods[j]) {
			moving = moving || copiesOf(a, task) > 1
			if failed[j] && (w.StateDir.Persistent || copiesOf(a, task) <= len(failed)) {
				uncovered++
			}
		}
	}
	for _, s := range w.Subtopologies {
		if s.Stateful() {
			stateful += s.Tasks
		}
	}
	if !w.StateDir.Persistent {
		uncovered = min(uncovered, even*max(len(failed), 1))
	}
	more := uncovered
	if waiting || moving && len(failed) > 0 {
		more += min(2*w.WarmUps.Value, stateful, even, all-own)
	}
	if waiting {
		more = max(more, even)
	}
	active = max(own+more, even)
	return active, active + min(w.WarmUps.Value, stateful)
}

// union are the active tasks of both sides of a hand-over.
func union(p Pod) map[string]Task {
	all := map[string]Task{}
	for _, tasks := range [][]Task{p.Current.Active, p.Target.Active} {
		for _, task := range tasks {
			all[fmt.Sprint(task)] = task
		}
	}
	return all
}

// copiesOf counts the pods with a task.
func copiesOf(a Assignment, task Task) int {
	n := 0
	for _, p := range a.Pods {
		if _, ok := union(p)[fmt.Sprint(task)]; ok {
			n++
		}
	}
	return n
}
