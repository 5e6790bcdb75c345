// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// podFacts is what a pass knows of one pod of the workload.
type podFacts struct {
	name            string
	uid             types.UID
	resourceVersion string
	node            string
	addresses       []string
	created         time.Time
	// started is when the container began to run; as long as nothing is known of it, when the pod was created.
	started time.Time
	// down: the container does not run. It is still to come, or it ended and is to be started again.
	down bool

	phase       corev1.PodPhase
	terminating bool
	nodeLost    bool
	readySince  time.Time // zero while it is not ready

	optedOut     bool
	injected     bool   // the admission policy has made it mount the plan
	planRevision string // that it was last told of
	touched      touched

	// image is the container's, as the pod names it; imageID is what runs, "" until it is pulled.
	image, imageID string
	// agent is the ConfigMap of the agent that the pod mounts; "" for none.
	agent string
	// diedYoung: the container ended by itself soon after a start, and not for want of memory, nor with its node.
	diedYoung bool
	// suspected: the connection to its agent is dead, which is the first sign of a lost node.
	suspected bool

	// limit and request are what the spec says for the container in question, in memory; nil where it says nothing.
	limit, request *resource.Quantity
	// actualLimit is what the kubelet reports to be in force; nil until it does.
	actualLimit *resource.Quantity
	qos         corev1.PodQOSClass
	// cpuBound: every container's CPU request equals its limit, so that an equal memory pair would make the pod Guaranteed.
	cpuBound bool
	resize   resizeState
	// restartsOnResize: the container asks to be restarted when its memory is resized.
	restartsOnResize bool

	// lacksMemory: the scheduler finds no node with enough memory for it.
	lacksMemory bool
}

// resizeState is what the kubelet says of the last resize of a pod.
type resizeState struct {
	condition corev1.PodConditionType // PodResizePending, PodResizeInProgress or ""
	reason    string                  // Deferred, Infeasible, Error or ""
	message   string
}

// running tells whether the pod counts as an instance of the application. A container that restarts, or one that is not ready on a
// healthy node, still does: its memory is in use, or about to be.
func (p *podFacts) running() bool {
	return p.phase == corev1.PodRunning && !p.terminating && !p.nodeLost && !p.suspected
}

// exists tells whether the pod holds, or will hold, a limit that the published plan must be safe for. One whose node is lost does not:
// if the node comes back, so does the pod, and the plan is looked at again.
func (p *podFacts) exists() bool {
	return !p.terminating && !p.nodeLost && (p.phase == corev1.PodRunning || p.phase == corev1.PodPending)
}

// manageable tells whether the operator may change the pod: it runs, and with the plan. Pods that are older than the plan are left as
// they are.
func (p *podFacts) manageable() bool { return p.running() && p.injected }

// starting tells whether the container is still to run, or has only just begun to: then it need not be a member of the group yet.
func (p *podFacts) starting(now time.Time) bool { return p.down || now.Sub(p.started) <= joinGrace }

// effectiveLimit is the limit in force as far as is known: what the kubelet reports, else what the spec asks for.
func (p *podFacts) effectiveLimit() *resource.Quantity {
	if p.actualLimit != nil {
		return p.actualLimit
	}
	return p.limit
}

// readPod takes the facts of one pod for the named container.
func readPod(pod *corev1.Pod, container string, nodes map[string]nodeFacts) podFacts {
	facts := podFacts{
		name: pod.Name, uid: pod.UID, resourceVersion: pod.ResourceVersion,
		node:    pod.Spec.NodeName,
		created: pod.CreationTimestamp.Time, started: pod.CreationTimestamp.Time,
		phase: pod.Status.Phase, terminating: pod.DeletionTimestamp != nil, qos: pod.Status.QOSClass,
		optedOut:     pod.Annotations[v1alpha1.InjectAnnotation] == "false",
		planRevision: cmp.Or(pod.Annotations[v1alpha1.PublishedAnnotation], pod.Annotations[v1alpha1.PlanAnnotation]),
		touched:      readTouched(pod.Annotations[annotationTouched]),
		injected:     pod.Annotations[v1alpha1.PlanAnnotation] != "",
		cpuBound:     cpuBound(pod.Spec.Containers) && cpuBound(pod.Spec.InitContainers),
	}
	facts.nodeLost = pod.Spec.NodeName != "" && nodes[pod.Spec.NodeName].lost
	for _, ip := range pod.Status.PodIPs {
		facts.addresses = append(facts.addresses, ip.IP)
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == v1alpha1.AgentVolume && v.ConfigMap != nil {
			facts.agent = v.ConfigMap.Name
		}
	}
	facts.readContainer(pod, container)
	facts.readConditions(pod.Status.Conditions)
	return facts
}

