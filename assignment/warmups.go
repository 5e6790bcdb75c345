// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"math"
	"slices"
)

// splitWarmUps separates warm-ups from standbys in a classic group, where both have the same form. There are warm-ups only before a
// follow-up rebalance. Then a stateful task has num.standby.replicas standbys, or one in each other process if there are fewer, and each
// further copy is a warm-up or one side of a hand-over (HighAvailabilityTaskAssignor, StreamsPartitionAssignor). The task with the fewest
// copies shows the number of standbys. The warm-up of a task is the copy furthest behind: that is why it warms up.
func splitWarmUps(g *Group, members []classicMember) {
	copies := map[Task][]int{} // Indexes of the processes with a copy.
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

// standbysOf returns the number of standbys of each stateful task: the most copies of a task, or the fewest while there are warm-ups.
func standbysOf(g *Group, copies map[Task][]int) int32 {
	if len(copies) == 0 {
		return 0
	}
	fewest := len(g.Processes)
	for _, p := range g.Processes {
		for _, t := range p.Tasks.Active {
			if isStateful(g, t) {
				fewest = min(fewest, len(copies[t]))
			}
		}
	}
	most := 0
	for _, holders := range copies {
		most = max(most, len(holders))
	}
	if g.NextRebalance.IsZero() {
		return int32(most)
	}
	return int32(min(fewest, most))
}

// isStateful returns whether the subtopology of a task is known to have state.
func isStateful(g *Group, t Task) bool {
	return slices.ContainsFunc(g.Subtopologies, func(s Subtopology) bool { return s.ID == t.Subtopology && s.Stateful })
}

// copyOf identifies a copy of a task.
type copyOf struct {
	process string
	task    Task
}

// positionsOf returns the position of each copy at the last join of its process, 0 for a new copy.
func positionsOf(members []classicMember) map[copyOf]int64 {
	positions := map[copyOf]int64{}
	for _, m := range members {
		for _, offset := range m.subscription.Tasks {
			position := offset.Sum
			if position == latestOffset {
				position = math.MaxInt64 // The process had the active task.
			}
			key := copyOf{m.subscription.ProcessID, offset.Task}
			positions[key] = max(positions[key], position)
		}
	}
	return positions
}

// toWarmUp moves a task from the standbys to the warm-ups.
func (t *Tasks) toWarmUp(task Task) {
	t.Standby = slices.DeleteFunc(t.Standby, func(s Task) bool { return s == task })
	if len(t.Standby) == 0 {
		t.Standby = nil
	}
	t.WarmUp = sortTasks(append(t.WarmUp, task))
}
