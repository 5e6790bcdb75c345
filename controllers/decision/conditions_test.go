// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// conditionCase is a pass with the conditions expected after it.
type conditionCase struct {
	fixture fixture
	// world changes the World of the fixture; nil leaves it.
	world   func(*World)
	outcome Outcome
	want    conditions
}

// conditions are the expected verdicts of some conditions, each with a part of its message.
type conditions map[string]*verdict

// conditionCases returns all cases, by table and name.
func conditionCases(t *testing.T) map[string]map[string]conditionCase {
	t.Helper()
	return map[string]map[string]conditionCase{
		"Compatible":           compatibleCases(),
		"AssignmentKnown":      assignmentCases(),
		"Fits and CascadeSafe": memoryCases(),
		"Applied":              appliedCases(t),
		"reports":              reportCases(t),
		"autoscalers":          autoscalerCases(t),
	}
}

func TestConditions(t *testing.T) {
	for table, cases := range conditionCases(t) {
		for name, c := range cases {
			t.Run(table+"/"+name, func(t *testing.T) {
				verdicts := c.judge(t)
				for condition, want := range c.want {
					wantVerdict(t, condition, want, verdicts[condition])
				}
			})
		}
	}
}

// read returns the World and the Memory of the case.
func (c conditionCase) read(t *testing.T) (World, Memory) {
	t.Helper()
	w, m := c.fixture.world(t)
	if c.world != nil {
		c.world(&w)
	}
	return w, m
}

// judge returns the verdicts. They are complete and well-formed, and neither a repetition nor the order of the pods changes them.
func (c conditionCase) judge(t *testing.T) map[string]verdict {
	t.Helper()
	w, m := c.read(t)
	d := Decide(w, m)
	verdicts := judge(&d, &c.outcome)
	wantWellFormed(t, verdicts)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		random.Shuffle(len(w.Pods), func(i, j int) { w.Pods[i], w.Pods[j] = w.Pods[j], w.Pods[i] })
		again := Decide(w, m)
		wantNoDiff(t, "verdicts of a repeated pass", verdicts, judge(&again, &c.outcome), cmp.AllowUnexported(verdict{}))
	}
	return verdicts
}

