// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/assignment"
)

// reportFacts is what a pass knows from the agents in the pods.
type reportFacts struct {
	// pods are the answers, by the pod's UID. A report from before the container's last start is left out of them.
	pods map[string]report.PodReport
	// group is what all reports together say of the application. It is usable if every pod that works has reported.
	group  assignment.ReportedGroup
	usable bool
}

// of gives the report of a pod, nil if there is none.
func (f *reportFacts) of(pod *podFacts) *report.Report { return f.pods[string(pod.uid)].Report }

// newest gives the report of the process that was started last: it has the newest configuration. Nil if there is none.
func (f *reportFacts) newest() *report.Report {
	var newest *report.Report
	for _, uid := range sortedKeys(f.pods) {
		if r := f.pods[uid].Report; r != nil && (newest == nil || r.Started > newest.Started) {
			newest = r
		}
	}
	return newest
}

// client gives the application's client in a report, nil if it has none.
func (f *reportFacts) client(from *report.Report) *report.Client {
	if from == nil {
		return nil
	}
	i := slices.IndexFunc(from.Clients, func(c report.Client) bool { return c.ApplicationID == f.group.Group.ApplicationID })
	if i < 0 {
		return nil
	}
	return &from.Clients[i]
}

// knownTopologies remembers the subtopologies of each application as they were last seen in full, so that one does not seem smaller while
// its tasks move. After a restart of the operator they are unknown until every pod has reported.
type knownTopologies struct {
	mu    sync.Mutex
	byKey map[string]knownTopology
}

type knownTopology struct {
	text          string // of the topology: another one is another application
	subtopologies []assignment.Subtopology
}

func (k *knownTopologies) of(key, text string) []assignment.Subtopology {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.byKey[key]; known.text == text {
		return known.subtopologies
	}
	return nil
}

func (k *knownTopologies) remember(key string, known knownTopology) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil {
		k.byKey = map[string]knownTopology{}
	}
	k.byKey[key] = known
}

func (k *knownTopologies) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}

// observeReports has the pods that carry an agent be asked, and takes what is known of them.
func (r *StreamAppReconciler) observeReports(obs *observation) {
	if r.Reports == nil {
		return
	}
	key := client.ObjectKeyFromObject(obs.app).String()
	endpoints := agentEndpoints(obs.pods)
	if len(endpoints) == 0 {
		r.Reports.Forget(key)
		return
	}
	r.Reports.Track(key, endpoints)
	obs.takeReports(r.Reports.Latest(key), func(text string) []assignment.Subtopology { return r.topologies.of(key, text) })
	if obs.reports.usable {
		r.topologies.remember(key, knownTopology{obs.topologyText(), obs.reports.group.Group.Subtopologies})
	}
}

