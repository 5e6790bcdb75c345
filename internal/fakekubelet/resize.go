// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Answer is the reaction of the kubelet to a resize.
type Answer string

const (
	// Apply applies the requested resources. A lower memory limit is refused as with Fail: a real kubelet compares it with
	// the usage, which includes the page cache and therefore reaches the limit.
	Apply Answer = "Apply"
	// Defer reports that the node has not enough free memory now: PodResizePending with reason Deferred.
	Defer Answer = "Defer"
	// Refuse reports that the node can never apply it: PodResizePending with reason Infeasible.
	Refuse Answer = "Refuse"
	// Delay reports PodResizeInProgress, and leaves it there.
	Delay Answer = "Delay"
	// Fail reports that the change failed: PodResizeInProgress with reason Error.
	Fail Answer = "Fail"
	// Ignore does and reports nothing, as a kubelet that has not observed the resize.
	Ignore Answer = "Ignore"
)

// AnswerResizes sets the answer to the resizes of a pod, including a pending one. An empty name sets the default for all
// pods. The initial default is Apply.
func (c *Cluster) AnswerResizes(pod string, answer Answer) {
	c.mu.Lock()
	c.answers[pod] = answer
	c.mu.Unlock()
	c.wake()
}

// answerFor returns the answer for a pod.
func (c *Cluster) answerFor(pod string) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{pod, ""} {
		if answer, set := c.answers[name]; set {
			return answer
		}
	}
	return Apply
}

// answerResize changes the status of a running pod according to its answer, if a container's resources differ from the spec.
func (c *Cluster) answerResize(s *snapshot, pod *corev1.Pod, status *corev1.PodStatus) {
	if !resizeWaits(pod, status) {
		removeCondition(&status.Conditions, corev1.PodResizePending)
		removeCondition(&status.Conditions, corev1.PodResizeInProgress)
		return
	}
	answer := c.answerFor(pod.Name)
	lowered := loweredLimit(pod, status)
	switch {
	case answer == Ignore:
		status.ObservedGeneration = pod.Status.ObservedGeneration
	case answer == Defer, answer == Apply && s.freeMemory(pod.Spec.NodeName) < 0:
		setResizePending(pod, status, corev1.PodReasonDeferred, "Node didn't have enough resource: memory")
	case answer == Refuse:
		setResizePending(pod, status, corev1.PodReasonInfeasible, "In-place resize of this pod is not feasible on the node")
	case answer == Delay:
		setResizeInProgress(pod, status, "", "")
	case answer == Fail:
		setResizeInProgress(pod, status, corev1.PodReasonError, "failed to update container resources")
	case lowered != "":
		setResizeInProgress(pod, status, corev1.PodReasonError, "cannot decrease memory limits: "+lowered)
	default:
		applyResize(pod, status)
	}
}

// resizeWaits reports whether the resources of a running container differ from the spec.
func resizeWaits(pod *corev1.Pod, status *corev1.PodStatus) bool {
	for _, container := range runningContainers(pod) {
		if actual := findContainer(status, container.Name); actual != nil && actual.Resources != nil &&
			!apiequality.Semantic.DeepEqual(*actual.Resources, container.Resources) {
			return true
		}
	}
	return false
}

// loweredLimit returns the kubelet's message for the first container with a memory limit below its usage, or "".
func loweredLimit(pod *corev1.Pod, status *corev1.PodStatus) string {
	for _, container := range runningContainers(pod) {
		actual := findContainer(status, container.Name)
		if actual == nil || actual.Resources == nil {
			continue
		}
		from, to := actual.Resources.Limits.Memory(), container.Resources.Limits.Memory()
		if !to.IsZero() && to.Cmp(*from) < 0 {
			return fmt.Sprintf("attempting to set container %q memory limit (%d) below current usage (%d)",
				container.Name, to.Value(), from.Value())
		}
	}
	return ""
}

// applyResize sets the resources of every running container to those of the spec.
func applyResize(pod *corev1.Pod, status *corev1.PodStatus) {
	for _, container := range runningContainers(pod) {
		if actual := findContainer(status, container.Name); actual != nil {
			actual.Resources = container.Resources.DeepCopy()
			actual.AllocatedResources = container.Resources.Requests.DeepCopy()
		}
	}
	removeCondition(&status.Conditions, corev1.PodResizePending)
	removeCondition(&status.Conditions, corev1.PodResizeInProgress)
}

// setResizePending reports a resize that the kubelet has not begun.
func setResizePending(pod *corev1.Pod, status *corev1.PodStatus, reason, message string) {
	removeCondition(&status.Conditions, corev1.PodResizeInProgress)
	setCondition(&status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
		Reason: reason, Message: message,
	})
}

// setResizeInProgress reports a resize in progress or, with a reason, a failed one.
func setResizeInProgress(pod *corev1.Pod, status *corev1.PodStatus, reason, message string) {
	removeCondition(&status.Conditions, corev1.PodResizePending)
	for _, container := range runningContainers(pod) {
		if actual := findContainer(status, container.Name); actual != nil {
			actual.AllocatedResources = container.Resources.Requests.DeepCopy()
		}
	}
	setCondition(&status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
		Reason: reason, Message: message,
	})
}

// findContainer returns the status of a container or init container, or nil.
func findContainer(status *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
	}
	return nil
}

// RestartContainer ends a container and starts it again in place, as after a crash or an OOM kill (reason OOMKilled,
// exit code 137). The new one runs with the resources of the spec, including a lower limit, and reads its ConfigMaps as
// of the last change of the pod.
func (c *Cluster) RestartContainer(ctx context.Context, pod, container, reason string, exitCode int32) error {
	pods := c.client.CoreV1().Pods(c.options.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := pods.Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := findContainer(&found.Status, container)
		if status == nil || status.State.Running == nil {
			return fmt.Errorf("container %q does not run", container)
		}
		ended := &corev1.ContainerStateTerminated{
			Reason: reason, ExitCode: exitCode, StartedAt: status.State.Running.StartedAt, FinishedAt: metav1.Now(),
		}
		status.LastTerminationState = corev1.ContainerState{Terminated: ended}
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		status.RestartCount++
		for _, wanted := range runningContainers(found) {
			if wanted.Name == container {
				status.Resources = wanted.Resources.DeepCopy()
				status.AllocatedResources = wanted.Resources.Requests.DeepCopy()
			}
		}
		_, err = pods.UpdateStatus(ctx, found, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("restarting container %s of pod %s: %w", container, pod, err)
	}
	return nil
}
