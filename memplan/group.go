// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "slices"

// group is an assignment made ready to be asked for loads: computed once, in time n log n of its tasks.
type group struct {
	w *Workload
	// rows are the processes of the group.
	rows []row
	// tasks per subtopology, at least those that were seen; the last entry counts tasks of subtopologies that the workload lacks.
	tasks []int
	// all tasks, those with stores, and those that no process runs as active.
	total, stateful, unassigned int
	// threads of all processes.
	threads int
	// warming says that some task has more copies than the standbys account for: a warm-up or a hand-over.
	warming bool
	// standIns says that some rows stand for processes whose tasks are not known.
	standIns bool
	// byThreads has the threads of each row.
	byThreads ranking
}

// row is one process.
type row struct {
	threads int
	// active are its active tasks of both sides of a hand-over, any all its tasks; each sorted and without doubles.
	active, any []taskKey
	// loose is the number of active tasks where the tasks themselves are not known.
	loose int
	// hosts is filled for each active task: how many processes have a copy of it.
	hosts []int32
}

// size is the number of tasks of all roles that the process is known to have.
func (r *row) size() int { return len(r.any) + r.loose }

// taskKey is the index of a subtopology and a partition in one number that sorts.
type taskKey uint64

// subtopology is the index of the task's subtopology.
func (k taskKey) subtopology() int { return int(k >> 32) }

// newGroup indexes an assignment.
func newGroup(w *Workload, a Assignment) *group {
	g := &group{w: w, tasks: make([]int, len(w.Subtopologies)+1)}
	index := make(map[string]int, len(w.Subtopologies))
	for i, s := range w.Subtopologies {
		index[s.ID] = i
		g.tasks[i] = clampCount(s.Tasks)
	}
	for _, pod := range members(a) {
		g.rows = append(g.rows, g.rowOf(pod, index))
	}
	g.count()
	g.fill(len(a.Pods), len(a.Unmatched))
	threads := make([]int, len(g.rows))
	for i := range threads {
		threads[i] = g.rows[i].threads
	}
	g.byThreads = rank(threads)
	return g
}

// members are the processes of the group: the pods, or, where some processes are unmatched, those and the pods that were matched. The
// other pods are then the unmatched processes, and must not count twice.
func members(a Assignment) []Pod {
	if len(a.Unmatched) == 0 {
		return a.Pods
	}
	all := slices.Clone(a.Unmatched)
	for _, pod := range a.Pods {
		if pod.Current.size()+pod.Target.size() > 0 {
			all = append(all, pod)
		}
	}
	return all
}

// fill adds a row for each pod that has none: while only the heaviest processes are known, the others may be as heavy.
func (g *group) fill(pods, unmatched int) {
	if unmatched > 0 {
		heaviest := row{}
		for _, r := range g.rows[:unmatched] {
			heaviest.threads, heaviest.loose = max(heaviest.threads, r.threads), max(heaviest.loose, len(r.active))
		}
		for len(g.rows) < pods {
			g.rows, g.standIns, g.unassigned = append(g.rows, heaviest), true, 0
		}
	}
	for i := range g.rows {
		g.threads = min(g.threads+g.rows[i].threads, maxCount)
	}
}

// size is the number of tasks of all roles.
func (t Tasks) size() int { return len(t.Active) + len(t.Standby) + len(t.WarmUp) }

// rowOf indexes one process.
func (g *group) rowOf(pod Pod, index map[string]int) row {
	r := row{threads: clampCount(pod.Threads)}
	if r.threads == 0 {
		r.threads = max(clampCount(g.w.Threads.Value), 1)
	}
	r.any = make([]taskKey, 0, pod.Current.size()+pod.Target.size())
	keys := func(to []taskKey, tasks []Task) []taskKey {
		last, at := "", -1 // tasks come grouped by subtopology as a rule
		for _, t := range tasks {
			if at < 0 || t.Subtopology != last {
				last, at = t.Subtopology, len(g.tasks)-1
				if i, ok := index[t.Subtopology]; ok {
					at = i
				}
			}
			to = append(to, taskKey(at)<<32|taskKey(uint32(t.Partition)))
		}
		return to
	}
	r.any = keys(keys(r.any, pod.Current.Active), pod.Target.Active)
	r.active = sortedSet(slices.Clone(r.any))
	for _, side := range []*Tasks{&pod.Current, &pod.Target} {
		r.any = keys(keys(r.any, side.Standby), side.WarmUp)
	}
	r.any = sortedSet(r.any)
	return r
}

