// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// containerIs gives the application's container a state.
func containerIs(state corev1.ContainerState) testobjects.Change[corev1.Pod] {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = state }
}

// withCondition adds a condition to a pod.
func withCondition(condition corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) testobjects.Change[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: status, Reason: reason, Message: message})
	}
}

func TestPodOf(t *testing.T) {
	hourAgo := testobjects.Now.Add(-time.Hour)
	minuteAgo := testobjects.Now.Add(-time.Minute)
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: metav1.NewTime(minuteAgo),
			Message: "0/3 nodes are available: 3 Insufficient memory.",
		})
	}
	lostNode := map[string]*corev1.Node{"node-0": testobjects.Node("node-0", corev1.ConditionUnknown)}
	noNode := map[string]*corev1.Node{"node-0": nil}
	unchanged := func(*corev1.Pod) {}
	same := func(*Pod) {}
	restartsForCPU := func(p *corev1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	}
	withSidecar := func(p *corev1.Pod) {
		sidecar := corev1.Container{Name: "proxy", Resources: testobjects.MemoryResources("1Mi", "2Mi")}
		p.Spec.Containers = append([]corev1.Container{sidecar}, p.Spec.Containers...)
		status := corev1.ContainerStatus{Name: "proxy", Resources: &corev1.ResourceRequirements{}}
		p.Status.ContainerStatuses = append([]corev1.ContainerStatus{status}, p.Status.ContainerStatuses...)
	}
	equalCPU := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2000m")
	}
	cases := map[string]struct {
		pod   testobjects.Change[corev1.Pod]
		nodes map[string]*corev1.Node
		want  testobjects.Change[Pod]
	}{
		"running pod":              {unchanged, nil, same},
		"lost node":                {unchanged, lostNode, func(p *Pod) { p.NodeLost = true }},
		"node that does not exist": {unchanged, noNode, func(p *Pod) { p.NodeLost = true }},
		"not scheduled":            {func(p *corev1.Pod) { p.Spec.NodeName = "" }, lostNode, func(p *Pod) { p.Node = "" }},
		"being deleted: not ready any more": {
			func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(testobjects.Now)) }, nil,
			func(p *Pod) {
				p.Terminating = true
				p.TerminatesBy = testobjects.Now
				p.ReadySince = time.Time{}
			},
		},
		"opted out": {
			func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"} }, nil,
			func(p *Pod) {
				p.OptedOut = true
				p.NotifiedRevision = ""
			},
		},
		"inject annotation other than false: not opted out": {func(p *corev1.Pod) { p.Annotations[v1alpha1.InjectAnnotation] = "no" }, nil, same},
		"notified of a newer revision": {
			func(p *corev1.Pod) { p.Annotations[v1alpha1.PublishedAnnotation] = "second" }, nil, func(p *Pod) { p.NotifiedRevision = "second" },
		},
		"plan without the annotation": {
			func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.PublishedAnnotation: "second"} }, nil,
			func(p *Pod) { p.NotifiedRevision = "second" },
		},
		"annotation without the plan": {func(p *corev1.Pod) { p.Spec.Volumes = nil }, nil, func(p *Pod) {
			p.Injected = false
			p.PlanConfigMap = ""
		}},
		"volume with another ConfigMap": {
			func(p *corev1.Pod) { p.Spec.Volumes[0].ConfigMap.Name = "of-the-application" }, nil,
			func(p *Pod) {
				p.Injected = false
				p.PlanConfigMap = "of-the-application"
			},
		},
		"plan of another StreamApp": {
			func(p *corev1.Pod) { p.Spec.Volumes[0].ConfigMap.Name = "streamweir-plan-other" }, nil,
			func(p *Pod) { p.PlanConfigMap = "streamweir-plan-other" },
		},
		"raised limit that the kubelet has not carried out": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources = testobjects.MemoryResources("1Gi", "2Gi") }, nil,
			func(p *Pod) { p.Limit = testobjects.Memory("2Gi") },
		},
		"no container status": {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, nil, func(p *Pod) { p.ActiveLimit = nil }},
		"kubelet that does not report resources": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources = nil }, nil, func(p *Pod) { p.ActiveLimit = nil },
		},
		"container running for a minute": {containerIs(runningSince(minuteAgo)), nil, func(p *Pod) { p.Started = minuteAgo }},
		"container waiting": {
			containerIs(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}), nil,
			func(p *Pod) { p.ContainerDown = true },
		},
		"container ended": {
			containerIs(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}), nil,
			func(p *Pod) {
				p.ContainerDown = true
				p.FailedStarts = 1
			},
		},
		"memory resize restarts the container":   {restartOnResize, nil, func(p *Pod) { p.RestartsOnResize = true }},
		"only CPU resize restarts the container": {restartsForCPU, nil, same},
		"sidecar: not counted":                   {withSidecar, nil, same},
		"container missing": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Name = "other"
				p.Status.ContainerStatuses = nil
			}, nil,
			func(p *Pod) {
				p.Limit = nil
				p.Request = nil
				p.ActiveLimit = nil
			},
		},
		"equal CPU request and limit": {equalCPU, nil, func(p *Pod) { p.CPUGuaranteed = true }},
		"equal CPU request and limit, but an init container without": {
			func(p *corev1.Pod) {
				equalCPU(p)
				p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
			}, nil, same,
		},
		"not ready": {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, nil, func(p *Pod) { p.ReadySince = time.Time{} }},
		"scheduler lacks memory": {
			unschedulable, nil, func(p *Pod) { p.UnschedulableSince = minuteAgo },
		},
		"scheduler lacks memory, and a node is on its way": {
			func(p *corev1.Pod) {
				unschedulable(p)
				p.Status.NominatedNodeName = "node-3"
			}, nil, same,
		},
		"scheduler lacks CPU": {
			withCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."), nil, same,
		},
		"resize deferred": {
			withCondition(corev1.PodResizePending, corev1.ConditionTrue, corev1.PodReasonDeferred, "no room"), nil,
			func(p *Pod) { p.Resize = ResizeState{corev1.PodResizePending, corev1.PodReasonDeferred, "no room"} },
		},
		"resize in progress": {
			withCondition(corev1.PodResizeInProgress, corev1.ConditionTrue, "", ""), nil,
			func(p *Pod) { p.Resize = ResizeState{Condition: corev1.PodResizeInProgress} },
		},
		"resize completed": {withCondition(corev1.PodResizeInProgress, corev1.ConditionFalse, "", ""), nil, same},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := Pod{
				Name: "orders-0", UID: "orders-0-uid", ResourceVersion: "1", Node: "node-0", Addresses: []string{"10.0.0.1"},
				Created: hourAgo, Started: hourAgo, Phase: corev1.PodRunning, ReadySince: hourAgo, Injected: true, NotifiedRevision: "first",
				PlanConfigMap: "streamweir-plan-orders",
				Limit:         testobjects.Memory("1Gi"), Request: testobjects.Memory("1Gi"), ActiveLimit: testobjects.Memory("1Gi"), QOS: corev1.PodQOSBurstable,
			}
			c.want(&want)
			wantNoDiff(t, "pod", want, PodOf(testobjects.RunningPod(0, "1Gi", c.pod), testobjects.Container, c.nodes))
		})
	}
}

