// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"slices"
)

// probingRebalancesOnDisk is the number of probing rebalances whose moves may still have a task directory. The directory of a task that
// moved away is deleted when it is older than state.cleanup.delay.ms, and directories are checked once in that time
// (StateDirectory.cleanRemovedTasks). That is up to twice its default of 10 minutes. probing.rebalance.interval.ms has the same default.
const probingRebalancesOnDisk = 2

// bounds has the loads of a group after a number of pod failures. The bounds were checked against the decisions of the assignors of Kafka
// 4.4.0 in random histories (test/calibration/assignors): 12,000 histories for each assignor, with 760,000 loads. 43 loads were above the
// bound, by one to three tasks, all of the high-availability assignor: after a failure some minutes after tasks had moved, with nothing
// left to move; while a standby that counts as caught up was still restoring; or after a thread had been replaced.
type bounds struct {
	group    *group
	failures int
	// standbys is the number of standby replicas that the survivors can hold: one process never has two copies of a task.
	standbys int
	// uncovered ranks the processes by the tasks without a caught-up copy after their failure, copies by all their tasks.
	uncovered, copies ranking
	// waiting: a process has no tasks yet, so the group is about to rebalance. moving: tasks move, or moved a moment ago.
	waiting, moving bool
	// heaviestActive and heaviestTotal are the bounds of the heaviest process with tasks. They are set where a process waits.
	heaviestActive, heaviestTotal int
}

// bounds prepares the loads after a number of pod failures.
func (g *group) bounds(failures int) *bounds {
	processes := len(g.processes)
	b := &bounds{group: g, failures: min(max(failures, 0), max(processes-1, 0))}
	survivors := max(processes-b.failures, 1)
	b.standbys = min(clampCount(g.workload.Standbys.Value), survivors-1)
	if g.workload.Protocol.Value != Classic {
		return b
	}
	uncovered := make([]int, processes)
	copies := make([]int, processes)
	for i := range g.processes {
		uncovered[i] = b.uncoveredOf(&g.processes[i])
		copies[i] = g.processes[i].size()
		b.waiting = b.waiting || copies[i] == 0
	}
	b.uncovered = rank(uncovered)
	b.copies = rank(copies)
	b.moving = b.waiting || g.placeholders || g.warming || g.unassigned > 0 || b.missing() > 0 || g.uneven()
	for i := range g.processes {
		if b.waiting && copies[i] > 0 {
			active, total := b.classic(&g.processes[i], i)
			b.heaviestActive = max(b.heaviestActive, active)
			b.heaviestTotal = max(b.heaviestTotal, total)
		}
	}
	return b
}

// uncoveredOf returns the number of active tasks of a process that may go to any survivor when it fails: those whose copies can all be
// on failed processes. A persistent directory may hold an old copy of any task, so there all tasks count. A standby on a survivor counts as
// caught up.
func (b *bounds) uncoveredOf(p *groupProcess) int {
	if b.failures == 0 {
		return 0
	}
	if b.group.workload.StateDir.Persistent || b.group.placeholders {
		return len(p.active) + p.unknown
	}
	uncovered := 0
	for _, copies := range p.copies {
		if int(copies) <= b.failures {
			uncovered++
		}
	}
	return uncovered
}

// load returns the bound of one process.
func (b *bounds) load(i int) Load {
	p := &b.group.processes[i]
	load := b.group.observed(p)
	active, total := b.worst(p, i)
	load.Active = max(load.Active, min(active, b.group.total))
	load.Total = max(load.Total, min(total, b.group.total), load.Active)
	foreign := b.group.tasks[len(b.group.tasks)-1]
	for s := range load.Caps { // the tasks of one subtopology may all be on one process
		bound := &load.Caps[s]
		tasks := b.group.tasks[s] + foreign
		bound.Active = max(bound.Active, min(tasks, load.Active))
		bound.Total = max(bound.Total, min(tasks, load.Total))
	}
	return load
}

