// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/assignment"
)

// A report is untrusted, so one report alone must not move the limits of all pods by more than a step. The tasks of a pod are confirmed as
// follows:
//
//   - the tasks of a subtopology are numbered from 0 without gaps, so a task of another pod confirms all tasks before it;
//   - so do the last known tasks of the application, and a stable Kafka group;
//   - assignors give the pods about as many tasks each, so a pod may have as many tasks as any other pod, and a quarter more;
//   - an active task is in one pod at a time, so of several pods that report it only the one with the fewest tasks counts.
//
// If no other pod has reported tasks, there is nothing to compare with, and all tasks count. Otherwise limits exceed those for the confirmed
// tasks by stepPercent at most. If a pod then does not hold the tasks that it reports, the pass is frozen as with any other limit that is too
// small.

// stepPercent is how much one report alone may raise a limit.
const stepPercent = 25

// taskSet names the tasks of a subtopology.
type taskSet struct{ application, subtopology string }

// knownTasks holds the numbers of tasks that need no confirmation.
type knownTasks map[taskSet]int32

// knownTasksOf returns the tasks that an earlier pass or a stable Kafka group shows.
func knownTasksOf(applicationID string, seen []assignment.Subtopology, kafka *assignment.Group) knownTasks {
	known := knownTasks{}
	if kafka != nil && kafka.Stable && kafka.ApplicationID == applicationID {
		seen = slices.Concat(seen, kafka.Subtopologies)
	}
	for _, s := range seen {
		set := taskSet{applicationID, s.ID}
		known[set] = max(known[set], s.Tasks)
	}
	return known
}

// reportedTask is a task in the report of a pod.
type reportedTask struct {
	taskSet
	partition int32
	// client and thread are the indexes of the thread that runs it, index is its place there.
	client, thread, index int
	active                bool
}

// id returns the name of the task in Kafka Streams.
func (t reportedTask) id() string { return fmt.Sprintf("%s_%d", t.subtopology, t.partition) }

// activeTask is an active task of any pod.
type activeTask struct {
	taskSet
	partition int32
}

// confirmation holds the tasks of all reports.
type confirmation struct {
	known knownTasks
	tasks [][]reportedTask // by report
	// first and second are the two largest numbers of tasks that the reports imply for a subtopology, of different reports.
	first, second map[taskSet]impliedTasks
	// runs is the report with the fewest tasks with an active task.
	runs map[activeTask]int
}

// impliedTasks is the number of tasks that a report implies for a subtopology.
type impliedTasks struct {
	report int
	count  int32
}

// confirmedReports returns the reports without the tasks that are not confirmed, and a description of the first such task; empty without one.
func confirmedReports(answers []report.PodReport, known knownTasks) (confirmed []report.PodReport, unconfirmed string) {
	c := confirmationOf(answers, known)
	confirmed = slices.Clone(answers)
	for i := range answers {
		dropped, first := c.unconfirmed(i)
		if len(dropped) > 0 {
			confirmed[i].Report = withoutTasks(answers[i].Report, dropped)
			unconfirmed = cmp.Or(unconfirmed, fmt.Sprintf("the report of pod %s alone (task %s)", answers[i].Pod, first))
		}
	}
	return confirmed, unconfirmed
}

func confirmationOf(answers []report.PodReport, known knownTasks) confirmation {
	c := confirmation{
		known: known, tasks: make([][]reportedTask, len(answers)),
		first: map[taskSet]impliedTasks{}, second: map[taskSet]impliedTasks{}, runs: map[activeTask]int{},
	}
	for i := range answers {
		c.tasks[i] = tasksOfReport(answers[i].Report)
	}
	for i, tasks := range c.tasks {
		implied := map[taskSet]int32{}
		for _, t := range tasks {
			implied[t.taskSet] = max(implied[t.taskSet], t.partition+1)
			key := activeTask{t.taskSet, t.partition}
			if other, taken := c.runs[key]; t.active && (!taken || len(tasks) < len(c.tasks[other])) {
				c.runs[key] = i
			}
		}
		for set, count := range implied {
			switch of := (impliedTasks{i, count}); {
			case count > c.first[set].count:
				c.second[set] = c.first[set]
				c.first[set] = of
			case count > c.second[set].count:
				c.second[set] = of
			}
		}
	}
	return c
}

