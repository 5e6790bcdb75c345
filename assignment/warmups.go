// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"math"
	"slices"
)

// splitWarmUps tells warm-ups from standbys in a classic group, where they look the same. Without a follow-up rebalance
// there are no warm-ups. With one, a stateful task has num.standby.replicas standbys, or as many as there are other
// processes, and each copy beyond that is a warm-up or one side of a hand-over (HighAvailabilityTaskAssignor,
// StreamsPartitionAssignor). How many that are shows in the task that has fewest copies. Of a task's copies the warm-up
// is the one furthest behind, as that is why it has to warm up.
func splitWarmUps(g *Group, members []classicMember) {
	copies := map[Task][]int{} // The processes, by index, that have a copy.
	for i, p := range g.Processes {
		for _, t := range p.Tasks.Standby {
			copies[t] = append(copies[t], i)
		}
	}
	standbys := standbysOf(g, copies)
	g.Standbys = &standbys
	if g.NextRebalance.IsZero() {
		return
	}
	positions := positionsOf(members)
	for task, holders := range copies {
		slices.SortStableFunc(holders, func(a, b int) int {
			return cmp.Compare(positions[copyOf{g.Processes[b].ID, task}], positions[copyOf{g.Processes[a].ID, task}])
		})
		for _, i := range holders[min(len(holders), int(standbys)):] {
			g.Processes[i].Tasks.toWarmUp(task)
		}
	}
}

// standbysOf gives the number of standbys that each stateful task has: the most that a task has, or the fewest while
// warm-ups are among them.
func standbysOf(g *Group, copies map[Task][]int) int32 {
	if len(copies) == 0 {
		return 0
	}
	fewest, most := len(g.Processes), 0
	for _, p := range g.Processes {
		for _, t := range p.Tasks.Active {
			if isStateful(g, t) {
				fewest = min(fewest, len(copies[t]))
			}
		}
	}
	for _, holders := range copies {
		most = max(most, len(holders))
	}
	if g.NextRebalance.IsZero() {
		return int32(most)
	}
	return int32(min(fewest, most))
}

// isStateful says whether a task's subtopology is known to have state.
func isStateful(g *Group, t Task) bool {
	return slices.ContainsFunc(g.Subtopologies, func(s Subtopology) bool { return s.ID == t.Subtopology && s.Stateful })
}

// copyOf names a copy of a task.
type copyOf struct {
	process string
	task    Task
}

// positionsOf gives how far each copy of a task was when its process last joined; 0 for one that was not there.
func positionsOf(members []classicMember) map[copyOf]int64 {
	positions := map[copyOf]int64{}
	for _, m := range members {
		for _, o := range m.subscription.Tasks {
			at, sum := copyOf{m.subscription.ProcessID, o.Task}, o.Sum
			if sum == latestOffset {
				sum = math.MaxInt64 // It was active there.
			}
			positions[at] = max(positions[at], sum)
		}
	}
	return positions
}

// toWarmUp moves a task from the standbys to the warm-ups.
func (t *Tasks) toWarmUp(task Task) {
	if t.Standby = slices.DeleteFunc(t.Standby, func(s Task) bool { return s == task }); len(t.Standby) == 0 {
		t.Standby = nil
	}
	t.WarmUp = sortTasks(append(t.WarmUp, task))
}
