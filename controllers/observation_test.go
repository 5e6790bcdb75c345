// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// given is a world to be observed without an API server. What is not set is the ordinary case: a StreamApp in mode Enforce between
// 512Mi and 4Gi, for a StatefulSet of three replicas whose pods run and have 1Gi each.
type given struct {
	app       *v1alpha1.StreamApp
	workload  any // *appsv1.StatefulSet, *appsv1.Deployment, or none{}
	pods      []*corev1.Pod
	nodes     []*corev1.Node
	ranges    []corev1.LimitRange
	quotas    []corev1.ResourceQuota
	inherited *string
	group     *assignment.Group
	groupErr  error
	refused   fault
	now       time.Time
	plan      *corev1.ConfigMap
	injection *v1alpha1.PodInjection
	// agent: new pods are to get the agent. reports are what is known of the pods' own agents, by the pod's name.
	agent   bool
	reports map[string]report.PodReport
	known   []assignment.Subtopology
}

// none stands for an object that is not there.
type none struct{}

// observed reads a world as the reconciler does.
func observed(t *testing.T, g given) *observation {
	t.Helper()
	if g.app == nil {
		g.app = streamApp(limitsBetween("512Mi", "4Gi"))
	}
	if g.now.IsZero() {
		g.now = testNow
	}
	obs := &observation{app: g.app, now: g.now, inherited: g.inherited, planConfigMap: g.plan, injection: g.injection}
	switch workload := g.workload.(type) {
	case nil:
		obs.workload = readStatefulSet(statefulSet(3, podTemplate("1Gi")))
		if g.pods == nil {
			g.pods = runningPodsOf(3, "1Gi")
		}
	case *appsv1.StatefulSet:
		obs.workload = readStatefulSet(workload)
	case *appsv1.Deployment:
		obs.workload = readDeployment(workload)
	case none:
		obs.group = groupFactsOf(obs, g)
		return obs
	default:
		t.Fatalf("a workload of type %T", workload)
	}
	if c := findContainer(obs.workload.template, g.app.Spec.Container); c != nil {
		obs.container = readContainer(obs.workload.template, c, string(optionsVariable(g.app)))
	}
	if obs.container == nil {
		obs.group = groupFactsOf(obs, g)
		return obs
	}
	nodes := map[string]nodeFacts{}
	for _, n := range g.nodes {
		nodes[n.Name] = readNode(n)
	}
	for _, p := range g.pods {
		obs.pods = append(obs.pods, readPod(p, obs.container.name, nodes))
	}
	slices.SortFunc(obs.pods, func(a, b podFacts) int { return strings.Compare(a.name, b.name) })
	if obs.container.limit != nil {
		obs.roof = namespaceRoof(g.ranges, g.quotas, placementOf(obs))
	}
	if g.agent {
		obs.agentName = testAgentMap
		latest := map[string]report.PodReport{}
		for name, reported := range g.reports {
			latest[name+"-uid"] = reported
		}
		obs.takeReports(latest, func(string) []assignment.Subtopology { return g.known })
	}
	obs.group = groupFactsOf(obs, g)
	obs.reportsGroup()
	obs.learn()
	return obs
}

// testAgentMap is the ConfigMap of the agent.
const testAgentMap = "streamweir-agent-orders-0123456789"

func groupFactsOf(obs *observation, g given) groupFacts {
	facts := groupFacts{ref: assignment.Ref{Cluster: "prod", ApplicationID: testApp}, refused: g.refused}
	if g.refused.found() {
		return facts
	}
	if g.group == nil && g.groupErr == nil {
		facts.refused = fault{v1alpha1.ReasonNoSource, "`kafka` is not set, so nobody tells which pod runs which tasks"}
		return facts
	}
	facts.asked = true
	facts.latest = assignment.Observation{Group: g.group, Err: g.groupErr, At: g.now}
	if g.group == nil {
		return facts
	}
	var pods []assignment.Pod
	for i := range obs.pods {
		if p := &obs.pods[i]; p.running() {
			pods = append(pods, assignment.Pod{Name: p.name, Addresses: p.addresses})
		}
	}
	facts.match = assignment.Match(g.group.Processes, pods)
	return facts
}

// groupOf is a stable classic group with one subtopology of one key-value store. Each number is how many tasks a process has; the
// processes run where the pods of [runningPod] with these ordinals do.
func groupOf(tasks ...int) *assignment.Group {
	group := &assignment.Group{
		ApplicationID: testApp, Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true, Brokers: 3, VersionHint: "4.4",
	}
	next := int32(0)
	for i, count := range tasks {
		process := assignment.Process{ID: fmt.Sprintf("process-%d", i), Host: fmt.Sprintf("10.0.0.%d", i+1), Threads: 1}
		for range count {
			process.Tasks.Active = append(process.Tasks.Active, assignment.Task{Subtopology: "0", Partition: next})
			next++
		}
		group.Processes = append(group.Processes, process)
	}
	group.Subtopologies = []assignment.Subtopology{{
		ID: "0", Tasks: next, SourceTopics: []assignment.Topic{{Name: "in", Partitions: next}},
		Changelogs: []assignment.Changelog{{Topic: "orders-totals-changelog", Store: "totals", Partitions: next, Kind: assignment.KeyValue}},
	}}
	return group
}

// pass is one pass of the reconciler without its writes.
type pass struct {
	obs     *observation
	lost    losses
	planned *planning
	want    *desired
}

func passOf(t *testing.T, g given) pass {
	t.Helper()
	obs := observed(t, g)
	lost := countLossesOf(obs)
	planned := plan(obs, lost)
	return pass{obs, lost, planned, decide(obs, lost, planned)}
}

// status is what the pass would write, if its writes ended so.
func (p pass) status(done *applied) v1alpha1.StreamAppStatus {
	return statusOf(p.obs, p.lost, p.planned, p.want, done)
}

// resizes are the limits that the pass asks for, by pod.
func (p pass) resizes() map[string]string {
	limits := map[string]string{}
	for _, r := range p.want.resizes {
		limits[r.pod.name] = humanBytes(r.to)
	}
	return limits
}

func wantNoDiff(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
