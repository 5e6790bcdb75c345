// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

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

// Pod holds the facts of one pod of the target.
type Pod struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Node            string
	Addresses       []string
	Created         time.Time
	// Started is the time at which the container began to run; the pod's creation as long as that is unknown.
	Started time.Time
	// ContainerDown: the container does not run. It has not started yet, or it ended and will be restarted.
	ContainerDown bool

	Phase       corev1.PodPhase
	Terminating bool
	// TerminatesBy is the end of the grace period of a pod being deleted; zero for others.
	TerminatesBy time.Time
	// NodeLost: the node's kubelet has been silent for longer than the node controller's grace period.
	NodeLost bool
	// Suspected: the connection to the pod's agent is dead, which is the first sign of a lost node.
	Suspected bool
	// ReadySince is zero while the pod is not ready.
	ReadySince time.Time

	// OptedOut: an annotation excludes the pod from injection.
	OptedOut bool
	// Injected: the admission policy has mounted a plan. That may be the plan of another StreamApp; see [Facts.readsPlan].
	Injected bool
	// NotifiedRevision is the revision of the plan that the pod was last notified of.
	NotifiedRevision string

	// Image is the image that the pod names, ImageID the digest that runs; empty until it is pulled.
	Image, ImageID string
	// AgentConfigMap and PlanConfigMap are the ConfigMaps of the agent and of the plan that the pod mounts; empty without one.
	AgentConfigMap, PlanConfigMap string
	// FailedStarts is the number of starts of the container that are known to have failed, at most conclusiveFailures.
	FailedStarts int

	// Limit and Request are the container's memory in the spec; nil if not set.
	Limit, Request *resource.Quantity
	// ActiveLimit is the limit that the kubelet reports; nil until it does.
	ActiveLimit *resource.Quantity
	// PodLimitLeft is the pod-level limit less the memory of the other containers; nil without one.
	PodLimitLeft *resource.Quantity
	// PodResources: the pod has pod-level resources, so its limits are not changed.
	PodResources bool
	// NodeCap is the largest limit that the pod's node can give; 0 if that is unknown.
	NodeCap int64
	QOS     corev1.PodQOSClass
	// CPUGuaranteed: every container's CPU request equals its limit, so an equal pair of memory would make the pod Guaranteed.
	CPUGuaranteed bool
	Resize        ResizeState
	// RestartsOnResize: the container's resizePolicy restarts it when its memory is resized.
	RestartsOnResize bool
	// UnschedulableSince is the time since which the scheduler finds no node with enough memory; zero while it finds one, or while a node
	// is on its way.
	UnschedulableSince time.Time

	// Report holds the facts from the pod's agent.
	Report PodReport
}

// ResizeState is the kubelet's state of the last resize of a pod.
type ResizeState struct {
	Condition corev1.PodConditionType // PodResizePending, PodResizeInProgress or empty
	Reason    string                  // Deferred, Infeasible, Error or empty
	Message   string
}

// Running returns whether the pod counts as an instance of the application. A container that restarts, or one that is not ready on a
// healthy node, still does: its memory is in use, or about to be.
func (p *Pod) Running() bool {
	return p.Phase == corev1.PodRunning && !p.Terminating && !p.NodeLost && !p.Suspected
}

// usesMemory returns whether the pod uses memory, or is about to. A pod on a lost node does not count: when the node returns, so does the pod, and
// the plan is computed again.
func (p *Pod) usesMemory() bool {
	return !p.Terminating && !p.NodeLost && (p.Phase == corev1.PodRunning || p.Phase == corev1.PodPending)
}

// manageable returns whether the operator may change the pod. Pods without the plan stay as they are.
func (p *Pod) manageable() bool { return p.Running() && p.Injected }

// starting returns whether the container has not run for long enough to be a member of the group.
func (p *Pod) starting(now time.Time) bool {
	return p.ContainerDown || now.Sub(p.Started) <= startingGrace
}

// startingGrace is how long a container may run before it must be a member of the group. Until then a process without a pod is its
// predecessor. The grace is longer than session.timeout.ms (45 s since Kafka 3.0), after which the broker removes the predecessor.
const startingGrace = 2 * time.Minute

// EffectiveLimit returns the limit that counts: the kubelet's, else that of the spec, and never more than the pod-level limit leaves; nil
// without a limit.
func (p *Pod) EffectiveLimit() *resource.Quantity {
	limit := cmp.Or(p.ActiveLimit, p.Limit)
	if p.PodLimitLeft != nil && (limit == nil || p.PodLimitLeft.Cmp(*limit) < 0) {
		return p.PodLimitLeft
	}
	return limit
}

// runningPods returns the pods that count as instances.
func runningPods(pods []Pod) []Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return !p.Running() })
}

// findPod returns the pod with this name; nil if there is none.
func findPod(pods []Pod, name string) *Pod {
	if i := slices.IndexFunc(pods, func(p Pod) bool { return p.Name == name }); i >= 0 {
		return &pods[i]
	}
	return nil
}

