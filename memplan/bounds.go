// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"slices"
)

// bounds are the loads of a group after a number of losses.
type bounds struct {
	g      *group
	losses int
	// standbys are the standby replicas that the survivors can hold: no two copies of a task on one of them.
	standbys int
	// orphans are, for each process, the tasks that would have no caught-up copy left if it were lost; byOrphans orders the processes,
	// most first.
	orphans   []int
	byOrphans []int
}

// bounds prepares the loads after a number of losses.
func (g *group) bounds(losses int) *bounds {
	b := &bounds{g: g, losses: min(max(losses, 0), max(len(g.rows)-1, 0))}
	survivors := max(len(g.rows)-b.losses, 1)
	b.standbys = min(clampCount(g.w.Standbys.Value), survivors-1)
	if g.w.Protocol.Value != Classic {
		return b
	}
	b.orphans, b.byOrphans = make([]int, len(g.rows)), make([]int, len(g.rows))
	for i := range g.rows {
		b.orphans[i], b.byOrphans[i] = b.orphansOf(&g.rows[i]), i
	}
	slices.SortFunc(b.byOrphans, func(x, y int) int { return cmp.Compare(b.orphans[y], b.orphans[x]) })
	return b
}

// orphansOf counts the active tasks of a process that may go anywhere when it is lost: those whose copies can all be among the losses.
// A persistent directory may hold an old copy of any task, so there all of them may.
func (b *bounds) orphansOf(r *row) int {
	if b.losses == 0 {
		return 0
	}
	if b.g.w.StateDir.Persistent || b.g.standIns {
		return len(r.active) + r.loose
	}
	n := 0
	for _, hosts := range r.hosts {
		if int(hosts) <= b.losses {
			n++
		}
	}
	return n
}

// load is the bound for one process.
func (b *bounds) load(i int) Load {
	r := &b.g.rows[i]
	load := b.g.observed(r)
	active, total := b.streams(r, i)
	if b.g.w.Protocol.Value == Classic {
		active, total = b.classic(r, i)
	}
	load.Active = max(load.Active, min(active, b.g.total))
	load.Total = max(load.Total, min(total, b.g.total), load.Active)
	unknown := b.g.tasks[len(b.g.tasks)-1]
	for s := range load.Caps { // nothing keeps the tasks of one subtopology apart
		c, tasks := &load.Caps[s], b.g.tasks[s]+unknown
		c.Active = max(c.Active, min(tasks, load.Active))
		c.Total = max(c.Total, min(tasks, load.Total))
	}
	return load
}

// streams is the bound of the streams protocol: the broker's sticky assignor has a quota for each member, that is each thread, so
// pods that start one by one can stay at 10, 5 and 5 of 20 (tried with the assignor of 4.4.0). It has no warm-ups.
func (b *bounds) streams(r *row, i int) (active, total int) {
	threads := b.threadsLeft(i)
	return r.threads * ceilDiv(b.g.total, threads), r.threads * ceilDiv(b.copies(), threads)
}

// classic is the bound of the high-availability assignor. An active task stays with, or goes to, the most caught-up instance, however
// far behind that is: so all that a pod has a copy of may become active on it, and so may orphans where an old directory may hold
// them; without one, orphans are dealt out evenly. The balanced share is always possible. Warm-ups come on top.
func (b *bounds) classic(r *row, i int) (active, total int) {
	threads := b.threadsLeft(i)
	even := func(tasks int) int { return ceilDiv(tasks*r.threads, threads) }
	stateless := b.g.total - b.g.stateful
	balanced := even(b.g.total)
	if b.standbys > 0 { // stateless tasks go where the fewest copies are
		balanced = even(b.g.stateful) + min(stateless, even(b.copies()))
	}
	orphans := b.worstOrphans(i)
	if !b.g.w.StateDir.Persistent {
		orphans = min(orphans, balanced)
	}
	kept := len(r.any) + orphans + min(b.g.unassigned, balanced)
	warmUps := min(clampCount(b.g.w.WarmUps.Value), b.g.stateful)
	return max(kept, balanced), max(kept+even(b.copies()-b.g.total), even(b.copies())) + warmUps
}

// copies is the number of tasks of all roles that the survivors hold together.
func (b *bounds) copies() int {
	if b.standbys > 0 && b.g.stateful > maxCount/b.standbys {
		return maxCount
	}
	return min(b.g.total+b.g.stateful*b.standbys, maxCount)
}

// threadsLeft is the least number of threads that the group, with process i in it, has after the losses.
func (b *bounds) threadsLeft(i int) int {
	left, lost := b.g.threads, 0
	for _, j := range b.g.byThreads {
		if lost == b.losses {
			break
		}
		if j != i {
			left -= b.g.rows[j].threads
			lost++
		}
	}
	return max(left, 1)
}

// worstOrphans is the largest number of orphans that the losses can leave to process i.
func (b *bounds) worstOrphans(i int) int {
	sum, lost := 0, 0
	for _, j := range b.byOrphans {
		if lost == b.losses {
			break
		}
		if j != i {
			sum += b.orphans[j]
			lost++
		}
	}
	return sum
}

// ceilDiv divides and rounds up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }
