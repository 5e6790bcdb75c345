// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
)

// reconcileDeployment takes the next step of a Deployment: the ReplicaSet of its template is created and grows, older ones shrink.
func (c *Cluster) reconcileDeployment(ctx context.Context, s *snapshot, deployment *appsv1.Deployment) error {
	hash, err := templateHash(deployment.Spec.Template)
	if err != nil || deployment.DeletionTimestamp != nil {
		return err
	}
	var current *appsv1.ReplicaSet
	var older []*appsv1.ReplicaSet
	for i := range s.replicaSets {
		set := &s.replicaSets[i]
		switch {
		case !metav1.IsControlledBy(set, deployment):
		case set.Name == deployment.Name+"-"+hash:
			current = set
		default:
			older = append(older, set)
		}
	}
	if current == nil {
		return c.createReplicaSet(ctx, deployment, hash)
	}
	if err := c.writeDeploymentStatus(ctx, deployment, current, older); err != nil || deployment.Spec.Paused {
		return err
	}
	return c.rollDeployment(ctx, deployment, current, older)
}

// createReplicaSet creates the ReplicaSet of the Deployment's template, without pods yet.
func (c *Cluster) createReplicaSet(ctx context.Context, deployment *appsv1.Deployment, hash string) error {
	template := *deployment.Spec.Template.DeepCopy()
	selector := deployment.Spec.Selector.DeepCopy()
	for _, labels := range []*map[string]string{&template.Labels, &selector.MatchLabels} {
		if *labels == nil {
			*labels = map[string]string{}
		}
		(*labels)[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: deployment.Name + "-" + hash, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, deploymentKind)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: selector, Template: template},
	}
	_, err := c.client.AppsV1().ReplicaSets(set.Namespace).Create(ctx, set, metav1.CreateOptions{})
	return err
}

// rollDeployment moves replicas from the older ReplicaSets to the current one, within maxSurge and maxUnavailable.
func (c *Cluster) rollDeployment(
	ctx context.Context, deployment *appsv1.Deployment, current *appsv1.ReplicaSet, older []*appsv1.ReplicaSet,
) error {
	wanted := *deployment.Spec.Replicas
	surge, unavailable, err := rollingLimits(deployment)
	if err != nil {
		return err
	}
	var old, ready int32
	for _, set := range older {
		old += max(*set.Spec.Replicas, set.Status.Replicas)
		ready += set.Status.ReadyReplicas
	}
	size := max(min(wanted, wanted+surge-old), min(*current.Spec.Replicas, wanted))
	errs := []error{c.scaleReplicaSet(ctx, current, size)}
	spare := ready + current.Status.ReadyReplicas - (wanted - unavailable)
	for _, set := range older {
		broken := *set.Spec.Replicas - min(*set.Spec.Replicas, set.Status.ReadyReplicas)
		take := min(*set.Spec.Replicas, broken+max(0, spare))
		spare -= take - broken
		errs = append(errs, c.scaleReplicaSet(ctx, set, *set.Spec.Replicas-take))
	}
	return errors.Join(errs...)
}

// rollingLimits returns the number of pods that a rollout may have above and below the desired number. Recreate: none
// above, all below.
func rollingLimits(deployment *appsv1.Deployment) (surge, unavailable int32, err error) {
	wanted, rolling := *deployment.Spec.Replicas, deployment.Spec.Strategy.RollingUpdate
	if deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || rolling == nil {
		return 0, wanted, nil
	}
	up, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(wanted), true)
	if err != nil {
		return 0, 0, fmt.Errorf("maxSurge of Deployment %s: %w", deployment.Name, err)
	}
	down, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(wanted), false)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable of Deployment %s: %w", deployment.Name, err)
	}
	if up == 0 && down == 0 {
		down = 1
	}
	return int32(up), int32(down), nil
}

