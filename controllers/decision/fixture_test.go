// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// fixture is a World in short form. A field that is not set has the ordinary value: a StreamApp in mode Enforce with a range of 512Mi to
// 4Gi, for a StatefulSet of three replicas whose pods run and have 1Gi each.
type fixture struct {
	app      *v1alpha1.StreamApp
	workload any // *appsv1.StatefulSet, *appsv1.Deployment, or missing{}
	pods     []*corev1.Pod
	nodes    []*corev1.Node
	// nodeRequests are the memory requests on the nodes, in bytes by name.
	nodeRequests map[string]int64
	ranges       []corev1.LimitRange
	quotas       []corev1.ResourceQuota
	conflicting  string
	// createFailure is the event of a StatefulSet whose pods cannot be created.
	createFailure string
	// inherited is the value of JDK_JAVA_OPTIONS in a ConfigMap of envFrom.
	inherited   *string
	group       *assignment.Group
	groupErr    error
	unavailable Problem
	now         time.Time
	plan        *corev1.ConfigMap
	injection   *v1alpha1.PodInjection
	// agent: new pods get the agent. reports are those of the pods' agents, by the pod's name.
	agent   bool
	reports map[string]report.PodReport
	// known are the subtopologies when every pod had last reported.
	known []assignment.Subtopology
	// volatile is the memory that the process keeps.
	volatile Volatile
}

// missing stands for an object that does not exist.
type missing struct{}

// testAgentMap is the ConfigMap of the agent.
const testAgentMap = "streamweir-agent-0123456789"

// world returns the World and the Memory of a fixture.
func (g fixture) world(t *testing.T) (World, Memory) {
	t.Helper()
	if g.app == nil {
		g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
	}
	if g.now.IsZero() {
		g.now = testobjects.Now
	}
	w := World{
		Now: g.now, App: g.app, ConflictingApp: g.conflicting, PlanConfigMap: g.plan, Injection: g.injection,
		CreateFailure: g.createFailure, NodeRequests: g.nodeRequests, LimitRanges: g.ranges, ResourceQuotas: g.quotas, Group: g.groupSource(),
	}
	switch workload := g.workload.(type) {
	case nil:
		w.StatefulSet = testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"))
		if g.pods == nil {
			g.pods = testobjects.RunningPods(3, "1Gi")
		}
	case *appsv1.StatefulSet:
		w.StatefulSet = workload
	case *appsv1.Deployment:
		w.Deployment = workload
	case missing:
	default:
		t.Fatalf("a workload of type %T", workload)
	}
	if g.inherited != nil {
		w.StatefulSet = w.StatefulSet.DeepCopy()
		container := &w.StatefulSet.Spec.Template.Spec.Containers[0]
		container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
		w.ConfigMaps = map[string]*corev1.ConfigMap{"env": {Data: map[string]string{"JDK_JAVA_OPTIONS": *g.inherited}}}
	}
	for _, p := range g.pods {
		w.Pods = append(w.Pods, *p)
	}
	w.Nodes = map[string]*corev1.Node{}
	for _, n := range g.nodes {
		w.Nodes[n.Name] = n
	}
	volatile := g.volatile
	if g.agent {
		w.AgentConfigMap = testAgentMap
		w.Reports = map[string]report.PodReport{}
		description := ""
		for name, r := range g.reports {
			w.Reports[name+"-uid"] = r
			if r.Report != nil && len(r.Report.Clients) > 0 {
				description = r.Report.Clients[0].Topology
			}
		}
		if g.known != nil {
			volatile.Assignment = &KnownAssignment{Topology: KnownTopology{Hash: topologyHash(description), Subtopologies: g.known}}
		}
	}
	return w, Recall(g.app, g.plan, g.injection, w.Pods, volatile)
}

func (g fixture) groupSource() GroupSource {
	source := GroupSource{Ref: assignment.Ref{Cluster: "prod", ApplicationID: testobjects.App}, Unavailable: g.unavailable}
	switch {
	case g.unavailable.Found():
	case g.group == nil && g.groupErr == nil:
		source.Unavailable = Problem{v1alpha1.ReasonNoSource, NoSourceText}
	default:
		source.Latest = assignment.Observation{Group: g.group, Err: g.groupErr, At: g.now}
	}
	return source
}

// decide decides about a fixture.
func (g fixture) decide(t *testing.T) *Decision {
	t.Helper()
	w, m := g.world(t)
	d := Decide(w, m)
	return &d
}

// facts derives the facts of a fixture.
func (g fixture) facts(t *testing.T) *Facts {
	t.Helper()
	w, m := g.world(t)
	f := deriveFacts(w, m)
	return &f
}

// status returns the status after a pass whose writes have no result.
func (d *Decision) status() v1alpha1.StreamAppStatus { return StatusOf(d, d.outcome()) }

// outcome returns the outcome of a pass that writes nothing, with the refusals known already.
func (d *Decision) outcome() *Outcome {
	o := &Outcome{}
	for _, refused := range d.Refused {
		o.Refuse(refused, d.Facts.Now)
	}
	return o
}

// resizes returns the requested limits by pod.
func (d *Decision) resizes() map[string]string {
	limits := map[string]string{}
	for _, r := range d.Resizes {
		limits[r.Pod] = bytesText(r.To)
	}
	return limits
}

