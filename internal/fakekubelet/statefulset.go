// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// reconcileStatefulSet takes the next step of a StatefulSet: remove terminal pods, scale, then roll one pod.
func (c *Cluster) reconcileStatefulSet(ctx context.Context, s *snapshot, set *appsv1.StatefulSet) error {
	hash, err := templateHash(set.Spec.Template)
	if err != nil || set.DeletionTimestamp != nil {
		return err
	}
	revision := set.Name + "-" + hash
	pods := map[int]*corev1.Pod{}
	for _, pod := range s.podsOf(set) {
		if ordinal, err := ordinalOf(pod.Name); err == nil {
			pods[ordinal] = pod
		}
	}
	if err := c.writeSetStatus(ctx, set, revision, pods); err != nil {
		return err
	}
	complete, err := c.scaleSet(ctx, set, revision, pods)
	if err != nil || !complete {
		return err
	}
	return c.rollSet(ctx, set, revision, pods)
}

// ordinalOf returns the ordinal at the end of a StatefulSet pod's name.
func ordinalOf(pod string) (int, error) {
	return strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
}

// scaleSet creates missing pods and deletes terminal and surplus ones. With the OrderedReady policy it takes one step at a
// time. It reports whether every desired pod exists and is ready.
func (c *Cluster) scaleSet(
	ctx context.Context, set *appsv1.StatefulSet, revision string, pods map[int]*corev1.Pod,
) (bool, error) {
	inOrder := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	complete := true
	for ordinal := range int(*set.Spec.Replicas) {
		pod, exists := pods[ordinal]
		switch {
		case !exists:
			if err := c.createPod(ctx, set, statefulSetKind, podOfSet(set, revision, ordinal)); err != nil {
				return false, err
			}
		case isTerminal(pod) && pod.DeletionTimestamp == nil:
			if err := c.deletePod(ctx, pod); err != nil {
				return false, err
			}
		case isReady(pod):
			continue
		}
		complete = false
		if inOrder {
			return false, nil
		}
	}
	return complete, c.removeSurplus(ctx, set, pods, inOrder)
}

// removeSurplus deletes the pods beyond the desired number, the highest ordinal first.
func (c *Cluster) removeSurplus(
	ctx context.Context, set *appsv1.StatefulSet, pods map[int]*corev1.Pod, inOrder bool,
) error {
	highest := -1
	for ordinal := range pods {
		highest = max(highest, ordinal)
	}
	for ordinal := highest; ordinal >= int(*set.Spec.Replicas); ordinal-- {
		pod, exists := pods[ordinal]
		if !exists {
			continue
		}
		if pod.DeletionTimestamp == nil {
			if err := c.deletePod(ctx, pod); err != nil {
				return err
			}
		}
		if inOrder {
			return nil
		}
	}
	return nil
}

// rollSet deletes the highest pod of an older revision. It requires that every pod is ready.
func (c *Cluster) rollSet(ctx context.Context, set *appsv1.StatefulSet, revision string, pods map[int]*corev1.Pod) error {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	for ordinal := int(*set.Spec.Replicas) - 1; ordinal >= 0; ordinal-- {
		if pods[ordinal].Labels[appsv1.StatefulSetRevisionLabel] != revision {
			return c.deletePod(ctx, pods[ordinal])
		}
	}
	return nil
}

// podOfSet returns the pod of a StatefulSet with this ordinal.
func podOfSet(set *appsv1.StatefulSet, revision string, ordinal int) *corev1.Pod {
	pod := podFromTemplate(set, statefulSetKind, set.Spec.Template)
	pod.Name = fmt.Sprintf("%s-%d", set.Name, ordinal)
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	for _, claim := range set.Spec.VolumeClaimTemplates {
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod.Name}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: claim.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source},
		})
	}
	return pod
}

// writeSetStatus counts the pods into the status.
func (c *Cluster) writeSetStatus(
	ctx context.Context, set *appsv1.StatefulSet, revision string, pods map[int]*corev1.Pod,
) error {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, UpdateRevision: revision, CurrentRevision: set.Status.CurrentRevision,
		CollisionCount: set.Status.CollisionCount, Conditions: set.Status.Conditions,
	}
	for _, pod := range pods {
		status.Replicas++
		updated := pod.Labels[appsv1.StatefulSetRevisionLabel] == revision
		if isReady(pod) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
		if updated {
			status.UpdatedReplicas++
		}
	}
	if status.CurrentRevision == "" || status.UpdatedReplicas == *set.Spec.Replicas {
		status.CurrentRevision = revision
	}
	if status.CurrentRevision == revision {
		status.CurrentReplicas = status.UpdatedReplicas
	} else {
		status.CurrentReplicas = status.Replicas - status.UpdatedReplicas
	}
	if apiequality.Semantic.DeepEqual(status, set.Status) {
		return nil
	}
	set = set.DeepCopy()
	set.Status = status
	_, err := c.client.AppsV1().StatefulSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
	return err
}
