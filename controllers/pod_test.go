// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

var comparePods = cmp.AllowUnexported(podFacts{}, resizeState{}, touched{})

// containerIs gives the application's container a state.
func containerIs(state corev1.ContainerState) change[corev1.Pod] {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = state }
}

// restartOnResize makes the kubelet restart the container when its memory is resized.
func restartOnResize(p *corev1.Pod) {
	p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}, {ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
}

func runningSince(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

func TestReadPod(t *testing.T) {
	lost := map[string]nodeFacts{"node-0": {lost: true}}
	deleted := metav1.NewTime(testNow)
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	ordinary := func() podFacts {
		return podFacts{
			name: "orders-0", uid: "orders-0-uid", resourceVersion: "1", node: "node-0", addresses: []string{"10.0.0.1"},
			created: testNow.Add(-time.Hour), started: testNow.Add(-time.Hour), phase: corev1.PodRunning, readySince: testNow.Add(-time.Hour),
			injected: true, planRevision: "first", limit: memory("1Gi"), request: memory("1Gi"), actualLimit: memory("1Gi"), qos: corev1.PodQOSBurstable,
		}
	}
	cases := map[string]struct {
		pod   change[corev1.Pod]
		nodes map[string]nodeFacts
		want  change[podFacts]
	}{
		"ordinary": {func(*corev1.Pod) {}, nil, func(*podFacts) {}},
		"its node is lost": {
			func(*corev1.Pod) {}, lost, func(f *podFacts) { f.nodeLost = true },
		},
		"not scheduled yet": {
			func(p *corev1.Pod) { p.Spec.NodeName = "" }, map[string]nodeFacts{"": {lost: true}}, func(f *podFacts) { f.node = "" },
		},
		"being deleted: not ready any more": {
			func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }, nil,
			func(f *podFacts) { f.terminating, f.readySince = true, time.Time{} },
		},
		"opted out": {
			func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"} }, nil,
			func(f *podFacts) { f.optedOut, f.injected, f.planRevision = true, false, "" },
		},
		"opted in by any other word": {
			func(p *corev1.Pod) { p.Annotations[v1alpha1.InjectAnnotation] = "no" }, nil, func(*podFacts) {},
		},
		"told of a newer plan than it was made with": {
			func(p *corev1.Pod) { p.Annotations[v1alpha1.PublishedAnnotation] = "second" }, nil, func(f *podFacts) { f.planRevision = "second" },
		},
		"told of a plan that it was not made with": {
			func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.PublishedAnnotation: "second"} }, nil,
			func(f *podFacts) { f.injected, f.planRevision = false, "second" },
		},
		"raised, and the kubelet has not carried it out": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources = memoryResources("1Gi", "2Gi") }, nil,
			func(f *podFacts) { f.limit = memory("2Gi") },
		},
		"the kubelet has not reported": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, nil, func(f *podFacts) { f.actualLimit = nil },
		},
		"the kubelet is too old to report": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources = nil }, nil, func(f *podFacts) { f.actualLimit = nil },
		},
		"its container has run for a minute": {
			containerIs(runningSince(testNow.Add(-time.Minute))), nil, func(f *podFacts) { f.started = testNow.Add(-time.Minute) },
		},
		"its container waits for its image, or to be started again": {
			containerIs(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}), nil, func(f *podFacts) { f.down = true },
		},
		"a resize restarts its container": {restartOnResize, nil, func(f *podFacts) { f.restartsOnResize = true }},
		"a resize of its CPU restarts its container": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
			}, nil, func(*podFacts) {},
		},
		"its container has ended": {
			containerIs(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}), nil, func(f *podFacts) { f.down, f.diedYoung = true, true },
		},
		"a sidecar counts for nothing": {
			func(p *corev1.Pod) {
				p.Spec.Containers = append([]corev1.Container{{Name: "proxy", Resources: memoryResources("1Mi", "2Mi")}}, p.Spec.Containers...)
				p.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "proxy", Resources: &corev1.ResourceRequirements{}}}, p.Status.ContainerStatuses...)
			}, nil, func(*podFacts) {},
		},
		"no such container": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Name, p.Status.ContainerStatuses = "other", nil }, nil,
			func(f *podFacts) { f.limit, f.request, f.actualLimit = nil, nil, nil },
		},
		"CPU request and limit are equal": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2000m")
			}, nil, func(f *podFacts) { f.cpuBound = true },
		},
		"not ready": {
			func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, nil, func(f *podFacts) { f.readySince = time.Time{} },
		},
		"the scheduler lacks memory": {
			condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available: 3 Insufficient memory."), nil,
			func(f *podFacts) { f.lacksMemory = true },
		},
		"the scheduler lacks CPU": {
			condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."), nil, func(*podFacts) {},
		},
		"a resize is put off": {
			condition(corev1.PodResizePending, corev1.ConditionTrue, corev1.PodReasonDeferred, "no room"), nil,
			func(f *podFacts) {
				f.resize = resizeState{corev1.PodResizePending, corev1.PodReasonDeferred, "no room"}
			},
		},
		"a resize is on its way": {
			condition(corev1.PodResizeInProgress, corev1.ConditionTrue, "", ""), nil,
			func(f *podFacts) { f.resize = resizeState{condition: corev1.PodResizeInProgress} },
		},
		"a resize is over": {
			condition(corev1.PodResizeInProgress, corev1.ConditionFalse, "", ""), nil, func(*podFacts) {},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := ordinary()
			c.want(&want)
			wantNoDiff(t, "facts", want, readPod(runningPod(0, "1Gi", c.pod), testContainer, c.nodes), comparePods)
		})
	}
}

