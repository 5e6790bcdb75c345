// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// createNode creates a ready Node unless it exists. The API server taints a new node as not ready; createNode removes the
// taint, as the node lifecycle controller does.
func (c *Cluster) createNode(ctx context.Context, node Node) error {
	nodes := c.client.CoreV1().Nodes()
	labels := map[string]string{corev1.LabelHostname: node.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	allocatable := corev1.ResourceList{
		corev1.ResourceMemory: node.Memory,
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourcePods:   resource.MustParse("500"),
	}
	return c.updateNode(ctx, node.Name, corev1.ConditionTrue, nil, func(status *corev1.NodeStatus) {
		status.Capacity, status.Allocatable = allocatable, allocatable
		status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	})
}

// updateNode sets taints and the Ready condition of a node, and applies change to its status.
func (c *Cluster) updateNode(
	ctx context.Context, name string, ready corev1.ConditionStatus, taints []corev1.Taint, change func(*corev1.NodeStatus),
) error {
	nodes := c.client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = taints
		if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		now := metav1.Now()
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: reasonOfReady[ready], LastHeartbeatTime: now, LastTransitionTime: now,
		}}
		change(&node.Status)
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// reasonOfReady contains the reason of the kubelet and of the node lifecycle controller for a status of the Ready condition.
var reasonOfReady = map[corev1.ConditionStatus]string{
	corev1.ConditionTrue:    "KubeletReady",
	corev1.ConditionUnknown: "NodeStatusUnknown",
}

// LoseNode simulates the failure of a node as the API shows it 40 to 55 s later: Ready=Unknown, the unreachable taints,
// and its pods no longer Ready but still Running. No kubelet acts for these pods any more: a deleted pod stays Terminating.
func (c *Cluster) LoseNode(ctx context.Context, name string) error {
	taints := []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())},
	}
	if err := c.updateNode(ctx, name, corev1.ConditionUnknown, taints, func(*corev1.NodeStatus) {}); err != nil {
		return fmt.Errorf("losing node %s: %w", name, err)
	}
	return nil
}

// isLost reports whether the node is deleted or unreachable.
func (s *snapshot) isLost(node string) bool {
	found, exists := s.nodes[node]
	if !exists {
		return true
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status != corev1.ConditionTrue
		}
	}
	return true
}

// schedule binds a pod to the node with the fewest pods and enough memory, or marks it as unschedulable.
func (c *Cluster) schedule(ctx context.Context, s *snapshot, pod *corev1.Pod) error {
	request := memoryRequest(pod)
	var fitting []string
	for name, node := range s.nodes {
		if !s.isLost(name) && !node.Spec.Unschedulable && s.freeMemory(name) >= request {
			fitting = append(fitting, name)
		}
	}
	if len(fitting) == 0 {
		return c.markUnschedulable(ctx, s, pod)
	}
	slices.SortFunc(fitting, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(s.podsOn(a)), len(s.podsOn(b))), cmp.Compare(a, b))
	})
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: fitting[0]},
	}
	if err := c.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding pod %s: %w", pod.Name, err)
	}
	pod.Spec.NodeName = fitting[0] // Counted by the next pod of this pass.
	return nil
}

// markUnschedulable sets PodScheduled=False as the scheduler does.
func (c *Cluster) markUnschedulable(ctx context.Context, s *snapshot, pod *corev1.Pod) error {
	status := *pod.Status.DeepCopy()
	setCondition(&status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: fmt.Sprintf("0/%[1]d nodes are available: %[1]d Insufficient memory.", len(s.nodes)),
	})
	return c.writePodStatus(ctx, pod, status)
}

// podsOn returns the pods that are bound to a node and not terminal.
func (s *snapshot) podsOn(node string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range s.pods {
		if s.pods[i].Spec.NodeName == node && !isTerminal(&s.pods[i]) {
			pods = append(pods, &s.pods[i])
		}
	}
	return pods
}

// freeMemory returns the node's allocatable memory less the requests of its pods, in bytes.
func (s *snapshot) freeMemory(node string) int64 {
	free := s.nodes[node].Status.Allocatable.Memory().Value()
	for _, pod := range s.podsOn(node) {
		free -= memoryRequest(pod)
	}
	return free
}

// memoryRequest adds up the memory requests of the pod's containers and sidecars, in bytes.
func memoryRequest(pod *corev1.Pod) int64 {
	var sum int64
	for _, container := range runningContainers(pod) {
		sum += container.Resources.Requests.Memory().Value()
	}
	return sum
}

// runningContainers returns the containers that run as long as the pod: sidecars, then ordinary ones.
func runningContainers(pod *corev1.Pod) []corev1.Container {
	var running []corev1.Container
	for _, container := range pod.Spec.InitContainers {
		if isSidecar(container) {
			running = append(running, container)
		}
	}
	return append(running, pod.Spec.Containers...)
}

// isSidecar reports whether an init container keeps running next to the ordinary ones.
func isSidecar(container corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