// sortedSet sorts keys and removes doubles, in place.
func sortedSet(keys []taskKey) []taskKey {
	if !slices.IsSorted(keys) {
		slices.Sort(keys)
	}
	return slices.Compact(keys)
}

// count fills what concerns the whole group: tasks seen, copies of each, totals.
func (g *group) count() {
	seen, copies := g.copies()
	active := make([]bool, len(seen))
	for i := range g.rows {
		r := &g.rows[i]
		r.hosts = make([]int32, len(r.active))
		from := 0 // both lists are sorted
		for j, k := range r.active {
			at, _ := slices.BinarySearch(seen[from:], k)
			from += at
			r.hosts[j], active[from] = copies[from], true
		}
	}
	perSubtopology, assigned := make([]int, len(g.tasks)), 0
	for i, k := range seen {
		perSubtopology[k.subtopology()]++
		g.warming = g.warming || int(copies[i]) > 1+clampCount(g.w.Standbys.Value)
		if active[i] {
			assigned++
		}
	}
	for i := range g.tasks {
		g.tasks[i] = max(g.tasks[i], perSubtopology[i])
		g.total += g.tasks[i]
		if i == len(g.tasks)-1 || g.w.Subtopologies[i].Stateful() {
			g.stateful += g.tasks[i]
		}
	}
	g.total, g.stateful = min(g.total, maxCount), min(g.stateful, maxCount)
	g.unassigned = max(g.total-assigned, 0)
}

// copies are all tasks that were seen, sorted, and how many processes have each.
func (g *group) copies() (seen []taskKey, copies []int32) {
	n := 0
	for i := range g.rows {
		n += len(g.rows[i].any)
	}
	all := make([]taskKey, 0, n)
	for i := range g.rows {
		all = append(all, g.rows[i].any...)
	}
	slices.Sort(all)
	seen, copies = all[:0], make([]int32, 0, n)
	for _, k := range all {
		if len(seen) == 0 || seen[len(seen)-1] != k {
			seen, copies = append(seen, k), append(copies, 0)
		}
		copies[len(copies)-1]++
	}
	return seen, copies
}

// find is the row of a pod, -1 if the assignment has no such pod. With unmatched processes it is only a sign that the pod exists.
func (g *group) find(a Assignment, pod string) int {
	return slices.IndexFunc(a.Pods, func(p Pod) bool { return p.Name == pod })
}

// empty is the load of nothing.
func (g *group) empty() Load { return Load{Threads: 1, Caps: make([]Cap, len(g.w.Subtopologies))} }

// observed is what a process runs now.
func (g *group) observed(r *row) Load {
	load := Load{Threads: r.threads, Active: len(r.active), Total: len(r.any), Caps: make([]Cap, len(g.w.Subtopologies))}
	unknown := Cap{}
	g.countInto(load.Caps, &unknown, r)
	for i := range load.Caps { // a task of a subtopology that the workload lacks may be like any other
		load.Caps[i].Active += unknown.Active
		load.Caps[i].Total += unknown.Total
	}
	return load
}

// heaviestObserved is the load that holds what each process runs now.
func (g *group) heaviestObserved() Load {
	load := g.empty()
	for r := range g.rows {
		load = heavier(load, g.observed(&g.rows[r]))
	}
	return load
}

// countInto counts the tasks of a process by subtopology.
func (g *group) countInto(caps []Cap, unknown *Cap, r *row) {
	at := func(k taskKey) *Cap {
		if i := k.subtopology(); i < len(caps) {
			return &caps[i]
		}
		return unknown
	}
	for _, k := range r.active {
		at(k).Active++
	}
	for _, k := range r.any {
		at(k).Total++
	}
}

// loadsAfter is the load of each pod after any losses others are lost.
func (g *group) loadsAfter(a Assignment, losses int) []Load {
	loads := make([]Load, len(a.Pods))
	if len(a.Unmatched) > 0 {
		heaviest := g.heaviest(losses)
		for i := range loads {
			loads[i] = heaviest
		}
		return loads
	}
	b := g.bounds(losses)
	for i := range loads {
		loads[i] = b.load(i)
	}
	return loads
}

// after is the load of one process after any losses others are lost.
func (g *group) after(i, losses int) Load { return g.bounds(losses).load(i) }

// heaviest is the load that holds for every process.
func (g *group) heaviest(losses int) Load {
	b := g.bounds(losses)
	load := g.empty()
	for i := range g.rows {
		load = heavier(load, b.load(i))
	}
	return load
}