// TestPendingResizeOutranksOneInProgress: a pod has both conditions while a second resize waits for the first.
func TestPendingResizeOutranksOneInProgress(t *testing.T) {
	pending := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}
	inProgress := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}
	for name, conditions := range map[string][]corev1.PodCondition{"pending first": {pending, inProgress}, "pending last": {inProgress, pending}} {
		t.Run(name, func(t *testing.T) {
			pod := PodOf(testobjects.RunningPod(0, "1Gi", func(p *corev1.Pod) { p.Status.Conditions = conditions }), testobjects.Container, nil)
			if pod.Resize.Condition != corev1.PodResizePending || ResizeOutcome(&pod) != v1alpha1.ResizeInfeasible {
				t.Errorf("resize = %+v, outcome %s; want the pending one, Infeasible", pod.Resize, ResizeOutcome(&pod))
			}
		})
	}
}

func TestPodCountsAs(t *testing.T) {
	type counts struct{ Running, ReadsPlan, Manageable bool }
	cases := map[string]struct {
		pod  Pod
		want counts
	}{
		"running and injected":       {Pod{Phase: corev1.PodRunning, Injected: true}, counts{true, true, true}},
		"running without the plan":   {Pod{Phase: corev1.PodRunning}, counts{true, true, false}},
		"running on a lost node":     {Pod{Phase: corev1.PodRunning, Injected: true, NodeLost: true}, counts{}},
		"suspected":                  {Pod{Phase: corev1.PodRunning, Injected: true, Suspected: true}, counts{ReadsPlan: true}},
		"being deleted":              {Pod{Phase: corev1.PodRunning, Injected: true, Terminating: true}, counts{}},
		"pending":                    {Pod{Phase: corev1.PodPending, Injected: true}, counts{ReadsPlan: true}},
		"pending, and being deleted": {Pod{Phase: corev1.PodPending, Terminating: true}, counts{}},
		"failed":                     {Pod{Phase: corev1.PodFailed, Injected: true}, counts{}},
		"succeeded":                  {Pod{Phase: corev1.PodSucceeded, Injected: true}, counts{}},
		"unknown phase":              {Pod{Phase: corev1.PodUnknown, Injected: true}, counts{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantNoDiff(t, "counts", c.want, counts{c.pod.Running(), c.pod.usesMemory(), c.pod.manageable()})
		})
	}
}

func TestNodeLost(t *testing.T) {
	unknownPressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionUnknown}
	cases := map[string]struct {
		node *corev1.Node
		want bool
	}{
		"ready":                       {testobjects.Node("a", corev1.ConditionTrue), false},
		"not ready by its own report": {testobjects.Node("a", corev1.ConditionFalse), false},
		"silent for the grace period": {testobjects.Node("a", corev1.ConditionUnknown), true},
		"new, without conditions":     {&corev1.Node{}, false},
		"unknown memory pressure":     {&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{unknownPressure}}}, false},
		"missing":                     {nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NodeLost(c.node); got != c.want {
				t.Errorf("NodeLost() = %v, want %v", got, c.want)
			}
		})
	}
}

func TestCPUGuaranteed(t *testing.T) {
	cpu := func(request, limit string) corev1.Container {
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
		"equal request and limit":       {[]corev1.Container{cpu("1", "1")}, true},
		"equal in different units":      {[]corev1.Container{cpu("1000m", "1")}, true},
		"no request: becomes the limit": {[]corev1.Container{cpu("", "1")}, true},
		"no limit":                      {[]corev1.Container{cpu("1", "")}, false},
		"smaller request":               {[]corev1.Container{cpu("500m", "1")}, false},
		"sidecar without CPU":           {[]corev1.Container{cpu("1", "1"), cpu("", "")}, false},
		"no containers":                 {nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cpuGuaranteed(c.containers); got != c.want {
				t.Errorf("cpuGuaranteed() = %v, want %v", got, c.want)
			}
		})
	}
}
