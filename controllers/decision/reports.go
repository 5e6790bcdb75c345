// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/assignment"
)

// Reports holds the facts from the reports of all pods.
type Reports struct {
	// Group is the application as the reports show it.
	Group assignment.ReportedGroup
	// Usable: the reports describe the whole application, with the known loads of silent pods.
	Usable bool
	// Newest is the report of the process that started last: it has the newest configuration. It is nil without a report, as is Client, the
	// application's client in it.
	Newest *report.Report
	Client *report.Client
	// Confirmed is the group without the tasks that only one report has; nil if there are none. Unconfirmed names the first such task.
	Confirmed   *assignment.ReportedGroup
	Unconfirmed string
}

// startSlack is how much earlier than its container a process may seem to have started: the kubelet reports whole seconds.
const startSlack = 2 * time.Second

// startedBefore returns whether a report is from a process that ran before the container was started.
func startedBefore(r *report.Report, started time.Time) bool {
	return time.UnixMilli(r.Started).Before(started.Add(-startSlack))
}

// suspectedPods returns the running pods whose connection is dead, which is known half a minute before Kubernetes reports their node as lost.
// More than the plan tolerates at once is likely the operator's own network, and then none is suspected.
func suspectedPods(pods []Pod, reports map[string]report.PodReport, tolerated int) map[string]bool {
	silent := map[string]bool{}
	running := runningPods(pods)
	for _, p := range running {
		if p.AgentConfigMap != "" && !reports[string(p.UID)].Gone.IsZero() {
			silent[p.Name] = true
		}
	}
	if len(silent) > min(tolerated, len(running)-1) {
		return nil
	}
	return silent
}

// withReports returns the pods with the facts from their agents, and with the last known facts of silent ones.
func withReports(pods []Pod, reports map[string]report.PodReport, tolerated int, known *KnownAssignment) []Pod {
	suspected := suspectedPods(pods, reports, tolerated)
	all := slices.Clone(pods)
	for i := range all {
		p := &all[i]
		p.Suspected = suspected[p.Name]
		if !p.Running() || p.AgentConfigMap == "" {
			continue
		}
		answer := reports[string(p.UID)]
		p.Report = PodReport{Expected: true, Report: answer.Report, Err: answer.Err, FailingSince: answer.Since}
		if answer.Report != nil && (p.ContainerDown || startedBefore(answer.Report, p.Started)) {
			p.Report.Report = nil
		}
		p.Report.WasNotBounded = p.Report.Report == nil && known.notBounded(p)
	}
	return all
}

// reportsOf derives the application from the pods' reports. As long as its topology is the known one, some pods may be silent: their last loads
// and all subtopologies are known. kafka is the Kafka group, which may be nil.
func reportsOf(pods []Pod, applicationID string, known *KnownAssignment, tasks *int32, kafka *assignment.Group, now time.Time) Reports {
	var answers []report.PodReport
	for _, p := range runningPods(pods) {
		answers = append(answers, report.PodReport{Pod: p.Name, UID: string(p.UID), Report: p.Report.Report, Err: p.Report.Err, Since: p.Report.FailingSince})
	}
	plausible, _ := confirmedReports(answers, nil)
	chosen := assignment.GroupOfReports(plausible, applicationID, nil)
	id := chosen.Group.ApplicationID
	reports := Reports{Newest: newestReport(pods)}
	seen := known.seen(topologyText(clientOf(reports.Newest, id)))
	reports.Group = assignment.GroupOfReports(answers, id, seen)
	reports.Group.Guessed = chosen.Guessed
	confirmed, unconfirmed := confirmedReports(answers, knownTasksOf(id, seen, kafka).atLeast(lastKnown(answers, id, tasks)))
	if unconfirmed != "" {
		reports.Confirmed = new(assignment.GroupOfReports(confirmed, id, seen))
		reports.Unconfirmed = unconfirmed
	}
	group := &reports.Group.Group
	reports.Client = clientOf(reports.Newest, group.ApplicationID)
	complete := reports.Group.Complete() || seen != nil
	if !complete && onlyStartingMissing(pods, reports.Group.Missing, now) {
		complete = hasTasks(group.Subtopologies, tasks)
	}
	reports.Usable = len(group.Processes) > 0 && len(group.Subtopologies) > 0 && complete
	return reports
}

// hasTasks returns whether the subtopologies have as many tasks as the application was last known to have. A missing pod then makes no
// difference.
func hasTasks(subtopologies []assignment.Subtopology, known *int32) bool {
	tasks := int32(0)
	for _, s := range subtopologies {
		tasks += s.Tasks
	}
	return known != nil && tasks >= *known
}

// onlyStartingMissing returns whether all pods without a report have just been started.
func onlyStartingMissing(pods []Pod, missing []string, now time.Time) bool {
	return !slices.ContainsFunc(missing, func(name string) bool {
		p := findPod(pods, name)
		return p != nil && !p.starting(now)
	})
}

// newestReport returns the report of the process that started last; nil without a report.
func newestReport(pods []Pod) *report.Report {
	byUID := slices.SortedFunc(slices.Values(pods), func(a, b Pod) int { return cmp.Compare(a.UID, b.UID) })
	var newest *report.Report
	for i := range byUID {
		p := &byUID[i]
		if r := p.Report.Report; r != nil && (newest == nil || r.Started > newest.Started) {
			newest = r
		}
	}
	return newest
}

// clientOf returns the client of an application in a report; nil if it has none.
func clientOf(r *report.Report, applicationID string) *report.Client {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Clients, func(c report.Client) bool { return c.ApplicationID == applicationID })
	if i < 0 {
		return nil
	}
	return &r.Clients[i]
}

// topologyText returns the description of the topology in a report.
func topologyText(client *report.Client) string {
	if client == nil {
		return ""
	}
	return client.Topology
}

// unreported returns the names of the pods that should have reported by now and have not, and the error of the first one.
func unreported(pods []Pod, now time.Time) ([]string, *report.Error) {
	var names []string
	var first *report.Error
	for i := range pods {
		p := &pods[i]
		r := &p.Report
		reported := r.Report != nil && r.Err == nil
		if !r.Expected || !p.Running() || p.ContainerDown || reported {
			continue
		}
		failedBriefly := r.Report != nil && now.Sub(r.FailingSince) < startingGrace
		justStarted := r.Report == nil && p.starting(now) && !r.Answered()
		if failedBriefly || justStarted {
			continue
		}
		names = append(names, p.Name)
		first = cmp.Or(first, r.Err)
	}
	return names, first
}
