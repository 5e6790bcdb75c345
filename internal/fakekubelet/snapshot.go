// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// snapshot contains the objects of one pass.
type snapshot struct {
	nodes       map[string]*corev1.Node
	pods        []corev1.Pod
	configMaps  map[string]*corev1.ConfigMap
	sets        []appsv1.StatefulSet
	deployments []appsv1.Deployment
	replicaSets []appsv1.ReplicaSet
}

// pass takes a snapshot and the next step for each object. An error of one step does not stop the others.
func (c *Cluster) pass(ctx context.Context) error {
	s, err := c.gather(ctx)
	if err != nil {
		return err
	}
	errs := []error{c.collectOrphans(ctx, s)}
	for i := range s.sets {
		errs = append(errs, c.reconcileStatefulSet(ctx, s, &s.sets[i]))
	}
	for i := range s.deployments {
		errs = append(errs, c.reconcileDeployment(ctx, s, &s.deployments[i]))
	}
	for i := range s.replicaSets {
		errs = append(errs, c.reconcileReplicaSet(ctx, s, &s.replicaSets[i]))
	}
	for i := range s.pods {
		errs = append(errs, c.reconcilePod(ctx, s, &s.pods[i]))
	}
	c.forget(s)
	return errors.Join(errs...)
}

// gather lists the namespace, and the nodes of this Cluster.
func (c *Cluster) gather(ctx context.Context) (*snapshot, error) {
	ns, all := c.options.Namespace, metav1.ListOptions{}
	pods, err := c.client.CoreV1().Pods(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	configMaps, err := c.client.CoreV1().ConfigMaps(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	sets, err := c.client.AppsV1().StatefulSets(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("listing StatefulSets: %w", err)
	}
	deployments, err := c.client.AppsV1().Deployments(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	replicaSets, err := c.client.AppsV1().ReplicaSets(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	s := &snapshot{
		nodes: map[string]*corev1.Node{}, pods: pods.Items, configMaps: map[string]*corev1.ConfigMap{},
		sets: sets.Items, deployments: deployments.Items, replicaSets: replicaSets.Items,
	}
	for i := range configMaps.Items {
		s.configMaps[configMaps.Items[i].Name] = &configMaps.Items[i]
	}
	return s, c.gatherNodes(ctx, s)
}

// gatherNodes reads the nodes of this Cluster; deleted ones are left out.
func (c *Cluster) gatherNodes(ctx context.Context, s *snapshot) error {
	for _, node := range c.options.Nodes {
		found, err := c.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading node %s: %w", node.Name, err)
		}
		s.nodes[node.Name] = found
	}
	return nil
}

// podsOf returns the pods that owner controls.
func (s *snapshot) podsOf(owner metav1.Object) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range s.pods {
		if metav1.IsControlledBy(&s.pods[i], owner) {
			pods = append(pods, &s.pods[i])
		}
	}
	return pods
}

// owners returns the UIDs of all workloads, ReplicaSets included.
func (s *snapshot) owners() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for i := range s.sets {
		uids[s.sets[i].UID] = true
	}
	for i := range s.deployments {
		uids[s.deployments[i].UID] = true
	}
	for i := range s.replicaSets {
		uids[s.replicaSets[i].UID] = true
	}
	return uids
}

// collectOrphans deletes the pods and ReplicaSets of deleted workloads.
func (c *Cluster) collectOrphans(ctx context.Context, s *snapshot) error {
	alive := s.owners()
	orphan := func(o metav1.Object) bool {
		owner := metav1.GetControllerOf(o)
		isWorkload := owner != nil && (owner.Kind == "StatefulSet" || owner.Kind == "Deployment" || owner.Kind == "ReplicaSet")
		return isWorkload && !alive[owner.UID] && o.GetDeletionTimestamp() == nil
	}
	var errs []error
	for i := range s.replicaSets {
		if orphan(&s.replicaSets[i]) {
			errs = append(errs, c.client.AppsV1().ReplicaSets(c.options.Namespace).Delete(ctx, s.replicaSets[i].Name, metav1.DeleteOptions{}))
		}
	}
	for i := range s.pods {
		if orphan(&s.pods[i]) {
			errs = append(errs, c.deletePod(ctx, &s.pods[i]))
		}
	}
	return errors.Join(errs...)
}

// deletePod deletes a pod, as a controller does.
func (c *Cluster) deletePod(ctx context.Context, pod *corev1.Pod) error {
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
