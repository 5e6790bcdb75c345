// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "slices"

// group is an indexed assignment. It is computed once, in time n log n of its tasks.
type group struct {
	workload  *Workload
	processes []groupProcess
	// tasks per subtopology, at least the observed ones; the last entry counts tasks of subtopologies that the workload lacks.
	tasks []int
	// total are all tasks, stateful those with stores, unassigned those that no process runs as active.
	total, stateful, unassigned int
	// threads of all processes.
	threads int
	// warming: some task has more copies than the standbys account for, because of a warm-up or a hand-over.
	warming bool
	// placeholders: the tasks of some processes are not known.
	placeholders bool
	// byThreads ranks the processes by threads.
	byThreads ranking
}

// groupProcess is a process of the group.
type groupProcess struct {
	threads int
	// active are the active tasks of both sides of a hand-over, all the tasks of any role; each sorted and without duplicates.
	active, all []taskKey
	// unknown is the number of active tasks that are not known one by one.
	unknown int
	// copies has, for each active task, the number of processes with a copy of it.
	copies []int32
}

// size returns the number of known tasks of all roles.
func (p *groupProcess) size() int { return len(p.all) + p.unknown }

// taskKey is the index of a subtopology and a partition in one number that sorts.
type taskKey uint64

// subtopology returns the index of the task's subtopology.
func (k taskKey) subtopology() int { return int(k >> 32) }

// newGroup indexes an assignment.
func newGroup(w *Workload, a Assignment) *group {
	g := &group{workload: w, tasks: make([]int, len(w.Subtopologies)+1)}
	index := make(map[string]int, len(w.Subtopologies))
	for i := range w.Subtopologies {
		index[w.Subtopologies[i].ID] = i
		g.tasks[i] = clampCount(w.Subtopologies[i].Tasks)
	}
	for _, pod := range podsOfGroup(a) {
		g.processes = append(g.processes, g.processOf(pod, index))
	}
	g.count()
	g.addPlaceholders(len(a.Pods), len(a.Unmatched))
	threads := make([]int, len(g.processes))
	for i := range threads {
		threads[i] = g.processes[i].threads
		g.threads = min(g.threads+threads[i], maxCount)
	}
	g.byThreads = rank(threads)
	return g
}

// podsOfGroup returns the pods of the assignment, or, with unmatched processes, those processes and the pods with tasks. The other pods
// are then the unmatched processes, and must not count twice.
func podsOfGroup(a Assignment) []Pod {
	if len(a.Unmatched) == 0 {
		return a.Pods
	}
	all := slices.Clone(a.Unmatched)
	for _, pod := range a.Pods {
		if pod.Current.Len()+pod.Target.Len() > 0 {
			all = append(all, pod)
		}
	}
	return all
}

// addPlaceholders adds a process for each pod without one: while only the heaviest processes are known, the others may be as heavy.
func (g *group) addPlaceholders(pods, unmatched int) {
	if unmatched == 0 {
		return
	}
	heaviest := groupProcess{}
	for _, p := range g.processes[:unmatched] {
		heaviest.threads = max(heaviest.threads, p.threads)
		heaviest.unknown = max(heaviest.unknown, len(p.active))
	}
	for len(g.processes) < pods {
		g.processes = append(g.processes, heaviest)
		g.placeholders = true
		g.unassigned = 0
	}
}

// processOf indexes one process.
func (g *group) processOf(pod Pod, index map[string]int) groupProcess {
	p := groupProcess{threads: clampCount(pod.Threads)}
	if p.threads == 0 {
		p.threads = max(clampCount(g.workload.Threads.Value), 1)
	}
	p.all = make([]taskKey, 0, pod.Current.Len()+pod.Target.Len())
	add := func(tasks []Task) {
		var last string // tasks usually come grouped by subtopology
		at := -1
		for _, task := range tasks {
			if at < 0 || task.Subtopology != last {
				last = task.Subtopology
				at = len(g.tasks) - 1
				if i, ok := index[task.Subtopology]; ok {
					at = i
				}
			}
			p.all = append(p.all, taskKey(at)<<32|taskKey(uint32(task.Partition)))
		}
	}
	add(pod.Current.Active)
	add(pod.Target.Active)
	p.active = sortedSet(slices.Clone(p.all))
	for _, tasks := range []*Tasks{&pod.Current, &pod.Target} {
		add(tasks.Standby)
		add(tasks.WarmUp)
	}
	p.all = sortedSet(p.all)
	return p
}