// podsOf derives the facts of all pods for a container, sorted by name.
func podsOf(w *World, container string) []Pod {
	var all []Pod
	for i := range w.Pods {
		pod := PodOf(&w.Pods[i], container, w.Nodes)
		pod.NodeCap = nodeCap(&w.Pods[i], container, w.Nodes, w.NodeRequests)
		all = append(all, pod)
	}
	slices.SortFunc(all, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// PodOf derives the facts of one pod for a container.
func PodOf(pod *corev1.Pod, container string, nodes map[string]*corev1.Node) Pod {
	facts := Pod{
		Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Node:    pod.Spec.NodeName,
		Created: pod.CreationTimestamp.Time, Started: pod.CreationTimestamp.Time,
		Phase: pod.Status.Phase, Terminating: pod.DeletionTimestamp != nil, QOS: pod.Status.QOSClass,
		OptedOut:         pod.Annotations[v1alpha1.InjectAnnotation] == "false",
		NotifiedRevision: cmp.Or(pod.Annotations[v1alpha1.PublishedAnnotation], pod.Annotations[v1alpha1.PlanAnnotation]),
		CPUGuaranteed:    cpuGuaranteed(pod.Spec.Containers) && cpuGuaranteed(pod.Spec.InitContainers),
	}
	if pod.DeletionTimestamp != nil {
		facts.TerminatesBy = pod.DeletionTimestamp.Time
	}
	if node, known := nodes[pod.Spec.NodeName]; known {
		facts.NodeLost = NodeLost(node)
	}
	for _, ip := range pod.Status.PodIPs {
		facts.Addresses = append(facts.Addresses, ip.IP)
	}
	facts.AgentConfigMap = mountedConfigMap(pod, v1alpha1.AgentVolume)
	facts.PlanConfigMap = mountedConfigMap(pod, v1alpha1.PlanVolume)
	facts.Injected = strings.HasPrefix(facts.PlanConfigMap, v1alpha1.PlanConfigMapPrefix) // a template may contain the annotation
	facts.readSpec(pod, container)
	facts.readStatus(pod, container)
	facts.readConditions(pod.Status.Conditions)
	if pod.Status.NominatedNodeName != "" { // a node on which room is being made, or one that is about to join
		facts.UnschedulableSince = time.Time{}
	}
	return facts
}

// mountedConfigMap returns the name of the ConfigMap in a volume of a pod; empty without one.
func mountedConfigMap(pod *corev1.Pod, volume string) string {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == volume && v.ConfigMap != nil {
			return v.ConfigMap.Name
		}
	}
	return ""
}

func (p *Pod) readSpec(pod *corev1.Pod, container string) {
	restart := corev1.ContainerResizePolicy{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container {
			p.Image = c.Image
			p.Limit = memoryOf(c.Resources.Limits)
			p.Request = memoryOf(c.Resources.Requests)
			p.RestartsOnResize = slices.Contains(c.ResizePolicy, restart)
		}
	}
	p.PodLimitLeft = podLimitLeft(&pod.Spec, container)
	p.PodResources = pod.Spec.Resources != nil
}

func (p *Pod) readStatus(pod *corev1.Pod, container string) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name != container {
			continue
		}
		if s.Resources != nil {
			p.ActiveLimit = memoryOf(s.Resources.Limits)
		}
		if s.State.Running != nil {
			p.Started = s.State.Running.StartedAt.Time
		}
		p.ContainerDown = s.State.Waiting != nil || s.State.Terminated != nil
		p.ImageID = s.ImageID
		if pod.Status.Reason == "" { // else the kubelet ended the pod
			p.FailedStarts = failedStarts(s)
		}
	}
}

// startupWindow is the time within which an end of the container counts as a failed start. A JVM with an invalid option or agent ends within a
// second or two. An application without brokers gives up within a minute or two (default.api.timeout.ms is 60 s), a failed liveness probe
// takes 30 s by default: neither is evidence about the start.
const startupWindow = 10 * time.Second

// conclusiveFailures is the number of failed starts after which an image counts as one that fails to start.
const conclusiveFailures = 2

// jvmStartErrors are the messages of a JVM that does not start (OpenJDK: src/java.base/share/native/libjli/emessages.h,
// src/hotspot/share/runtime/java.cpp, src/java.instrument/share/native/libinstrument). A pod has them in its termination message if
// terminationMessagePolicy is FallbackToLogsOnError.
var jvmStartErrors = []string{
	"Could not create the Java Virtual Machine",
	"Error occurred during initialization of VM",
	"Error occurred during initialization of boot layer",
	"Error opening zip file or JAR manifest missing",
	"processing of -javaagent failed",
	"Unrecognized VM option",
}

// failedStarts returns the number of starts of a container that failed, as far as its last end shows: all of them are conclusive if the JVM
// itself reports the failure.
func failedStarts(s *corev1.ContainerStatus) int {
	end := s.State.Terminated
	ended := int(s.RestartCount)
	if end == nil {
		end = s.LastTerminationState.Terminated
	}
	if s.State.Running == nil {
		ended++
	}
	switch {
	case endedByNode(end):
		return 0
	case reportsStartError(end.Message):
		return conclusiveFailures
	case end.FinishedAt.Sub(end.StartedAt.Time) < startupWindow:
		return min(max(ended, 1), conclusiveFailures)
	}
	return 0
}

// endedByNode returns whether a container has not ended, or ended with its node or by its memory limit. After a restart of the node's runtime
// the kubelet gives the reason ContainerStatusUnknown, and the runtime Unknown.
func endedByNode(end *corev1.ContainerStateTerminated) bool {
	return end == nil || slices.Contains([]string{"OOMKilled", "ContainerStatusUnknown", "Unknown"}, end.Reason)
}

func reportsStartError(message string) bool {
	return slices.ContainsFunc(jvmStartErrors, func(text string) bool { return strings.Contains(message, text) })
}

func (p *Pod) readConditions(conditions []corev1.PodCondition) {
	for _, c := range conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !p.Terminating:
			p.ReadySince = c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			// The scheduler names the missing resource: "0/3 nodes are available: 3 Insufficient memory."
			if strings.Contains(c.Message, "Insufficient memory") {
				p.UnschedulableSince = c.LastTransitionTime.Time
			}
		case c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue,
			c.Type == corev1.PodResizeInProgress && c.Status == corev1.ConditionTrue && p.Resize.Condition == "":
			p.Resize = ResizeState{Condition: c.Type, Reason: c.Reason, Message: c.Message}
		}
	}
}
