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

// world is everything that one pass decides on.
type world struct {
	nodes       map[string]*corev1.Node
	pods        []corev1.Pod
	configMaps  map[string]*corev1.ConfigMap
	sets        []appsv1.StatefulSet
	deployments []appsv1.Deployment
	replicaSets []appsv1.ReplicaSet
}

// pass reads the world and does the next step for each object. Independent steps go on if one fails.
func (c *Cluster) pass(ctx context.Context) error {
	w, err := c.gather(ctx)
	if err != nil {
		return err
	}
	errs := []error{c.collectOrphans(ctx, w)}
	for i := range w.sets {
		errs = append(errs, c.playStatefulSet(ctx, w, &w.sets[i]))
	}
	for i := range w.deployments {
		errs = append(errs, c.playDeployment(ctx, w, &w.deployments[i]))
	}
	for i := range w.replicaSets {
		errs = append(errs, c.playReplicaSet(ctx, w, &w.replicaSets[i]))
	}
	for i := range w.pods {
		errs = append(errs, c.playPod(ctx, w, &w.pods[i]))
	}
	c.forget(w)
	return errors.Join(errs...)
}

// gather lists the namespace, and the nodes of this Cluster.
func (c *Cluster) gather(ctx context.Context) (*world, error) {
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
	w := &world{
		nodes: map[string]*corev1.Node{}, pods: pods.Items, configMaps: map[string]*corev1.ConfigMap{},
		sets: sets.Items, deployments: deployments.Items, replicaSets: replicaSets.Items,
	}
	for i := range configMaps.Items {
		w.configMaps[configMaps.Items[i].Name] = &configMaps.Items[i]
	}
	return w, c.gatherNodes(ctx, w)
}

// gatherNodes reads the nodes of this Cluster; one that was deleted is left out.
func (c *Cluster) gatherNodes(ctx context.Context, w *world) error {
	for _, node := range c.options.Nodes {
		found, err := c.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading node %s: %w", node.Name, err)
		}
		w.nodes[node.Name] = found
	}
	return nil
}

// podsOf returns the pods that owner controls.
func (w *world) podsOf(owner metav1.Object) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range w.pods {
		if metav1.IsControlledBy(&w.pods[i], owner) {
			pods = append(pods, &w.pods[i])
		}
	}
	return pods
}

// owners returns the UIDs of all workloads, ReplicaSets included.
func (w *world) owners() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for i := range w.sets {
		uids[w.sets[i].UID] = true
	}
	for i := range w.deployments {
		uids[w.deployments[i].UID] = true
	}
	for i := range w.replicaSets {
		uids[w.replicaSets[i].UID] = true
	}
	return uids
}

// collectOrphans deletes the pods and ReplicaSets whose workload is gone.
func (c *Cluster) collectOrphans(ctx context.Context, w *world) error {
	alive := w.owners()
	orphan := func(o metav1.Object) bool {
		owner := metav1.GetControllerOf(o)
		isWorkload := owner != nil && (owner.Kind == "StatefulSet" || owner.Kind == "Deployment" || owner.Kind == "ReplicaSet")
		return isWorkload && !alive[owner.UID] && o.GetDeletionTimestamp() == nil
	}
	var errs []error
	for i := range w.replicaSets {
		if orphan(&w.replicaSets[i]) {
			errs = append(errs, c.client.AppsV1().ReplicaSets(c.options.Namespace).Delete(ctx, w.replicaSets[i].Name, metav1.DeleteOptions{}))
		}
	}
	for i := range w.pods {
		if orphan(&w.pods[i]) {
			errs = append(errs, c.deletePod(ctx, &w.pods[i]))
		}
	}
	return errors.Join(errs...)
}

// deletePod asks for the end of a pod, as a controller does.
func (c *Cluster) deletePod(ctx context.Context, pod *corev1.Pod) error {
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