// sortedSet sorts keys and removes duplicates, in place.
func sortedSet(keys []taskKey) []taskKey {
	if !slices.IsSorted(keys) {
		slices.Sort(keys)
	}
	return slices.Compact(keys)
}

// count fills the numbers of the whole group: tasks, copies of each, totals.
func (g *group) count() {
	tasks, copies := g.copies()
	active := make([]bool, len(tasks))
	for i := range g.processes {
		p := &g.processes[i]
		p.copies = make([]int32, len(p.active))
		from := 0 // both lists are sorted
		for j, task := range p.active {
			at, _ := slices.BinarySearch(tasks[from:], task)
			from += at
			p.copies[j] = copies[from]
			active[from] = true
		}
	}
	perSubtopology := make([]int, len(g.tasks))
	assigned := 0
	for i, task := range tasks {
		perSubtopology[task.subtopology()]++
		g.warming = g.warming || int(copies[i]) > 1+clampCount(g.workload.Standbys.Value)
		if active[i] {
			assigned++
		}
	}
	for i := range g.tasks {
		g.tasks[i] = max(g.tasks[i], perSubtopology[i])
		g.total += g.tasks[i]
		if i == len(g.tasks)-1 || g.workload.Subtopologies[i].Stateful() {
			g.stateful += g.tasks[i]
		}
	}
	g.total = min(g.total, maxCount)
	g.stateful = min(g.stateful, maxCount)
	g.unassigned = max(g.total-assigned, 0)
}

// copies returns all observed tasks, sorted, and the number of processes with each.
func (g *group) copies() (tasks []taskKey, copies []int32) {
	n := 0
	for i := range g.processes {
		n += len(g.processes[i].all)
	}
	all := make([]taskKey, 0, n)
	for i := range g.processes {
		all = append(all, g.processes[i].all...)
	}
	slices.Sort(all)
	tasks = all[:0]
	copies = make([]int32, 0, n)
	for _, task := range all {
		if len(tasks) == 0 || tasks[len(tasks)-1] != task {
			tasks = append(tasks, task)
			copies = append(copies, 0)
		}
		copies[len(copies)-1]++
	}
	return tasks, copies
}

// empty returns a load without tasks.
func (g *group) empty() Load {
	return Load{Threads: 1, Caps: make([]Cap, len(g.workload.Subtopologies))}
}

// observed returns the present load of a process.
func (g *group) observed(p *groupProcess) Load {
	load := Load{Threads: p.threads, Active: len(p.active), Total: len(p.all), Caps: make([]Cap, len(g.workload.Subtopologies))}
	foreign := Cap{} // tasks of subtopologies that the workload lacks
	capOf := func(task taskKey) *Cap {
		if i := task.subtopology(); i < len(load.Caps) {
			return &load.Caps[i]
		}
		return &foreign
	}
	for _, task := range p.active {
		capOf(task).Active++
	}
	for _, task := range p.all {
		capOf(task).Total++
	}
	for i := range load.Caps { // a foreign task may be like any other
		load.Caps[i].Active += foreign.Active
		load.Caps[i].Total += foreign.Total
	}
	return load
}

// heaviestObserved returns the load that holds the present load of each process.
func (g *group) heaviestObserved() Load {
	load := g.empty()
	for i := range g.processes {
		load = heavier(load, g.observed(&g.processes[i]))
	}
	return load
}

// loadsAfter returns the load of each pod after a number of other pods failed.
func (g *group) loadsAfter(a Assignment, failures int) []Load {
	b := g.bounds(failures)
	if len(a.Unmatched) > 0 {
		return slices.Repeat([]Load{b.heaviest()}, len(a.Pods))
	}
	loads := make([]Load, len(a.Pods))
	for i := range loads {
		loads[i] = b.load(i)
	}
	return loads
}