// TestAPendingResizeComesBeforeOneInProgress: both conditions stand when a second resize waits behind the first.
func TestAPendingResizeComesBeforeOneInProgress(t *testing.T) {
	pending := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}
	running := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}
	for name, conditions := range map[string][]corev1.PodCondition{"pending first": {pending, running}, "pending last": {running, pending}} {
		t.Run(name, func(t *testing.T) {
			pod := readPod(runningPod(0, "1Gi", func(p *corev1.Pod) { p.Status.Conditions = conditions }), testContainer, nil)
			if pod.resize.condition != corev1.PodResizePending || outcomeOf(&pod) != v1alpha1.ResizeInfeasible {
				t.Errorf("resize = %+v, outcome %s; want the pending one, Infeasible", pod.resize, outcomeOf(&pod))
			}
		})
	}
}

func TestWhatAPodCountsFor(t *testing.T) {
	cases := map[string]struct {
		pod                         podFacts
		running, exists, manageable bool
	}{
		"running and injected":         {podFacts{phase: corev1.PodRunning, injected: true}, true, true, true},
		"running since before":         {podFacts{phase: corev1.PodRunning}, true, true, false},
		"running on a lost node":       {podFacts{phase: corev1.PodRunning, injected: true, nodeLost: true}, false, false, false},
		"being deleted":                {podFacts{phase: corev1.PodRunning, injected: true, terminating: true}, false, false, false},
		"pending":                      {podFacts{phase: corev1.PodPending, injected: true}, false, true, false},
		"pending, and already deleted": {podFacts{phase: corev1.PodPending, terminating: true}, false, false, false},
		"failed":                       {podFacts{phase: corev1.PodFailed, injected: true}, false, false, false},
		"succeeded":                    {podFacts{phase: corev1.PodSucceeded, injected: true}, false, false, false},
		"of unknown phase":             {podFacts{phase: corev1.PodUnknown, injected: true}, false, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.pod.running() != c.running || c.pod.exists() != c.exists || c.pod.manageable() != c.manageable {
				t.Errorf("running %v, exists %v, manageable %v; want %v, %v, %v",
					c.pod.running(), c.pod.exists(), c.pod.manageable(), c.running, c.exists, c.manageable)
			}
		})
	}
}

func TestReadNode(t *testing.T) {
	cases := map[string]struct {
		node *corev1.Node
		want bool
	}{
		"ready":                                  {node("a", corev1.ConditionTrue), false},
		"says itself that it is not ready":       {node("a", corev1.ConditionFalse), false},
		"not heard of for the node grace period": {node("a", corev1.ConditionUnknown), true},
		"new, with no conditions":                {&corev1.Node{}, false},
		"under pressure of which nothing is known": {
			&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionUnknown}}}}, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := readNode(c.node).lost; got != c.want {
				t.Errorf("lost = %v, want %v", got, c.want)
			}
		})
	}
}

func TestCPUBound(t *testing.T) {
	container := func(request, limit string) corev1.Container {
		resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		if request != "" {
			resources.Requests[corev1.ResourceCPU] = resource.MustParse(request)
		}
		if limit != "" {
			resources.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
		}
		return corev1.Container{Resources: resources}
	}
	cases := map[string]struct {
		containers []corev1.Container
		want       bool
	}{
		"equal":                         {[]corev1.Container{container("1", "1")}, true},
		"equal in other words":          {[]corev1.Container{container("1000m", "1")}, true},
		"no request: it becomes equal":  {[]corev1.Container{container("", "1")}, true},
		"no limit":                      {[]corev1.Container{container("1", "")}, false},
		"a smaller request":             {[]corev1.Container{container("500m", "1")}, false},
		"a sidecar without":             {[]corev1.Container{container("1", "1"), container("", "")}, false},
		"no containers: nothing to say": {nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cpuBound(c.containers); got != c.want {
				t.Errorf("cpuBound = %v, want %v", got, c.want)
			}
		})
	}
}