// scaleReplicaSet sets the desired number of pods.
func (c *Cluster) scaleReplicaSet(ctx context.Context, set *appsv1.ReplicaSet, replicas int32) error {
	if *set.Spec.Replicas == replicas {
		return nil
	}
	set = set.DeepCopy()
	set.Spec.Replicas = &replicas
	_, err := c.client.AppsV1().ReplicaSets(set.Namespace).Update(ctx, set, metav1.UpdateOptions{})
	return err
}

// writeDeploymentStatus adds up the ReplicaSets' status.
func (c *Cluster) writeDeploymentStatus(
	ctx context.Context, deployment *appsv1.Deployment, current *appsv1.ReplicaSet, older []*appsv1.ReplicaSet,
) error {
	status := *deployment.Status.DeepCopy()
	status.ObservedGeneration = deployment.Generation
	status.UpdatedReplicas = current.Status.Replicas
	status.Replicas, status.ReadyReplicas = 0, 0
	for _, set := range append(slices.Clone(older), current) {
		status.Replicas += set.Status.Replicas
		status.ReadyReplicas += set.Status.ReadyReplicas
	}
	status.AvailableReplicas = status.ReadyReplicas
	status.UnavailableReplicas = max(0, *deployment.Spec.Replicas-status.ReadyReplicas)
	if apiequality.Semantic.DeepEqual(status, deployment.Status) {
		return nil
	}
	deployment = deployment.DeepCopy()
	deployment.Status = status
	_, err := c.client.AppsV1().Deployments(deployment.Namespace).UpdateStatus(ctx, deployment, metav1.UpdateOptions{})
	return err
}

// reconcileReplicaSet creates or deletes pods until the desired number is alive, and writes the status.
func (c *Cluster) reconcileReplicaSet(ctx context.Context, s *snapshot, set *appsv1.ReplicaSet) error {
	if set.DeletionTimestamp != nil {
		return nil
	}
	var alive []*corev1.Pod
	for _, pod := range s.podsOf(set) {
		if pod.DeletionTimestamp == nil && !isTerminal(pod) {
			alive = append(alive, pod)
		}
	}
	var failed error
	for range int(*set.Spec.Replicas) - len(alive) {
		pod := podFromTemplate(set, replicaSetKind, set.Spec.Template)
		pod.GenerateName = set.Name + "-"
		if failed = c.createPod(ctx, set, replicaSetKind, pod); failed != nil {
			break
		}
	}
	slices.SortFunc(alive, surplusFirst)
	errs := []error{failed}
	for _, pod := range alive[:max(0, len(alive)-int(*set.Spec.Replicas))] {
		errs = append(errs, c.deletePod(ctx, pod))
	}
	return errors.Join(append(errs, c.writeReplicaSetStatus(ctx, set, alive, failed))...)
}

// surplusFirst sorts pods in the order in which a ReplicaSet deletes them: unready before ready, then the youngest.
func surplusFirst(a, b *corev1.Pod) int {
	rank := func(pod *corev1.Pod) int {
		if isReady(pod) {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(b.Name, a.Name),
	)
}

// writeReplicaSetStatus counts the pods alive, and sets ReplicaFailure while creations are refused.
func (c *Cluster) writeReplicaSetStatus(
	ctx context.Context, set *appsv1.ReplicaSet, alive []*corev1.Pod, failed error,
) error {
	status := appsv1.ReplicaSetStatus{ObservedGeneration: set.Generation, Replicas: int32(len(alive))}
	for _, pod := range alive {
		if isReady(pod) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
	}
	status.FullyLabeledReplicas = status.Replicas
	if failed != nil {
		status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			Reason: "FailedCreate", Message: failed.Error(), LastTransitionTime: metav1.Now(),
		}}
		if len(set.Status.Conditions) > 0 {
			status.Conditions = set.Status.Conditions // The names in the message change with every attempt.
		}
	}
	if apiequality.Semantic.DeepEqual(status, set.Status) {
		return nil
	}
	set = set.DeepCopy()
	set.Status = status
	_, err := c.client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
	return err
}