// heaviest returns the load that holds for every process.
func (b *bounds) heaviest() Load {
	load := b.group.empty()
	for i := range b.group.processes {
		load = heavier(load, b.load(i))
	}
	return load
}

// worst returns the bound by protocol. With the classic protocol a process without tasks may have returned with its directory, and get
// its former tasks again. They are not known, so the bound of the heaviest other process counts.
func (b *bounds) worst(p *groupProcess, i int) (active, total int) {
	if b.group.workload.Protocol.Value != Classic {
		return b.streams(p, i)
	}
	active, total = b.classic(p, i)
	if p.size() == 0 {
		active = max(active, b.heaviestActive)
		total = max(total, b.heaviestTotal)
	}
	return active, total
}

// streams returns the bound of the streams protocol. The broker's sticky assignor has a quota for each member, which is a thread, so pods
// that start one by one can stay at 10, 5 and 5 of 20 tasks (tried with the assignor of 4.4.0). It has no warm-ups.
//
// A standby goes to the least loaded process without a copy of the task when its former hosts have filled their quota. Only as many
// processes have a copy as there are standbys. So a process takes no more standbys than it takes to reach the load of all but that many
// others: those count as failed in the share of all copies, the largest first.
//
// For example, 12 tasks with one standby each, on pods of 1, 5, 5 and 3 threads, after 2 failures:
//
//	pod of 1 thread   threads left                     bound
//	active            14 - 5 - 5 = 4                   1 x ceil(12 / 4) = 3
//	total             14 - 5 - 5 - 3 = 1               1 x ceil((12 + 12) / 1) = 24, and no more than all 12 tasks
//
//	pod of 3 threads
//	active            14 - 5 - 5 = 4                   3 x ceil(12 / 4) = 9
//	total             14 - 5 - 5 - 1 = 3               3 x ceil((12 + 12) / 3) = 24, and no more than all 12 tasks
func (b *bounds) streams(p *groupProcess, i int) (active, total int) {
	copies := min(b.group.total+min(b.standbys*b.group.stateful, maxCount), maxCount)
	active = p.threads * ceilDiv(b.group.total, b.threadsLeft(i, b.failures))
	total = p.threads * ceilDiv(copies, b.threadsLeft(i, b.failures+b.standbys))
	return active, total
}

// classic returns the bound of the high-availability assignor; the sticky assignor stays within it.
//
// An active task stays on, or goes to, the most caught-up process, however far behind that is. So every task of which a process has a
// copy may become active on it. Uncovered tasks may come too, and tasks that return to an old directory. The even share is always
// possible. When a new process makes the group rebalance, all of an even share may return on top of the tasks that stay.
//
// Standbys are assigned to the least loaded process, as by the broker. Where no process has a copy of a task, all new standbys may go to
// the same process, the one with the smallest process id (TaskMovement.mostCaughtUpEligibleClient). Warm-ups come on top.
//
// For example, on pods of 1 thread, with 2 warm-ups:
//
//	24 tasks, 3 pods of 8 tasks, no standbys, 1 failure
//	  even share     ceil(24 / 2) = 12
//	  active         8 own + 8 uncovered = 16
//	  total          16 + 2 warm-ups = 18
//
//	24 tasks, pods of 12, 12 and no tasks, no standbys, no failure: one pod waits, so the group rebalances
//	  even share     ceil(24 / 3) = 8
//	  active         12 own + 8 returning = 20
//	  total          20 + 2 warm-ups = 22
//
//	100 tasks, 10 pods of 10 active tasks and 10 standbys, 1 failure
//	  even share     ceil(100 / 9) = 12
//	  active         10 + 10 standbys that become active = 20, none uncovered
//	  standbys       ceil(100 / 8) + 1 = 14; but the 20 copies of the failed pod may all be made again here
//	  total          20 + max(14, 20) + 2 warm-ups = 42
func (b *bounds) classic(p *groupProcess, i int) (active, total int) {
	even := ceilDiv(b.group.total*p.threads, b.threadsLeft(i, b.failures))
	more := b.reassigned(i, even) + b.returning(p, even)
	if b.waiting {
		more = max(more, even)
	}
	active = max(len(p.all)+more, even)
	total = active + b.standbyShare(p, i)
	if b.failures == 0 && !b.moving { // reassigned standbys do not come on top of those that stay
		total = max(active, even+b.standbyShare(p, i))
	}
	if b.group.workload.Standbys.Value > 0 {
		total = max(total, len(p.all)+b.copies.largest(b.failures, i)+max(b.missing(), 0))
	}
	return active, total + min(clampCount(b.group.workload.WarmUps.Value), b.group.stateful)
}