func (p *podFacts) readContainer(pod *corev1.Pod, container string) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container {
			p.image = c.Image
			p.limit, p.request = memoryOf(c.Resources.Limits), memoryOf(c.Resources.Requests)
			p.restartsOnResize = slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{
				ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer,
			})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name != container {
			continue
		}
		if s.Resources != nil {
			p.actualLimit = memoryOf(s.Resources.Limits)
		}
		if s.State.Running != nil {
			p.started = s.State.Running.StartedAt.Time
		}
		p.down = s.State.Waiting != nil || s.State.Terminated != nil
		p.imageID = s.ImageID
		p.diedYoung = pod.Status.Reason == "" && (diedYoung(s.State.Terminated) || diedYoung(s.LastTerminationState.Terminated))
	}
}

// youth is how long a container may run that counts as one that did not start. A JVM with an option that it refuses ends within a
// second; an application that gives up on its brokers does so within a minute or two (default.api.timeout.ms is 60 s).
const youth = 2 * time.Minute

// diedYoung tells whether a container ended soon after its start, by itself. What ends with its node, by its memory limit, or by the
// kubelet's doing (then the pod has a reason, such as Evicted), says nothing of how it was started. After a restart of the node's
// runtime the kubelet calls the reason ContainerStatusUnknown, and the runtime Unknown.
func diedYoung(end *corev1.ContainerStateTerminated) bool {
	if end == nil || slices.Contains([]string{"OOMKilled", "ContainerStatusUnknown", "Unknown"}, end.Reason) {
		return false
	}
	return end.FinishedAt.Sub(end.StartedAt.Time) < youth
}

func (p *podFacts) readConditions(conditions []corev1.PodCondition) {
	for _, c := range conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !p.terminating:
			p.readySince = c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			// The scheduler names what is short: "0/3 nodes are available: 3 Insufficient memory."
			p.lacksMemory = strings.Contains(c.Message, "Insufficient memory")
		case c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue,
			c.Type == corev1.PodResizeInProgress && c.Status == corev1.ConditionTrue && p.resize.condition == "":
			p.resize = resizeState{condition: c.Type, reason: c.Reason, message: c.Message}
		}
	}
}

// memoryOf gives the memory of a resource list, or nil if it has none.
func memoryOf(list corev1.ResourceList) *resource.Quantity {
	if quantity, ok := list[corev1.ResourceMemory]; ok {
		return &quantity
	}
	return nil
}

func cpuBound(containers []corev1.Container) bool {
	for i := range containers {
		limit, limited := containers[i].Resources.Limits[corev1.ResourceCPU]
		request, requested := containers[i].Resources.Requests[corev1.ResourceCPU]
		if !limited || requested && limit.Cmp(request) != 0 { // without a request the API server sets it to the limit
			return false
		}
	}
	return true
}

// nodeFacts is what a pass knows of a node.
type nodeFacts struct{ lost bool }

// readNode tells whether a node is lost: its kubelet has not been heard of for longer than the node controller's grace period (50 s;
// k8s.io/kubernetes pkg/controller/nodelifecycle, condition Ready Unknown). A node that says itself that it is not ready still
// runs its pods.
func readNode(node *corev1.Node) nodeFacts {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return nodeFacts{lost: true}
		}
	}
	return nodeFacts{}
}
