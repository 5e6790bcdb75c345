// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Workload holds the facts of the target.
type Workload struct {
	Kind     v1alpha1.WorkloadKind
	Name     string
	UID      types.UID
	Replicas int
	// RollingOut: pods of an older revision are still to be replaced.
	RollingOut bool
	Template   *corev1.PodTemplateSpec
	// StartsInOrder: the pods of a cold start become ready one after the other, so the first one runs every task for a while.
	StartsInOrder bool
	// MinReady is how long a pod must be ready before its controller continues with the next.
	MinReady time.Duration
	// CreateFailure is the message with which the controller of a Deployment reports that it cannot create pods.
	CreateFailure string
}

// workloadOf derives the facts of the target; nil if it does not exist.
func workloadOf(set *appsv1.StatefulSet, deployment *appsv1.Deployment) *Workload {
	switch {
	case set != nil:
		return statefulSetOf(set)
	case deployment != nil:
		return deploymentOf(deployment)
	default:
		return nil
	}
}

func statefulSetOf(set *appsv1.StatefulSet) *Workload {
	workload := &Workload{
		Kind: v1alpha1.KindStatefulSet, Name: set.Name, UID: set.UID, Replicas: replicasOf(set.Spec.Replicas), Template: &set.Spec.Template,
		MinReady:      time.Duration(set.Spec.MinReadySeconds) * time.Second,
		StartsInOrder: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
	}
	workload.RollingOut = set.Status.ObservedGeneration < set.Generation || hasOutdatedPods(set, workload.Replicas)
	return workload
}

// hasOutdatedPods returns whether pods of an older revision are still to be replaced, or the replacement of the last one is not ready. With a
// partition some pods stay old for as long as the user wants.
func hasOutdatedPods(set *appsv1.StatefulSet, replicas int) bool {
	strategy := set.Spec.UpdateStrategy
	if set.Status.CurrentRevision == set.Status.UpdateRevision || strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false
	}
	if strategy.RollingUpdate == nil || strategy.RollingUpdate.Partition == nil || *strategy.RollingUpdate.Partition == 0 {
		return true
	}
	return int(set.Status.UpdatedReplicas) < replicas-int(*strategy.RollingUpdate.Partition)
}

// newReplicaSetAvailable is the reason of the condition Progressing after a rollout. It stays, whatever happens to the pods later
// (k8s.io/kubernetes pkg/controller/deployment/util, NewRSAvailableReason).
const newReplicaSetAvailable = "NewReplicaSetAvailable"

func deploymentOf(deployment *appsv1.Deployment) *Workload {
	workload := &Workload{
		Kind: v1alpha1.KindDeployment, Name: deployment.Name, UID: deployment.UID,
		Replicas: replicasOf(deployment.Spec.Replicas), Template: &deployment.Spec.Template,
		MinReady: time.Duration(deployment.Spec.MinReadySeconds) * time.Second,
	}
	status := &deployment.Status
	workload.RollingOut = status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < min(status.Replicas, int32(workload.Replicas))
	for _, c := range status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == appsv1.DeploymentReplicaFailure:
			workload.CreateFailure = c.Message
		case c.Type == appsv1.DeploymentProgressing && c.Reason != newReplicaSetAvailable:
			workload.RollingOut = true // the last new pods exist, but are not available yet
		}
	}
	return workload
}

// replicasOf applies the documented default of both kinds.
func replicasOf(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}