var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z]*$`)

func wantWellFormed(t *testing.T, verdicts map[string]verdict) {
	t.Helper()
	if len(verdicts) != 6 {
		t.Errorf("%d conditions, want 6", len(verdicts))
	}
	for condition, v := range verdicts {
		if !reasonPattern.MatchString(v.reason) || v.message == "" || v.status == "" {
			t.Errorf("%s is malformed: %+v", condition, v)
		}
		if strings.Contains(v.message, "%!") || strings.HasSuffix(v.message, ".") || strings.ContainsAny(v.message, "\n\t") {
			t.Errorf("the message of %s is malformed: %q", condition, v.message)
		}
	}
}

// wantVerdict compares status and reason, and looks for the expected part of the message.
func wantVerdict(t *testing.T, condition string, want *verdict, got verdict) {
	t.Helper()
	if got.status != want.status || got.reason != want.reason || !strings.Contains(got.message, want.message) {
		t.Errorf("%s is %s %s %q; want %s %s and a message with %q", condition, got.status, got.reason, got.message, want.status, want.reason, want.message)
	}
}

func compatibleCases() map[string]conditionCase {
	group := groupOf(4, 4, 4)
	template := func(limit string, changes ...testobjects.Change[corev1.PodTemplateSpec]) fixture {
		return fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate(limit, changes...))}
	}
	addProxy := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"})
	}
	onlyRequest := container(func(c *corev1.Container) { c.Resources = testobjects.MemoryResources("1Gi", "") })
	jvmOptions := func(value string) testobjects.Change[corev1.PodTemplateSpec] {
		return container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: value}} })
	}
	namesContainer := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = "other" })
	incompatible := func(f fixture, reason, message string) conditionCase {
		want := isFalse(reason, message)
		return conditionCase{fixture: f, want: conditions{v1alpha1.ConditionCompatible: want, v1alpha1.ConditionReady: want}} // Compatible counts first
	}
	return map[string]conditionCase{
		"supported workload": {
			fixture: fixture{group: group},
			want:    conditions{v1alpha1.ConditionCompatible: isTrue(v1alpha1.ReasonCompatible, "the workload is supported")},
		},
		"older StreamApp with the same target": incompatible(fixture{group: group, conflicting: "older"},
			v1alpha1.ReasonConflictingStreamApp, "StreamApp older has the same target and is older"),
		"missing workload": incompatible(fixture{workload: missing{}, group: group},
			v1alpha1.ReasonTargetNotFound, "StatefulSet orders does not exist in namespace shop"),
		"two containers, none named": incompatible(template("1Gi", addProxy), v1alpha1.ReasonContainerAmbiguous, "one of app, proxy"),
		"unknown container": incompatible(fixture{app: namesContainer},
			v1alpha1.ReasonContainerNotFound, `no container "other"; set `+"`container` to one of app"),
		"BestEffort pods": incompatible(template(""), v1alpha1.ReasonBestEffort, "set a memory limit on container app"),
		"no memory limit": incompatible(template("", onlyRequest), v1alpha1.ReasonNoMemoryLimit, "container app has no memory limit"),
		"contradicting JVM flags": incompatible(template("1Gi", jvmOptions("-XX:+UseG1GC -XX:+UseSerialGC")),
			v1alpha1.ReasonInvalidSettings, "JVM flags of container app: JVM flags: -XX:+UseG1GC and -XX:+UseSerialGC"),
		"two faults in JVM flags": incompatible(template("1Gi", jvmOptions("-Xms2g -Xmx1g -XX:+UseG1GC -XX:+UseSerialGC")),
			v1alpha1.ReasonInvalidSettings, "lower -Xms or raise -Xmx; JVM flags of container app: JVM flags: -XX:+UseG1GC"),
		"two pods with the network of one node": incompatible(onHostNetwork("orders-0", "", "node-0"),
			v1alpha1.ReasonReportPortShared, "pod orders-0 has the network of node node-0, where another process uses port 7907"),
		"report of another pod on the node": incompatible(onHostNetwork("orders-1", report.WrongPod, "node-1"),
			v1alpha1.ReasonReportPortShared, "pod orders-1 has the network of node node-1"),
		"agent of another application on the node": incompatible(onHostNetwork("orders-2", report.Unauthorized, "node-1"),
			v1alpha1.ReasonReportPortShared, "pod orders-2 has the network of node node-2"),
		"one pod of each node": {
			fixture: onHostNetwork("orders-2", report.Unreachable, "node-1"),
			want:    conditions{v1alpha1.ConditionCompatible: isTrue(v1alpha1.ReasonCompatible, "")},
		},
	}
}

// onHostNetwork returns pods with the host's network: orders-1 on a node, and one pod whose last request has failed.
func onHostNetwork(failing string, fault report.Fault, node string) fixture {
	g := reported()
	host := func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true }
	g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", host))
	g.pods[1].Spec.NodeName = node
	if fault != "" {
		r := g.reports[failing]
		r.Err = &report.Error{Fault: fault}
		r.Since = testobjects.Now
		g.reports[failing] = r
	}
	return g
}

func assignmentCases() map[string]conditionCase {
	group := groupOf(4, 4, 4)
	fromSpec := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Streams.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 12}}
	})
	observed := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve })
	elsewhere := groupOf(4, 4, 4)
	elsewhere.Processes[1].Host = "192.0.2.1"
	failing := func(class assignment.Class) fixture {
		return fixture{groupErr: &assignment.Error{Class: class, Group: testobjects.App}}
	}
	knownGroup := failing(assignment.ClassTimeout)
	knownGroup.group = group
	published := failing(assignment.ClassTimeout)
	published.injection = &v1alpha1.PodInjection{}
	latest := func(latest assignment.Observation) func(*World) {
		return func(w *World) {
			w.Group = GroupSource{Ref: assignment.Ref{Cluster: "prod", ApplicationID: testobjects.App}, Latest: latest}
		}
	}
	incomplete := reported()
	delete(incomplete.reports, "orders-1")
	incomplete.pods[1].Status.ContainerStatuses[0].State = runningSince(testobjects.Now.Add(-time.Minute))
	assigned := func(f fixture, want *verdict) conditionCase {
		return conditionCase{fixture: f, want: conditions{v1alpha1.ConditionAssignmentKnown: want}}
	}
	return map[string]conditionCase{
		"Kafka group":           assigned(fixture{group: group}, isTrue(v1alpha1.ReasonFromKafka, "group prod/orders (classic protocol)")),
		"tasks in the spec":     assigned(fixture{app: fromSpec}, isTrue(v1alpha1.ReasonFromSpec, "`streams`")),
		"no source":             assigned(fixture{}, isFalse(v1alpha1.ReasonNoSource, "`kafka` is not set")),
		"no source and Observe": assigned(fixture{app: observed, agent: true}, isFalse(v1alpha1.ReasonNoSource, "no agent is injected in mode Observe")),
		"pods without the agent": assigned(fixture{agent: true},
			isUnknown(v1alpha1.ReasonNotObserved, "3 pods run without the agent, so the tasks are unknown")),
		"a pod that has not reported yet": assigned(incomplete, isUnknown(v1alpha1.ReasonNotObserved, "not all pods have reported their tasks yet")),
		"unknown cluster": assigned(fixture{unavailable: Problem{v1alpha1.ReasonUnknownCluster, UnknownClusterText("other", "shop", "orders")}},
			isFalse(v1alpha1.ReasonUnknownCluster, `no Kafka cluster "other"`)),
		"brokers without permission": assigned(fixture{unavailable: Problem{v1alpha1.ReasonBootstrapServersNotPermitted, BootstrapServersText}},
			isFalse(v1alpha1.ReasonBootstrapServersNotPermitted, "--allow-bootstrap-servers")),
		"unreachable brokers":                   assigned(failing(assignment.ClassUnreachable), isFalse(v1alpha1.ReasonKafkaUnreachable, "cannot be reached")),
		"unreachable brokers and a known group": assigned(knownGroup, isFalse(v1alpha1.ReasonKafkaUnreachable, "the last known plan is kept")),
		"unreachable brokers and a plan":        assigned(published, isFalse(v1alpha1.ReasonKafkaUnreachable, "the last known plan is kept")),
		"refused credentials":                   assigned(failing(assignment.ClassUnauthorized), isFalse(v1alpha1.ReasonKafkaRefused, "rejects")),
		"unknown group":                         assigned(failing(assignment.ClassUnknownGroup), isFalse(v1alpha1.ReasonGroupNotFound, "does not exist on the Kafka cluster")),
		"group of other consumers":              assigned(failing(assignment.ClassNotStreamsGroup), isFalse(v1alpha1.ReasonNotAStreamsGroup, "does not belong to a Kafka Streams application")),
		"malformed group":                       assigned(failing(assignment.ClassMalformed), isFalse(v1alpha1.ReasonUndecodable, "cannot be decoded")),
		"member on an unknown host": assigned(fixture{group: elsewhere},
			isFalse(v1alpha1.ReasonMembersNotMatched, "192.0.2.1")),
		"group that was not read yet": {
			world: latest(assignment.Observation{}),
			want:  conditions{v1alpha1.ConditionAssignmentKnown: isUnknown(v1alpha1.ReasonNotObserved, "has not been read yet")},
		},
		"group without an assignment": {
			world: latest(assignment.Observation{At: testobjects.Now, State: "PreparingRebalance"}),
			want:  conditions{v1alpha1.ConditionAssignmentKnown: isUnknown(v1alpha1.ReasonRebalancing, "PreparingRebalance")},
		},
	}
}

func memoryCases() map[string]conditionCase {
	group := groupOf(4, 4, 4)
	observe := func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve }
	tolerateNone := func(app *v1alpha1.StreamApp) { app.Spec.Memory.PodFailuresToTolerate = new(int32(0)) }
	pods := func(count int32, limit string, group *assignment.Group, changes ...testobjects.Change[v1alpha1.StreamApp]) fixture {
		return fixture{
			app: testobjects.StreamApp(changes...), group: group, workload: testobjects.StatefulSet(count, testobjects.PodTemplate(limit)),
			pods: testobjects.RunningPods(int(count), limit),
		}
	}
	tolerateTwo := func(app *v1alpha1.StreamApp) { app.Spec.Memory.PodFailuresToTolerate = new(int32(2)) }
	oneUnavailable := pods(5, "3Gi", groupOf(4, 4, 4, 4), observe, tolerateTwo)
	oneUnavailable.pods = oneUnavailable.pods[:4]
	memory := func(f fixture, fits, cascadeSafe *verdict) conditionCase {
		return conditionCase{fixture: f, want: conditions{v1alpha1.ConditionFits: fits, v1alpha1.ConditionCascadeSafe: cascadeSafe}}
	}
	return map[string]conditionCase{
		"enough for a failure": memory(pods(3, "4Gi", group, observe),
			isTrue(v1alpha1.ReasonFits, "every pod's tasks fit into its memory limit"), isTrue(v1alpha1.ReasonPodFailuresTolerated, "of 3 pods can fail")),
		"a single pod": memory(pods(1, "4Gi", groupOf(4), observe),
			isTrue(v1alpha1.ReasonFits, ""), isTrue(v1alpha1.ReasonPodFailuresTolerated, "the only pod fits into its limit")),
		"one failure to tolerate has happened already": memory(oneUnavailable,
			isTrue(v1alpha1.ReasonFits, ""), isTrue(v1alpha1.ReasonPodFailuresTolerated, "1 of 5 pods can fail")),
		"too little for a failure": memory(pods(3, "1536Mi", group, observe),
			isTrue(v1alpha1.ReasonFits, ""), isFalse(v1alpha1.ReasonWouldCascade, "after the failure of 1 pod")),
		"too little for a failure, and capped": memory(pods(3, "1536Mi", group, observe, testobjects.LimitsBetween("", "1600Mi")),
			isTrue(v1alpha1.ReasonFits, ""), isFalse(v1alpha1.ReasonCapped, "`maxLimit` is 1600Mi")),
		"too little for a failure, and none to tolerate": memory(pods(3, "1536Mi", group, observe, tolerateNone),
			isTrue(v1alpha1.ReasonFits, ""), isTrue(v1alpha1.ReasonPodFailuresTolerated, "")),
		"too little for now, and no failure to tolerate": memory(pods(3, "512Mi", group, observe, tolerateNone),
			isFalse(v1alpha1.ReasonInsufficientMemory, ""), isFalse(v1alpha1.ReasonWouldCascade, "exceed their limits already")),
		"too little for now, in Observe": memory(pods(3, "512Mi", group, observe),
			isFalse(v1alpha1.ReasonInsufficientMemory, "3 pods have too small a limit; orders-0 has 512Mi and requires"), isFalse(v1alpha1.ReasonWouldCascade, "")),
		"too little for now, in Enforce": memory(pods(3, "512Mi", group),
			isFalse(v1alpha1.ReasonInsufficientMemory, "a limit of 512Mi does not hold"), isFalse(v1alpha1.ReasonWouldCascade, "")),
		"unknown tasks": memory(fixture{}, isUnknown(v1alpha1.ReasonAssignmentUnknown, ""), isUnknown(v1alpha1.ReasonAssignmentUnknown, "")),
		"no target": memory(fixture{workload: missing{}, group: group},
			isUnknown(v1alpha1.ReasonNotObserved, ""), isUnknown(v1alpha1.ReasonNotObserved, "")),
	}
}

func appliedCases(t *testing.T) map[string]conditionCase {
	t.Helper()
	group := groupOf(4, 4, 4)
	enforced := testobjects.StreamApp()
	settled := fixture{
		group: group, app: enforced, workload: testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi")), pods: testobjects.RunningPods(3, "4Gi"),
	}.after(t)
	with := func(pods ...*corev1.Pod) fixture {
		f := settled
		f.pods = pods
		return f
	}
	resizing := func(ordinal int, condition corev1.PodConditionType, reason, message string) *corev1.Pod {
		return testobjects.RunningPod(ordinal, "4Gi", withCondition(condition, corev1.ConditionTrue, reason, message))
	}
	deferred := func(ordinal int) *corev1.Pod {
		return resizing(ordinal, corev1.PodResizePending, corev1.PodReasonDeferred, "no room")
	}
	failed := resizing(1, corev1.PodResizeInProgress, corev1.PodReasonError, "cgroup")
	pod0, pod1 := testobjects.RunningPod(0, "4Gi"), testobjects.RunningPod(1, "4Gi")
	notInjected := func(age time.Duration) *corev1.Pod {
		return testobjects.RunningPod(0, "4Gi", func(p *corev1.Pod) {
			testobjects.NotInjected(p)
			p.CreationTimestamp = metav1.NewTime(testobjects.Now.Add(-age))
		})
	}
	optedOut := testobjects.RunningPod(0, "4Gi", func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"} })
	restartsOnResize := testobjects.RunningPod(2, "1Gi", restartOnResize)
	refused := map[string]RefusedResize{
		"orders-1": {Pod: "orders-1", Limit: 2048 << 20, Message: "b"}, "orders-0": {Pod: "orders-0", Limit: 1024 << 20, Message: "a"},
	}
	optionsFromValue := container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", ValueFrom: &corev1.EnvVarSource{}}}
	})
	scaledToZero := settled
	scaledToZero.workload = testobjects.StatefulSet(0, testobjects.PodTemplate("4Gi"))
	scaledToZero.pods = nil
	unavailable := settled
	unavailable.group = nil
	unavailable.groupErr = &assignment.Error{Class: assignment.ClassUnreachable}
	fullNode := fixture{group: groupOf(20), workload: testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi")), pods: testobjects.RunningPods(1, "1536Mi")}
	fullNode.nodes = []*corev1.Node{testobjects.Node("node-0", corev1.ConditionTrue)}
	fullNode.nodes[0].Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
	fullNode.nodeRequests = map[string]int64{"node-0": 4 << 30}
	holding := settled
	holding.app = testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeHold })
	applied := func(f fixture, o Outcome, want *verdict) conditionCase {
		return conditionCase{fixture: f, outcome: o, want: conditions{v1alpha1.ConditionApplied: want}}
	}
	withoutPolicy := func(w *World) { w.InjectionUnavailable = NoPolicyText }
	return map[string]conditionCase{
		"the policy is gone": {
			fixture: with(notInjected(time.Hour), pod1), world: withoutPolicy,
			want: conditions{
				v1alpha1.ConditionApplied:    isFalse(v1alpha1.ReasonInjectionUnavailable, NoPolicyText),
				v1alpha1.ConditionCompatible: isFalse(v1alpha1.ReasonInjectionUnavailable, NoPolicyText),
			},
		},
		"plan applied": applied(settled, Outcome{}, isTrue(v1alpha1.ReasonApplied, "run with the limits and configuration of the plan")),
		"no target":    applied(fixture{workload: missing{}, group: group}, Outcome{}, isFalse(v1alpha1.ReasonNotObserved, "no container to apply a plan to")),
		"mode Observe": applied(fixture{app: testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = "" })}, Outcome{},
			isFalse(v1alpha1.ReasonObserveMode, "nothing is applied")),
		"mode Hold": applied(holding, Outcome{}, isFalse(v1alpha1.ReasonHeld, "kept as they are")),
		"frozen: too little memory": applied(fixture{group: groupOf(40, 40, 40), app: enforced}, Outcome{},
			isFalse(v1alpha1.ReasonInsufficientMemory, "nothing was changed")),
		"frozen: scaled to zero": applied(scaledToZero, Outcome{}, isFalse(v1alpha1.ReasonNoPods, "nothing was changed: the workload is scaled to zero")),
		"frozen: unknown tasks":  applied(unavailable, Outcome{}, isFalse(v1alpha1.ReasonAssignmentUnknown, "nothing was changed")),
		"not injectable": applied(fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", optionsFromValue))}, Outcome{},
			isFalse(v1alpha1.ReasonOptionsNotVisible, "valueFrom")),
		"agent not injected": applied(settled, Outcome{AgentNotInjected: Problem{v1alpha1.ReasonConflict, AgentConflictText(testAgentMap)}},
			isFalse(v1alpha1.ReasonConflict, testAgentMap)),
		"pod created before the plan": applied(with(notInjected(3*time.Hour), pod1), Outcome{}, isFalse(v1alpha1.ReasonRestartNeeded,
			"1 pod was created before the plan and runs without the plan; restart to apply it: kubectl -n shop rollout restart statefulset/orders")),
		"pod missed by the injection":        applied(with(notInjected(time.Hour), pod1), Outcome{}, isFalse(v1alpha1.ReasonPodsNotInjected, "(orders-0)")),
		"pod opted out":                      applied(with(optedOut, pod1), Outcome{}, isTrue(v1alpha1.ReasonApplied, "")),
		"refused resizes: the first by name": applied(settled, Outcome{Refused: refused}, isFalse(v1alpha1.ReasonResizeRefused, "refused a limit of 1Gi for 2 pods: a")),
		"failed write": applied(settled, Outcome{WriteError: errors.New("writing PodInjection orders: no")},
			isFalse(v1alpha1.ReasonWriteFailed, "writing PodInjection orders: no")),
		"resize to request": applied(fixture{group: groupOf(20, 20, 20)}, Outcome{}, isFalse(v1alpha1.ReasonInProgress, "being raised")),
		"requested resize":  applied(settled, Outcome{Resized: []string{"pod orders-0"}}, isFalse(v1alpha1.ReasonInProgress, "being raised")),
		"deferred resize":   applied(with(pod0, deferred(1)), Outcome{}, isFalse(v1alpha1.ReasonResizeDeferred, "of 1 pod is pending (Deferred): no room")),
		"infeasible resize": applied(with(pod0, resizing(1, corev1.PodResizePending, corev1.PodReasonInfeasible, "too large")), Outcome{},
			isFalse(v1alpha1.ReasonResizeInfeasible, "too large")),
		"node without room": applied(fullNode, Outcome{}, isFalse(v1alpha1.ReasonNodeCapacity,
			"the nodes of 1 pod have no room for the required limit: orders-0 requires 3153Mi, and node node-0 can give at most 1536Mi beside the requests of its other pods")),
		"failed resize":      applied(with(pod0, failed), Outcome{}, isFalse(v1alpha1.ReasonResizeError, "cgroup")),
		"resize in progress": applied(with(pod0, resizing(1, corev1.PodResizeInProgress, "", "")), Outcome{}, isFalse(v1alpha1.ReasonInProgress, "InProgress")),
		"deferred and failed resizes: the failed one with its own message": applied(with(deferred(0), failed), Outcome{},
			isFalse(v1alpha1.ReasonResizeError, "(Error): cgroup")),
		"resize that would restart the container": applied(fixture{group: group, pods: append(testobjects.RunningPods(2, "4Gi"), restartsOnResize)}, Outcome{},
			isFalse(v1alpha1.ReasonRestartNeeded, "1 pod needs a larger limit (orders-2: ")),
		"withdrawn memory": applied(withdrawnFixture(t), Outcome{}, isFalse(v1alpha1.ReasonPodCreationRefused, "new pods get the template's 1Gi")),
	}
}

// restartOnResize makes the kubelet restart the container when its memory is resized.
func restartOnResize(p *corev1.Pod) {
	p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}, {ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
}

// withdrawnFixture is a Deployment whose pods with injected memory are refused.
func withdrawnFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{group: groupOf(12, 12, 12)}.after(t)
	f.pods = testobjects.RunningPods(3, f.injection.Spec.Memory.Limit.String())
	f.workload = testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: memory"}}
	})
	return f
}

func TestReadySumsUpTheOtherConditions(t *testing.T) {
	cases := map[string]struct {
		condition string
		verdict   *verdict
		want      *verdict
	}{
		"all True":                    {"", nil, isTrue(v1alpha1.ReasonPlanApplied, "")},
		"not Applied in mode Observe": {v1alpha1.ConditionApplied, isFalse(v1alpha1.ReasonObserveMode, "x"), isTrue(v1alpha1.ReasonObserving, "")},
		"not Applied, held":           {v1alpha1.ConditionApplied, isFalse(v1alpha1.ReasonHeld, "x"), isTrue(v1alpha1.ReasonHeld, "")},
		"a condition is False":        {v1alpha1.ConditionFits, isFalse("Bad", "worse"), isFalse("Bad", "worse")},
		"a condition is Unknown":      {v1alpha1.ConditionAssignmentKnown, isUnknown("Open", "why"), isUnknown("Open", "why")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdicts := map[string]verdict{}
			for _, condition := range ConditionOrder {
				verdicts[condition] = *isTrue("Good", "good")
			}
			if c.verdict != nil {
				verdicts[c.condition] = *c.verdict
			}
			wantVerdict(t, v1alpha1.ConditionReady, c.want, judgeReady(verdicts))
		})
	}
}

// TestEveryKafkaErrorHasAReason fails for a class added without a reason.
func TestEveryKafkaErrorHasAReason(t *testing.T) {
	for name, value := range constantsOf(t, "../../assignment/errors.go", "Class") {
		if class := assignment.Class(value); class != assignment.ClassNone && reasonOfClass[class] == "" {
			t.Errorf("%s has no reason for AssignmentKnown", name)
		}
	}
}

func TestStatusContainsNoTextFromTheNetwork(t *testing.T) {
	err := &assignment.Error{Class: assignment.ClassUnreachable, Err: errors.New("dial tcp 10.9.8.7:9092: secret text")}
	for name, err := range map[string]error{"error": err, "wrapped error": fmt.Errorf("polling: %w", err)} {
		t.Run(name, func(t *testing.T) {
			v := conditionCase{fixture: fixture{groupErr: err}}.judge(t)[v1alpha1.ConditionAssignmentKnown]
			wantVerdict(t, v1alpha1.ConditionAssignmentKnown, isFalse(v1alpha1.ReasonKafkaUnreachable, "cannot be reached"), v)
			if strings.Contains(v.message, "secret") || strings.Contains(v.message, "10.9.8.7") {
				t.Errorf("message = %q, want the class of the error alone", v.message)
			}
		})
	}
}

// TestEveryCheckIsReached fails for a check of a chain that decides none of the cases, and for a reason that no case expects.
func TestEveryCheckIsReached(t *testing.T) {
	chains := map[string][]check{
		"Compatible": compatibleChain, "AssignmentKnown": assignmentChain, "Fits": fitsChain, "CascadeSafe": cascadeChain, "Applied": appliedChain,
	}
	reached := map[string]map[int]bool{}
	for name := range chains {
		reached[name] = map[int]bool{}
	}
	reasons := map[string]bool{v1alpha1.ReasonPlanApplied: true, v1alpha1.ReasonObserving: true} // see TestReadySumsUpTheOtherConditions
	for _, cases := range conditionCases(t) {
		for _, c := range cases {
			d := Decide(c.read(t))
			for name, chain := range chains {
				reached[name][slices.IndexFunc(chain, func(apply check) bool { return apply(&d.Facts, &d, &c.outcome) != nil })] = true
			}
			for _, want := range c.want {
				reasons[want.reason] = true
			}
		}
	}
	for name, chain := range chains {
		for i, apply := range chain {
			if !reached[name][i] {
				t.Errorf("no case reaches check %d of %s, %s", i, name, runtime.FuncForPC(reflect.ValueOf(apply).Pointer()).Name())
			}
		}
		if !reached[name][-1] {
			t.Errorf("no case reaches the end of the chain of %s", name)
		}
	}
	declared := constantsOf(t, "../../api/v1alpha1/conditions.go", "Reason")
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !reasons[declared[name]] {
			t.Errorf("no case expects %s", name)
		}
	}
	for reason := range reasons {
		if !slices.Contains(slices.Collect(maps.Values(declared)), reason) {
			t.Errorf("reason %s is not declared", reason)
		}
	}
}

// constantsOf returns the string constants of a source file whose names begin with a prefix, by name.
func constantsOf(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			found[spec.Names[0].Name] = strings.Trim(literal.Value, `"`)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants %s...", file, prefix)
	}
	return found
}
