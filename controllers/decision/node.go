// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// NodeLost returns whether a node is lost: it does not exist, or its kubelet has been silent for longer than the node controller's grace
// period (50 s; k8s.io/kubernetes pkg/controller/nodelifecycle, condition Ready Unknown). A node that reports itself as not ready still
// runs its pods.
func NodeLost(node *corev1.Node) bool {
	if node == nil {
		return true
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// MemoryRequest returns the memory that the scheduler reserves for a pod on its node, in bytes: that of containers, init containers and
// overhead, or of the pod itself. A pod that has ended reserves none.
func MemoryRequest(pod *corev1.Pod) int64 {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	return wholeBytes(requests[corev1.ResourceMemory])
}

// nodeCap returns the largest memory limit that the node of a pod can give to a container of it: the allocatable memory less the requests of
// the other pods and containers. A limit above it is worth nothing: the node would run out of memory first. It is 0 if the node
// is not known.
func nodeCap(pod *corev1.Pod, container string, nodes map[string]*corev1.Node, requests map[string]int64) int64 {
	node := nodes[pod.Spec.NodeName]
	if node == nil {
		return 0
	}
	allocatable := memoryOf(node.Status.Allocatable)
	if allocatable == nil {
		return 0
	}
	own := int64(0)
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container {
			own = c.Resources.Requests.Memory().Value()
		}
	}
	return max(1, allocatable.Value()-max(0, requests[pod.Spec.NodeName]-own))
}