// after returns the fixture after a pass whose writes succeeded.
func (g fixture) after(t *testing.T) fixture {
	t.Helper()
	d := g.decide(t)
	if d.Injection == nil {
		t.Fatalf("no injection: frozen %v, not injectable %v", d.Frozen, d.Facts.NotInjectable)
	}
	g.plan = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testobjects.Namespace, Name: PlanConfigMapName(testobjects.App), OwnerReferences: []metav1.OwnerReference{{UID: "workload-uid"}},
			Annotations: map[string]string{AnnotationMemory: d.MemoryText()},
		},
		Data: maps.Clone(d.Files),
	}
	g.injection = &v1alpha1.PodInjection{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testobjects.Namespace, Name: testobjects.App, CreationTimestamp: metav1.NewTime(testobjects.Now.Add(-2 * time.Hour)),
			OwnerReferences: []metav1.OwnerReference{{UID: "app-uid"}},
		},
		Spec: *d.Injection,
	}
	if withdrawal := d.Memory.Withdrawal; withdrawal != nil {
		g.injection.Annotations = map[string]string{AnnotationWithdrawal: withdrawal.String()}
	}
	g.app = d.Facts.App.DeepCopy()
	g.app.Status = d.status()
	return g
}

// carriedOut returns the pods after the kubelets have carried out the resizes of a decision.
func carriedOut(pods []*corev1.Pod, d *Decision) []*corev1.Pod {
	var done []*corev1.Pod
	for _, pod := range pods {
		pod = pod.DeepCopy()
		for _, r := range d.Resizes {
			if r.Pod == pod.Name {
				resources := testobjects.MemoryResources(pod.Spec.Containers[0].Resources.Requests.Memory().String(), bytesText(r.To))
				pod.Spec.Containers[0].Resources = resources
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: testobjects.Container, Resources: &resources}}
			}
		}
		done = append(done, pod)
	}
	return done
}

// groupOf is a stable classic group with one subtopology of one key-value store. Each number is the number of tasks of a process; the
// processes run in the pods of [testobjects.RunningPod] with these ordinals.
func groupOf(tasks ...int) *assignment.Group {
	group := &assignment.Group{
		ApplicationID: testobjects.App, Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true, Brokers: 3, VersionHint: "4.4",
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

const (
	testImage  = "registry.example/orders:1"
	testDigest = "registry.example/orders@sha256:1"
)

// withAgent makes a pod one that was created with the agent, from the template's image.
func withAgent(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, testobjects.ConfigMapVolume(v1alpha1.AgentVolume, testAgentMap))
	ofImage(testImage, testDigest)(p)
}

// ofImage gives a pod an image that has run for an hour.
func ofImage(name, digest string) testobjects.Change[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = name
		p.Status.ContainerStatuses[0].ImageID = digest
		p.Status.ContainerStatuses[0].State = runningSince(testobjects.Now.Add(-time.Hour))
	}
}

func runningSince(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

// container changes the first container of a template.
func container(apply testobjects.Change[corev1.Container]) testobjects.Change[corev1.PodTemplateSpec] {
	return func(template *corev1.PodTemplateSpec) { apply(&template.Spec.Containers[0]) }
}

// reportWith is the report of a bounded process with this number of tasks, from a partition on.
func reportWith(first, tasks int, changes ...testobjects.Change[report.Report]) report.PodReport {
	thread := report.Thread{Name: "orders-StreamThread-1"}
	for i := range tasks {
		thread.Tasks = append(thread.Tasks, report.Task{
			ID: fmt.Sprintf("0_%d", first+i), Role: report.RoleActive, Stores: []report.Store{{Name: "totals", Scope: "rocksdb-state"}},
		})
	}
	r := testobjects.Build(report.Report{
		Schema: report.Schema, Started: testobjects.Now.Add(-59 * time.Minute).UnixMilli(), Bounded: report.BoundedActive,
		Plan: report.Plan{OnDisk: "first", Active: "first"},
		Clients: []report.Client{{
			ApplicationID: testobjects.App, ClientID: testobjects.App, Version: "4.4.0", State: "RUNNING", Brokers: 3, Threads: []report.Thread{thread},
		}},
		JVM: report.JVM{Version: 21},
	}, changes)
	return report.PodReport{Report: r, At: testobjects.Now}
}

// reported is a fixture whose three pods have four tasks each, and report them.
func reported(changes ...testobjects.Change[report.Report]) fixture {
	return fixture{
		agent: true, workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi")), pods: testobjects.RunningPods(3, "1Gi", withAgent),
		reports: map[string]report.PodReport{
			"orders-0": reportWith(0, 4, changes...), "orders-1": reportWith(4, 4, changes...), "orders-2": reportWith(8, 4, changes...),
		},
	}
}

// known is the state of an image that was remembered a while ago.
func known(image, digest string, state v1alpha1.ImageState, ago time.Duration) v1alpha1.ImageStatus {
	return v1alpha1.ImageStatus{Image: image, ImageID: digest, State: state, SinceTime: new(metav1.NewTime(testobjects.Now.Add(-ago).UTC()).Rfc3339Copy())}
}

func wantNoDiff(t *testing.T, name string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// manyReports are reports of three bounded pods with this number of tasks each.
func manyReports(each int, changes ...testobjects.Change[report.Report]) map[string]report.PodReport {
	return map[string]report.PodReport{
		"orders-0": reportWith(0, each, changes...), "orders-1": reportWith(each, each, changes...), "orders-2": reportWith(2*each, each, changes...),
	}
}

// publishedLimit returns the limit that the decision's plan is for; 0 without one.
func (d *Decision) publishedLimit() int64 {
	plan, err := planfile.Parse(d.Files)
	if err != nil {
		return 0
	}
	return plan.Limit
}
