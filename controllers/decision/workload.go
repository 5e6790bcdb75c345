// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

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
	// MaxUnavailable is the number of pods that a rolling update takes away at once; 0 if it takes none, or all.
	MaxUnavailable int
	Template       *corev1.PodTemplateSpec
	// StartsInOrder: the pods of a cold start become ready one after the other, so the first one runs every task for a while.
	StartsInOrder bool
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
		StartsInOrder: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
	}
	workload.RollingOut = set.Status.ObservedGeneration < set.Generation || hasOutdatedPods(set, workload.Replicas)
	if strategy := set.Spec.UpdateStrategy; strategy.RollingUpdate != nil && strategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		workload.MaxUnavailable = shareOf(strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1), workload.Replicas, true)
	}
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

// newReplicaSetAvailable is the reason of the condition Progressing after a rollout. It stays if pods fail later
// (k8s.io/kubernetes pkg/controller/deployment/util, NewRSAvailableReason).
const newReplicaSetAvailable = "NewReplicaSetAvailable"

func deploymentOf(deployment *appsv1.Deployment) *Workload {
	workload := &Workload{
		Kind: v1alpha1.KindDeployment, Name: deployment.Name, UID: deployment.UID,
		Replicas: replicasOf(deployment.Spec.Replicas), Template: &deployment.Spec.Template,
	}
	if strategy := deployment.Spec.Strategy; strategy.Type != appsv1.RecreateDeploymentStrategyType {
		rolling := cmp.Or(strategy.RollingUpdate, &appsv1.RollingUpdateDeployment{})
		workload.MaxUnavailable = shareOf(rolling.MaxUnavailable, intstr.FromString("25%"), workload.Replicas, false)
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

// shareOf returns a number of pods that is given as a number or as a percentage of the replicas. A percentage is rounded down for a
// Deployment and up for a StatefulSet (k8s.io/api apps/v1, maxUnavailable). A value that is neither counts as the default.
func shareOf(value *intstr.IntOrString, byDefault intstr.IntOrString, replicas int, roundUp bool) int {
	share, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(value, &byDefault), replicas, roundUp)
	if err != nil {
		share, _ = intstr.GetScaledValueFromIntOrPercent(&byDefault, replicas, roundUp)
	}
	if share >= replicas { // no pod would survive to be protected
		return 0
	}
	return max(0, share)
}

// replicasOf applies the documented default of both kinds.
func replicasOf(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}