// reassigned returns the number of tasks that no survivor runs and that may go to process i. They are assigned evenly, for each failure
// again, since failures may come one by one. But a directory that outlived an earlier pod may hold any of the uncovered tasks.
func (b *bounds) reassigned(i, even int) int {
	uncovered := b.uncovered.largest(b.failures, i)
	if b.group.workload.StateDir.Persistent {
		return uncovered + min(b.group.unassigned, even)
	}
	return min(uncovered+b.group.unassigned, even*max(b.failures, 1))
}

// returning returns the number of tasks of running processes that may return to a process, because it had them a short while ago and its
// directory counts as caught up. A probing rebalance moves no more tasks than there are warm-ups. While processes neither leave nor join,
// the assignor has the same goal in each rebalance (assignActiveStatefulTasks assigns tasks by process id), so nothing returns. Where all
// loads are even, tasks have not moved lately, or all at once.
func (b *bounds) returning(p *groupProcess, even int) int {
	steady := b.failures == 0 && !b.waiting
	if !b.moving || steady {
		return 0
	}
	moved := min(clampCount(b.group.workload.WarmUps.Value)*probingRebalancesOnDisk, b.group.stateful)
	elsewhere := max(b.group.total-b.group.unassigned-len(p.active), 0)
	return min(moved, elsewhere, even)
}

// uneven reports whether a process runs more than its share of the active tasks, as while others warm up.
func (g *group) uneven() bool {
	return slices.ContainsFunc(g.processes, func(p groupProcess) bool {
		return len(p.active) > ceilDiv(g.total*p.threads, max(g.threads, 1))
	})
}

// standbyShare returns the number of standby tasks that may go to a process: see streams. It has one more, since actives and standbys
// each leave a remainder.
func (b *bounds) standbyShare(p *groupProcess, i int) int {
	if b.standbys == 0 {
		return 0
	}
	standbys := min(b.standbys*b.group.stateful, maxCount)
	return min(ceilDiv(standbys*p.threads, b.threadsLeft(i, b.failures+b.standbys))+1, b.group.stateful)
}

// missing returns the number of copies that the group is to have and no process has yet. It may be negative while tasks warm up.
func (b *bounds) missing() int {
	if b.group.placeholders {
		return 0
	}
	replicas := min(clampCount(b.group.workload.Standbys.Value), max(len(b.group.processes)-1, 0))
	return b.group.total + min(replicas*b.group.stateful, maxCount) - b.copies.sum
}

// threadsLeft returns the smallest number of threads of the group, with process i in it, without so many others.
func (b *bounds) threadsLeft(i, others int) int {
	return max(b.group.threads-b.group.byThreads.largest(others, i), 1)
}

// ranking orders processes by a number.
type ranking struct {
	// of has the number of each process, order the processes, largest number first.
	of, order []int
	sum       int
}

// rank orders processes by a number.
func rank(of []int) ranking {
	r := ranking{of: of, order: make([]int, len(of))}
	for i, n := range of {
		r.order[i] = i
		r.sum += n
	}
	slices.SortFunc(r.order, func(x, y int) int { return cmp.Compare(of[y], of[x]) })
	return r
}

// largest returns the sum of the n largest numbers, without that of one process.
func (r ranking) largest(n, except int) int {
	sum := 0
	for _, i := range r.order {
		if n == 0 {
			break
		}
		if i != except {
			sum += r.of[i]
			n--
		}
	}
	return sum
}

// ceilDiv divides and rounds up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }
