// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// podTasks is a report of a pod with these tasks; those after "standby" are standbys.
func podTasks(pod string, ids ...string) report.PodReport {
	thread := report.Thread{}
	role := report.RoleActive
	for _, id := range ids {
		if id == "standby" {
			role = report.RoleStandby
			continue
		}
		thread.Tasks = append(thread.Tasks, report.Task{ID: id, Role: role})
	}
	return report.PodReport{Pod: pod, Report: &report.Report{Clients: []report.Client{{ApplicationID: "orders", Threads: []report.Thread{thread}}}}}
}

func TestConfirmedTasks(t *testing.T) {
	cases := map[string]struct {
		reports []report.PodReport
		known   knownTasks
		// dropped are the tasks that are not confirmed, with their pod.
		dropped []string
	}{
		"one pod":                           {[]report.PodReport{podTasks("a", "0_0", "0_99999")}, nil, nil},
		"the others have no tasks":          {[]report.PodReport{podTasks("a", "0_0", "0_99999"), podTasks("b"), {Pod: "c"}}, nil, nil},
		"even":                              {[]report.PodReport{podTasks("a", "0_0", "0_1"), podTasks("b", "0_2", "0_3")}, nil, nil},
		"uneven by one":                     {[]report.PodReport{podTasks("a", "0_0"), podTasks("b", "0_1", "0_2")}, nil, nil},
		"uneven by two":                     {[]report.PodReport{podTasks("a", "0_0"), podTasks("b", "0_1", "0_2", "0_3")}, nil, []string{"b 0_3"}},
		"uneven by two, but known":          {[]report.PodReport{podTasks("a", "0_0"), podTasks("b", "0_1", "0_2", "0_3")}, knownTasks{{"orders", "0"}: 4}, nil},
		"uneven by two, of another's range": {[]report.PodReport{podTasks("a", "0_3"), podTasks("b", "0_0", "0_1", "0_2")}, nil, nil},
		"each subtopology in one pod":       {[]report.PodReport{podTasks("a", "0_0", "0_1", "0_2"), podTasks("b", "1_0", "1_1", "1_2")}, nil, nil},
		"far away":                          {[]report.PodReport{podTasks("a", "0_0", "0_99999"), podTasks("b", "0_1", "0_2")}, nil, []string{"a 0_99999"}},
		"far away in two pods":              {[]report.PodReport{podTasks("a", "0_0", "0_99998"), podTasks("b", "0_99999", "0_2")}, nil, nil},
		"far away, confirmed by a standby":  {[]report.PodReport{podTasks("a", "0_0", "0_99999"), podTasks("b", "0_1", "standby", "0_99999")}, nil, nil},
		"many subtopologies": {
			[]report.PodReport{podTasks("a", "0_0", "1_0", "2_0", "3_0", "4_0"), podTasks("b", "0_1", "0_2")}, nil, []string{"a 3_0", "a 4_0"},
		},
		"active in two pods": {[]report.PodReport{podTasks("a", "0_0", "0_1", "0_2"), podTasks("b", "0_1", "0_3")}, nil, []string{"a 0_1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", c.reports[0].Report)
			confirmed, unconfirmed := confirmedReports(c.reports, c.known)
			if after := fmt.Sprintf("%+v", c.reports[0].Report); after != before {
				t.Errorf("the report was changed: %s, before %s", after, before)
			}
			var dropped []string
			for i := range c.reports {
				kept := map[string]bool{}
				for _, task := range tasksOfReport(confirmed[i].Report) {
					kept[task.id()] = true
				}
				for _, task := range tasksOfReport(c.reports[i].Report) {
					if !kept[task.id()] {
						dropped = append(dropped, c.reports[i].Pod+" "+task.id())
					}
				}
			}
			wantNoDiff(t, "dropped tasks", c.dropped, dropped)
			want := ""
			if len(c.dropped) > 0 {
				pod, task, _ := strings.Cut(c.dropped[0], " ")
				want = fmt.Sprintf("the report of pod %s alone (task %s)", pod, task)
			}
			if unconfirmed != want {
				t.Errorf("unconfirmed = %q, want %q", unconfirmed, want)
			}
		})
	}
}

// claiming returns the reports of three pods with four tasks each, of which some pods report further tasks.
func claiming(further map[string][]string) map[string]report.PodReport {
	reports := manyReports(4)
	for pod, ids := range further {
		thread := &reports[pod].Report.Clients[0].Threads[0]
		for _, id := range ids {
			thread.Tasks = append(thread.Tasks, report.Task{ID: id, Role: report.RoleActive, Stores: []report.Store{{Name: "totals", Scope: "rocksdb-state"}}})
		}
	}
	return reports
}

// TestOneReportRaisesLimitsByOneStep: a report that is false moves nothing for good, and growth that others confirm is not limited.
func TestOneReportRaisesLimitsByOneStep(t *testing.T) {
	honest := reported()
	honest.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "64Gi"))
	honest = honest.after(t).after(t)
	limit := honest.decide(t).Plan.Limit
	var all, many []string
	for i := range 12 {
		all = append(all, fmt.Sprintf("0_%d", i))
	}
	for i := range 5_000 {
		many = append(many, fmt.Sprintf("0_%d", 12+i))
	}
	withKafka := honest
	withKafka.group = groupOf(334, 333, 333)
	restarted := honest
	restarted.known = nil
	cases := map[string]struct {
		input     fixture
		further   map[string][]string
		confirmed bool
	}{
		"a partition far away":                        {honest, map[string][]string{"orders-0": {"0_99999"}}, false},
		"the same, after a restart of the operator":   {restarted, map[string][]string{"orders-0": {"0_99999"}}, false},
		"all tasks of the others":                     {honest, map[string][]string{"orders-0": all[4:]}, false},
		"thousands of tasks":                          {honest, map[string][]string{"orders-0": many}, false},
		"subtopologies that no other pod has":         {honest, map[string][]string{"orders-0": {"1_0", "2_0", "3_0", "4_0", "5_0", "6_0"}}, false},
		"partitions that another pod reports as well": {honest, map[string][]string{"orders-0": {"0_998"}, "orders-1": {"0_999"}}, true},
		"partitions that Kafka shows as well":         {withKafka, map[string][]string{"orders-0": {"0_999"}}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := c.input
			f.reports = claiming(c.further)
			d := f.decide(t)
			grown := d.Plan.Limit > limit/100*(100+stepPercent)
			if grown != c.confirmed {
				t.Errorf("limit %s after %s; want more than a step: %v", bytesText(d.Plan.Limit), bytesText(limit), c.confirmed)
			}
			if c.confirmed {
				return
			}
			for range 3 { // no pass starts from the step of an earlier one
				for _, r := range d.Resizes {
					if r.To > limit/100*(100+stepPercent) {
						t.Errorf("%s is raised to %s", r.Pod, bytesText(r.To))
					}
				}
				f.pods = carriedOut(f.pods, d)
				if d.Injection != nil {
					f = f.after(t)
				}
				f.volatile = d.Memory.Volatile
				d = f.decide(t)
				if d.Plan.Limit > limit/100*(100+stepPercent) {
					t.Errorf("a later pass has the limit %s", bytesText(d.Plan.Limit))
				}
			}
			f.reports = manyReports(4)
			if d := f.decide(t); d.Plan.Limit != limit || d.Frozen.Found() || *d.Memory.Tasks != 12 {
				t.Errorf("after the correct report: limit %s, %d tasks, frozen %+v; want %s", bytesText(d.Plan.Limit), *d.Memory.Tasks, d.Frozen, bytesText(limit))
			}
		})
	}
}

func TestUnconfirmedTasksAreReported(t *testing.T) {
	f := settledFixture(t)
	f.reports = claiming(map[string][]string{"orders-0": {"0_99999"}})
	d := f.decide(t)
	safe := judge(d, d.outcome())[v1alpha1.ConditionCascadeSafe]
	if safe.status != metav1.ConditionFalse || safe.reason != v1alpha1.ReasonCapped ||
		!strings.Contains(safe.message, "but the report of pod orders-0 alone (task 0_99999) allows at most ") {
		t.Errorf("CascadeSafe = %+v", safe)
	}
}

// TestGrowthIsConfirmedByTheOtherPods: all pods report more tasks, as after a rollout with more partitions.
func TestGrowthIsConfirmedByTheOtherPods(t *testing.T) {
	f := reported()
	f.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "64Gi"))
	f = f.after(t)
	f.reports = manyReports(40)
	d := f.decide(t)
	if d.Plan.Capped != "" || d.Plan.Limit < d.Plan.Required || *d.Memory.Tasks != 120 {
		t.Errorf("limit %s, required %s, capped by %q, %d tasks", bytesText(d.Plan.Limit), bytesText(d.Plan.Required), d.Plan.Capped, *d.Memory.Tasks)
	}
	wantNoDiff(t, "known tasks", []assignment.Subtopology{{ID: "0", Tasks: 120}}, []assignment.Subtopology{{
		ID: d.Memory.Assignment.Topology.Subtopologies[0].ID, Tasks: d.Memory.Assignment.Topology.Subtopologies[0].Tasks,
	}})
}