// unconfirmed returns the tasks of a report that are not confirmed, and the name of the first one.
func (c *confirmation) unconfirmed(index int) (dropped []reportedTask, first string) {
	most := 0
	for i := range c.tasks {
		if i != index {
			most = max(most, len(c.tasks[i]))
		}
	}
	if most == 0 {
		return nil, ""
	}
	room := most + max(1, most/4)
	counted := 0
	for _, t := range c.tasks[index] {
		others := c.first[t.taskSet]
		if others.report == index {
			others = c.second[t.taskSet]
		}
		base := max(others.count, c.known[t.taskSet])
		elsewhere := t.active && c.runs[activeTask{t.taskSet, t.partition}] != index // or on its way there
		plausible := counted < room && int(t.partition) < int(base)+room
		if !elsewhere && (t.partition < base || plausible) {
			counted++
			continue
		}
		dropped = append(dropped, t)
		first = cmp.Or(first, t.id())
	}
	return dropped, first
}

// tasksOfReport returns the tasks of a report, sorted.
func tasksOfReport(r *report.Report) []reportedTask {
	if r == nil {
		return nil
	}
	var tasks []reportedTask
	for i := range r.Clients {
		for j := range r.Clients[i].Threads {
			for k, reported := range r.Clients[i].Threads[j].Tasks {
				subtopology, partition, ok := report.ParseTaskID(reported.ID)
				if !ok {
					continue
				}
				tasks = append(tasks, reportedTask{
					taskSet: taskSet{r.Clients[i].ApplicationID, subtopology}, partition: partition,
					client: i, thread: j, index: k, active: reported.Role != report.RoleStandby,
				})
			}
		}
	}
	slices.SortStableFunc(tasks, func(a, b reportedTask) int {
		return cmp.Or(cmp.Compare(a.application, b.application), cmp.Compare(a.subtopology, b.subtopology), cmp.Compare(a.partition, b.partition))
	})
	return tasks
}

// withoutTasks returns a copy of a report without some tasks.
func withoutTasks(r *report.Report, dropped []reportedTask) *report.Report {
	type place struct{ client, thread int }
	places := map[place]map[int]bool{}
	for _, t := range dropped {
		p := place{t.client, t.thread}
		if places[p] == nil {
			places[p] = map[int]bool{}
		}
		places[p][t.index] = true
	}
	result := *r
	result.Clients = slices.Clone(r.Clients)
	for i := range result.Clients {
		result.Clients[i].Threads = slices.Clone(result.Clients[i].Threads)
	}
	for p, indexes := range places {
		thread := &result.Clients[p.client].Threads[p.thread]
		var kept []report.Task
		for k, t := range thread.Tasks {
			if !indexes[k] {
				kept = append(kept, t)
			}
		}
		thread.Tasks = kept
	}
	return &result
}

// lastKnown returns the tasks that the reports imply if they are no more than the application was last known to have: no growth needs to be
// confirmed then.
func lastKnown(answers []report.PodReport, applicationID string, tasks *int32) knownTasks {
	implied := knownTasks{}
	total := int64(0)
	for _, answer := range answers {
		for _, t := range tasksOfReport(answer.Report) {
			if t.application == applicationID {
				implied[t.taskSet] = max(implied[t.taskSet], t.partition+1)
			}
		}
	}
	for _, count := range implied {
		total += int64(count)
	}
	if tasks == nil || total > int64(*tasks) {
		return nil
	}
	return implied
}

// atLeast returns the larger of two numbers of known tasks.
func (k knownTasks) atLeast(other knownTasks) knownTasks {
	result := maps.Clone(k)
	for set, count := range other {
		result[set] = max(result[set], count)
	}
	return result
}

// stepCap lowers the cap to one step above the limit for the confirmed tasks.
func stepCap(f *Facts, rollout, withdrawn bool) NamespaceCap {
	result := f.Cap
	if f.Reports.Confirmed == nil || !f.Reports.Usable {
		return result
	}
	confirmed := *f
	confirmed.Reports.Group = *f.Reports.Confirmed
	confirmed.Reports.Confirmed = nil
	confirmed.Assignment = assignmentOf(f.Kafka.Latest.Group, &confirmed.Reports, f.Pods, f.Memory.Assignment, f.Now)
	limit := planApplication(&confirmed, rollout, withdrawn).Limit
	result.lower(limit/100*(100+stepPercent), f.Reports.Unconfirmed)
	return result
}
