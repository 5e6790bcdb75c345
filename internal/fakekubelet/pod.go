// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconcilePod takes the next step for a pod: schedule it, end it, start its containers, or handle a resize.
func (c *Cluster) reconcilePod(ctx context.Context, s *snapshot, pod *corev1.Pod) error {
	switch {
	case pod.Spec.NodeName == "":
		if pod.DeletionTimestamp != nil {
			return nil
		}
		return c.schedule(ctx, s, pod)
	case s.isLost(pod.Spec.NodeName):
		return c.markNodeLost(ctx, s, pod)
	case pod.DeletionTimestamp != nil:
		return c.endPod(ctx, pod)
	case isTerminal(pod):
		return nil
	}
	mounted := c.mountConfigMaps(s, pod)
	return c.writePodStatus(ctx, pod, c.statusOf(s, pod, mounted))
}

// endPod removes a deleted pod from the API, as the kubelet does once its containers have ended.
func (c *Cluster) endPod(ctx context.Context, pod *corev1.Pod) error {
	now := *metav1.NewPreconditionDeleteOptions(string(pod.UID))
	now.GracePeriodSeconds = new(int64)
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// markNodeLost sets Ready=False on a pod of an unreachable node; nothing else about the pod changes. Pods on nodes of other
// Clusters are left alone.
func (c *Cluster) markNodeLost(ctx context.Context, s *snapshot, pod *corev1.Pod) error {
	if s.nodes[pod.Spec.NodeName] == nil || findCondition(pod.Status.Conditions, corev1.PodReady) == nil {
		return nil
	}
	status := *pod.Status.DeepCopy()
	setCondition(&status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
	return c.writePodStatus(ctx, pod, status)
}

// statusOf returns the pod status that the kubelet would report.
func (c *Cluster) statusOf(s *snapshot, pod *corev1.Pod, mounted bool) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.ObservedGeneration = pod.Generation
	if status.StartTime == nil {
		status.StartTime = new(metav1.Now())
	}
	setCondition(&status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	if !mounted {
		status.ContainerStatuses = waitingContainers(pod)
		return status
	}
	if status.Phase != corev1.PodRunning {
		c.startContainers(pod, &status)
	}
	c.answerResize(s, pod, &status)
	c.mu.Lock()
	ready := !c.unready[pod.Name]
	c.mu.Unlock()
	for i := range status.ContainerStatuses {
		ready = ready && status.ContainerStatuses[i].State.Running != nil
	}
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = ready
	}
	setReadyConditions(&status, ready)
	return status
}

// waitingContainers returns the statuses of containers without their volumes.
func waitingContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range pod.Spec.Containers {
		waiting := &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		statuses = append(statuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: corev1.ContainerState{Waiting: waiting}, Started: new(false),
		})
	}
	return statuses
}

// startContainers makes every container run with the resources of the pod's spec.
func (c *Cluster) startContainers(pod *corev1.Pod, status *corev1.PodStatus) {
	status.Phase = corev1.PodRunning
	status.PodIP = c.address(pod)
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	status.HostIP = "192.0.2.1"
	status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, container := range pod.Spec.InitContainers {
		started := startedContainer(pod, container)
		if !isSidecar(container) {
			done := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}
			started.State = corev1.ContainerState{Terminated: done}
		}
		started.Ready = true
		status.InitContainerStatuses = append(status.InitContainerStatuses, started)
	}
	c.mu.Lock()
	crashes := c.crashes
	c.mu.Unlock()
	for _, container := range pod.Spec.Containers {
		started := startedContainer(pod, container)
		if crashes(container) {
			crash(&started)
		}
		status.ContainerStatuses = append(status.ContainerStatuses, started)
	}
}

// crash changes the status to that of a container that has exited and waits for a restart.
func crash(status *corev1.ContainerStatus) {
	now := metav1.Now()
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: now, FinishedAt: now, ContainerID: status.ContainerID}
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	status.LastTerminationState = corev1.ContainerState{Terminated: ended}
	status.RestartCount, status.Started = 1, new(false)
}

// startedContainer returns the status of a container right after its start.
func startedContainer(pod *corev1.Pod, container corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name:               container.Name,
		Image:              container.Image,
		ImageID:            fmt.Sprintf("%s@sha256:%x", container.Image, sha256.Sum256([]byte(container.Image))),
		ContainerID:        fmt.Sprintf("containerd://%x", sha256.Sum256([]byte(string(pod.UID)+container.Name))),
		State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		Started:            new(true),
		Resources:          container.Resources.DeepCopy(),
		AllocatedResources: container.Resources.Requests.DeepCopy(),
	}
}

// setReadyConditions sets the conditions of a running pod.
func setReadyConditions(status *corev1.PodStatus, ready bool) {
	answer := corev1.ConditionFalse
	if ready {
		answer = corev1.ConditionTrue
	}
	setCondition(&status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue})
	setCondition(&status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: answer})
	setCondition(&status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: answer})
}

// writePodStatus writes a status that differs from the pod's.
func (c *Cluster) writePodStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if apiequality.Semantic.DeepEqual(status, pod.Status) {
		return nil
	}
	changed := pod.DeepCopy()
	changed.Status = status
	_, err := c.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("status of pod %s: %w", pod.Name, err)
	}
	return nil
}

// findCondition returns the condition of a type, or nil.
func findCondition(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// setCondition adds or replaces a condition. The transition time changes only with the status.
func setCondition(conditions *[]corev1.PodCondition, wanted corev1.PodCondition) {
	wanted.LastTransitionTime = metav1.Now()
	found := findCondition(*conditions, wanted.Type)
	if found == nil {
		*conditions = append(*conditions, wanted)
		return
	}
	if found.Status == wanted.Status {
		wanted.LastTransitionTime = found.LastTransitionTime
	}
	*found = wanted
}

// removeCondition drops the condition of a type.
func removeCondition(conditions *[]corev1.PodCondition, kind corev1.PodConditionType) {
	kept := (*conditions)[:0]
	for _, condition := range *conditions {
		if condition.Type != kind {
			kept = append(kept, condition)
		}
	}
	*conditions = kept
}
