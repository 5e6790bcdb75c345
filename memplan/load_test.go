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

func TestLoadAfter(t *testing.T) {
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
		w      Workload
		a      Assignment
		losses int
		want   Load
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
		"streams: after a loss the survivors share all tasks": {
			w: streams(keyValueApp(12)), a: Assignment{Pods: three(12)}, losses: 1,
			want: onlyCap(1, 6, 6),
		},
		"streams: the last survivor has all tasks": {
			w: streams(keyValueApp(12)), a: Assignment{Pods: three(12)}, losses: 2,
			want: onlyCap(1, 12, 12),
		},
		"streams: more losses than pods count as all others": {
			w: streams(keyValueApp(12)), a: Assignment{Pods: three(12)}, losses: 99,
			want: onlyCap(1, 12, 12),
		},
		"streams: the largest pod is lost first": {
			w: streams(keyValueApp(12)),
			a: Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 2)), activePod("b", 4, tasksOf(2, 10)), activePod("c", 1, tasksOf(10, 12))}}, losses: 1,
			want: onlyCap(1, 6, 6),
		},
		"streams: standbys come on top, and never two copies of a task on one pod": {
			w: standbys(streams(keyValueApp(12)), 1), a: Assignment{Pods: three(12)}, losses: 1,
			want: onlyCap(1, 6, 12),
		},
		"streams: standbys that no survivor is left for do not count": {
			w: standbys(streams(keyValueApp(12)), 2), a: Assignment{Pods: three(12)}, losses: 2,
			want: onlyCap(1, 12, 12),
		},
		"classic: without directories that stay, orphans are dealt out evenly, and warm-ups come on top": {
			w: keyValueApp(24), a: Assignment{Pods: three(24)}, losses: 1,
			want: onlyCap(1, 16, 18), // 8 kept and 8 of the lost: old copies gave 16 with the real assignor
		},
		"classic: without a loss the own tasks stay, and two more may warm up": {
			w: keyValueApp(24), a: Assignment{Pods: three(24)},
			want: onlyCap(1, 8, 10),
		},
		"classic: with persistent directories all orphans may have their best copy here": {
			w: persistent(keyValueApp(24)), losses: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 2)), activePod("b", 1, tasksOf(2, 22)), activePod("c", 1, tasksOf(22, 24))}},
			want: onlyCap(1, 22, 24),
		},
		"classic: a pod is not given what only it has": {
			w: persistent(keyValueApp(24)), losses: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 19)), activePod("b", 1, tasksOf(19, 22)), activePod("c", 1, tasksOf(22, 24))}},
			want: onlyCap(1, 22, 24),
		},
		"classic: without them the even share bounds the orphans": {
			w: keyValueApp(24), losses: 1,
			a:    Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 2)), activePod("b", 1, tasksOf(2, 22)), activePod("c", 1, tasksOf(22, 24))}},
			want: onlyCap(1, 14, 16),
		},
		"classic: a task with a standby elsewhere goes there": {
			w: standbys(keyValueApp(4), 1), losses: 1,
			a: Assignment{Pods: []Pod{
				activePod("a", 1, nil), {Name: "b", Threads: 1, Current: Tasks{Active: tasksOf(0, 4)}}, {Name: "c", Threads: 1, Current: Tasks{Standby: tasksOf(0, 4)}},
			}},
			want: onlyCap(1, 2, 4),
		},
		"classic: what it holds as standby may become active": {
			w: standbys(keyValueApp(6), 1), losses: 1,
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
		"classic: tasks that nobody runs are dealt out evenly": {
			w: keyValueApp(12), a: Assignment{Pods: []Pod{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
			want: onlyCap(1, 4, 6),
		},
		"classic: what nobody runs yet may come on top of what stays": {
			w: keyValueApp(12), a: Assignment{Pods: []Pod{activePod("a", 1, tasksOf(0, 4)), activePod("b", 1, tasksOf(4, 9)), {Name: "c"}}},
			want: onlyCap(1, 7, 9),
		},
		"both sides of a hand-over count in full": {
			w:    streams(keyValueApp(4)),
			a:    Assignment{Pods: []Pod{{Name: "a", Threads: 1, Current: Tasks{Active: tasksOf(0, 2)}, Target: Tasks{Active: tasksOf(1, 4)}}, {Name: "b", Threads: 1}}},
			want: onlyCap(1, 4, 4),
		},
		"where only the heaviest process is known, the others may be as heavy": {
			w: keyValueApp(24), losses: 1,
			a:    Assignment{Pods: []Pod{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Unmatched: []Pod{activePod("process", 1, tasksOf(0, 9))}},
			want: onlyCap(1, 18, 20),
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
		"a pod that is not in the assignment has no load": {
			w: keyValueApp(2), a: Assignment{Pods: []Pod{{Name: "b"}}},
			want: onlyCap(1, 0, 0),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, LoadAfter(c.w, c.a, "a", c.losses)); d != "" {
				t.Errorf("load (-want +got):\n%s", d)
			}
		})
	}
}

func TestSubtopologiesMayLandTogether(t *testing.T) {
	w := keyValueApp(6)
	w.Protocol = Known(Streams, Measured)
	w.Subtopologies = append(w.Subtopologies, Subtopology{ID: "1", Tasks: 2, InputPartitions: 1})
	got := LoadAfter(w, evenly(w, 2, 1), "pod-0", 0)
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
		"all roles, each task once":                       {a: Assignment{Pods: pods}, pod: "a", want: onlyCap(2, 5, 7)},
		"a pod without tasks":                             {a: Assignment{Pods: pods}, pod: "b", want: onlyCap(1, 0, 0)},
		"no such pod":                                     {a: Assignment{Pods: pods}, pod: "z", want: onlyCap(1, 0, 0)},
		"the heaviest process where one has no pod":       {a: Assignment{Pods: pods[1:], Unmatched: pods[:1]}, pod: "b", want: onlyCap(2, 5, 7)},
		"no such pod, even where processes have no pods ": {a: Assignment{Pods: pods[1:], Unmatched: pods[:1]}, pod: "z", want: onlyCap(1, 0, 0)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Observed(w, c.a, c.pod)); d != "" {
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

// need that holds every loss can be told without the planner: the brute force below tries each set of lost pods.
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
			limits[pod.Name] = Need(w, LoadsAfter(w, a, g.IntN(len(a.Pods)))[i], policy) + Bytes(g.IntN(2))*MiB
		}
		want := bruteForce(w, a, policy, limits)
		if got := Survives(w, a, policy, limits); got != want {
			t.Errorf("survives %d, brute force says %d", got, want)
		}
	})
}