// agentEndpoints are the pods that can be asked for a report.
func agentEndpoints(pods []podFacts) []reportclient.Endpoint {
	var endpoints []reportclient.Endpoint
	for i := range pods {
		p := &pods[i]
		if p.agent == "" || !p.running() {
			continue
		}
		endpoint := reportclient.Endpoint{Name: p.name, UID: string(p.uid), Started: p.started}
		if len(p.addresses) > 0 {
			endpoint.Address = net.JoinHostPort(p.addresses[0], strconv.Itoa(report.Port))
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints
}

// takeReports takes the pods' answers. known gives the subtopologies of a topology as they were last seen in full.
func (o *observation) takeReports(latest map[string]report.PodReport, known func(text string) []assignment.Subtopology) {
	o.reports.pods = map[string]report.PodReport{}
	o.suspectSilent(latest)
	var answers []report.PodReport
	for i := range o.pods {
		p := &o.pods[i]
		if !p.running() {
			continue
		}
		answer := latest[string(p.uid)]
		answer.Pod, answer.UID = p.name, string(p.uid)
		if answer.Report != nil && (p.down || reportedBefore(answer.Report, p.started)) {
			answer.Report = nil
		}
		if p.agent != "" {
			o.reports.pods[answer.UID] = answer
		}
		answers = append(answers, answer)
	}
	applicationID := o.app.Spec.Kafka.ApplicationID
	o.reports.group = assignment.GroupOfReports(answers, applicationID, nil)
	seen := known(o.topologyText())
	o.reports.group = assignment.GroupOfReports(answers, applicationID, seen)
	group := &o.reports.group.Group
	o.reports.usable = len(group.Processes) > 0 && len(group.Subtopologies) > 0 &&
		(o.reports.group.Complete() || o.onlyStartingMissing() && (seen != nil || o.asManyAsKnown(group.Subtopologies)))
}

// asManyAsKnown tells whether there are as many tasks as the status says that there are: then it does not matter that a pod is missing.
func (o *observation) asManyAsKnown(subtopologies []assignment.Subtopology) bool {
	tasks := 0
	for _, s := range subtopologies {
		tasks += int(s.Tasks)
	}
	return o.app.Status.Tasks != nil && tasks >= int(*o.app.Status.Tasks)
}

// clockSlack is how much earlier than its container a process may seem to have started: the kubelet tells whole seconds.
const clockSlack = 2 * time.Second

// reportedBefore tells whether a report is from a process that ran before the container was started.
func reportedBefore(reported *report.Report, started time.Time) bool {
	return time.UnixMilli(reported.Started).Before(started.Add(-clockSlack))
}

// onlyStartingMissing tells whether the pods that have not reported are only those that have just been started.
func (o *observation) onlyStartingMissing() bool {
	return !slices.ContainsFunc(o.reports.group.Missing, func(name string) bool {
		p := findPod(o.pods, name)
		return p != nil && !p.starting(o.now)
	})
}

// suspectSilent counts pods as lost whose connection is dead, which is known half a minute before Kubernetes knows of their node; as long
// as they are no more than the plan in force covers. More at once is likelier to be the operator's own network.
func (o *observation) suspectSilent(latest map[string]report.PodReport) {
	var silent []*podFacts
	perNode, running := map[string]int{}, 0
	for i := range o.pods {
		p := &o.pods[i]
		if !p.running() {
			continue
		}
		running++
		perNode[p.node]++
		if p.agent != "" && !latest[string(p.uid)].Gone.IsZero() {
			silent = append(silent, p)
		}
	}
	if len(silent) > min(tolerated(perNode, running, o.app.Spec.Memory.SurvivePodLosses), running-1) {
		return
	}
	for _, p := range silent {
		p.suspected = true
	}
}

// topologyText is the description of the topology, as the newest process reports it.
func (o *observation) topologyText() string {
	if c := o.reports.client(o.reports.newest()); c != nil {
		return c.Topology
	}
	return ""
}

// reportsGroup puts what the pods report in the place of what the brokers say, or beside it: the pods know best what they run, the
// brokers how long changelogs keep their records.
func (o *observation) reportsGroup() {
	if !o.reports.usable {
		return
	}
	group := o.reports.group.Group
	group.Stable, group.State = true, "Stable"
	if fromKafka := o.group.latest.Group; fromKafka != nil && fromKafka.ApplicationID == group.ApplicationID {
		mergeGroups(&group, fromKafka)
	}
	o.group.latest.Group = &group
	o.group.match = assignment.Matching{Loads: o.reports.group.Loads}
	for i := range o.pods {
		p := &o.pods[i]
		if p.running() && !slices.ContainsFunc(o.reports.group.Loads, func(l assignment.PodLoad) bool { return l.Pod == p.name }) {
			o.group.match.Pods = append(o.group.match.Pods, assignment.Unmatched{Name: p.name, Why: "it has not reported a task"})
		}
	}
}

// mergeGroups adds to what pods report what only brokers show.
func mergeGroups(group, fromKafka *assignment.Group) {
	if group.Protocol == assignment.Streams {
		group.Standbys = fromKafka.Standbys // a config of the group, on the broker
	}
	group.Brokers = max(group.Brokers, fromKafka.Brokers)
	group.SessionTimeout, group.NextRebalance = fromKafka.SessionTimeout, fromKafka.NextRebalance
	group.Warnings = slices.Concat(group.Warnings, fromKafka.Warnings)
	for _, theirs := range fromKafka.Subtopologies {
		i := slices.IndexFunc(group.Subtopologies, func(s assignment.Subtopology) bool { return s.ID == theirs.ID })
		if i < 0 {
			continue // a task that no pod has reported: it is not sure that there is one
		}
		ours := &group.Subtopologies[i]
		ours.Tasks = max(ours.Tasks, theirs.Tasks)
		ours.SourceTopics, ours.SinkTopics, ours.Changelogs = theirs.SourceTopics, theirs.SinkTopics, theirs.Changelogs
	}
}

// unreported gives the pods that carry an agent and should have reported by now, with the reason of the first, by name.
func (o *observation) unreported() (pods []string, why *report.Error) {
	for i := range o.pods {
		p := &o.pods[i]
		answer, asked := o.reports.pods[string(p.uid)]
		if !asked || !p.running() || p.down || answer.Report != nil && answer.Err == nil {
			continue
		}
		if answer.Report != nil && o.now.Sub(answer.Since) < joinGrace || answer.Report == nil && p.starting(o.now) && !told(answer.Err) {
			continue
		}
		pods, why = append(pods, p.name), cmp.Or(why, answer.Err)
	}
	return pods, why
}

// told says whether a pod has answered, though not with a report that can be used: waiting would not help.
func told(err *report.Error) bool {
	return err != nil && err.Fault != report.Unreachable
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