// bruteForce tries all sets of lost pods, smallest first, and judges each survivor by the load that this very set gives it.
func bruteForce(w Workload, a Assignment, policy Policy, limits map[string]Bytes) int {
	survived := -1
	for losses := range len(a.Pods) {
		for set := range 1 << len(a.Pods) {
			if lost := lostIn(set, len(a.Pods)); len(lost) == losses && !holds(w, a, policy, limits, lost) {
				return survived
			}
		}
		survived = losses
	}
	return survived
}

// lostIn are the indexes of the bits that are set.
func lostIn(set, pods int) map[int]bool {
	lost := map[int]bool{}
	for i := range pods {
		if set>>i&1 == 1 {
			lost[i] = true
		}
	}
	return lost
}

// holds says whether each survivor of a set of losses fits its limit.
func holds(w Workload, a Assignment, policy Policy, limits map[string]Bytes, lost map[int]bool) bool {
	for i, pod := range a.Pods {
		if lost[i] {
			continue
		}
		if !PlanFor(w, loadLosing(w, a, i, lost), policy, limits[pod.Name]).Fits() {
			return false
		}
	}
	return true
}

// loadLosing states the rules of the load bounds anew, for one set of lost pods, groups without standbys and equal threads.
func loadLosing(w Workload, a Assignment, i int, lost map[int]bool) Load {
	observed := Observed(w, a, a.Pods[i].Name)
	stateful, stateless := 0, 0
	for _, s := range w.Subtopologies {
		if s.Stateful() {
			stateful += s.Tasks
		} else {
			stateless += s.Tasks
		}
	}
	all, threads := stateful+stateless, w.Threads.Value
	left := threads * (len(a.Pods) - len(lost))
	active, total := threads*((all+left-1)/left), threads*((all+left-1)/left)
	if w.Protocol.Value == Classic {
		even := (all*threads + left - 1) / left
		orphans := 0
		for j := range lost {
			for _, task := range union(a.Pods[j]) {
				if w.StateDir.Persistent || copiesOf(a, task) <= len(lost) {
					orphans++
				}
			}
		}
		if !w.StateDir.Persistent {
			orphans = min(orphans, even)
		}
		active = max(len(union(a.Pods[i]))+orphans, even)
		total = active + min(w.WarmUps.Value, stateful)
	}
	load := Load{Threads: threads, Active: max(observed.Active, min(active, all)), Caps: observed.Caps}
	load.Total = max(observed.Total, load.Active, min(total, all))
	for s := range load.Caps {
		load.Caps[s].Active = max(load.Caps[s].Active, min(load.Active, w.Subtopologies[s].Tasks))
		load.Caps[s].Total = max(load.Caps[s].Total, min(load.Total, w.Subtopologies[s].Tasks))
	}
	return load
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

// copiesOf counts the pods that have a task.
func copiesOf(a Assignment, task Task) int {
	n := 0
	for _, p := range a.Pods {
		if _, ok := union(p)[fmt.Sprint(task)]; ok {
			n++
		}
	}
	return n
}
