// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// CacheOptions returns options that keep the operator small in large clusters. It watches all pods and nodes, because pods have no label of
// the operator to select by. So the cache only has the fields that a pass reads, and only the operator's own ConfigMaps.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Transform: trimPod},
			&corev1.Node{}:      {Transform: trimNode},
			&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy}), Transform: trimConfigMap},
		},
	}
}

// trimPod keeps only a pod's owner, node, resources, images, volumes of agent and plan, status and the operator's annotations.
var trimPod = toolscache.TransformFunc(func(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone: its object was trimmed earlier
	}
	trimmed := &corev1.Pod{ObjectMeta: trimMeta(&pod.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey)}
	trimmed.Spec = corev1.PodSpec{
		NodeName:       pod.Spec.NodeName,
		Overhead:       pod.Spec.Overhead,
		Resources:      pod.Spec.Resources,
		Containers:     trimContainers(pod.Spec.Containers),
		InitContainers: trimContainers(pod.Spec.InitContainers),
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i]; v.Name == v1alpha1.AgentVolume || v.Name == v1alpha1.PlanVolume {
			trimmed.Spec.Volumes = append(trimmed.Spec.Volumes, v)
		}
	}
	trimmed.Status = *pod.Status.DeepCopy()
	return trimmed, nil
})

// trimConfigMap drops binary data: the agent, of which each StreamApp has a copy. The copies are verified at the source.
var trimConfigMap = toolscache.TransformFunc(func(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	trimmed := configMap.DeepCopy()
	trimmed.ManagedFields, trimmed.BinaryData = nil, nil
	return trimmed, nil
})

// trimNode keeps the condition Ready of a node, which decides whether it is lost, and the allocatable memory, which caps limits.
var trimNode = toolscache.TransformFunc(func(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Node{ObjectMeta: trimMeta(&node.ObjectMeta)}
	if memory, ok := node.Status.Allocatable[corev1.ResourceMemory]; ok {
		trimmed.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: memory}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			trimmed.Status.Conditions = []corev1.NodeCondition{condition}
		}
	}
	return trimmed, nil
})

func trimMeta(meta *metav1.ObjectMeta, keepLabels ...string) metav1.ObjectMeta {
	trimmed := metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		Generation: meta.Generation, CreationTimestamp: meta.CreationTimestamp,
		DeletionTimestamp: meta.DeletionTimestamp, OwnerReferences: meta.OwnerReferences,
	}
	for _, key := range keepLabels {
		if value, ok := meta.Labels[key]; ok {
			trimmed.Labels = map[string]string{key: value}
		}
	}
	for key, value := range meta.Annotations {
		if strings.HasPrefix(key, annotationPrefix) {
			if trimmed.Annotations == nil {
				trimmed.Annotations = map[string]string{}
			}
			trimmed.Annotations[key] = value
		}
	}
	return trimmed
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	trimmed := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		trimmed[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy}
	}
	return trimmed
}

// Names of the fields by which the cache is indexed.
const (
	indexPodWorkload     = "streamweir.workload" // pods: kind/name of the workload that owns them
	indexPodNode         = "streamweir.node"     // pods: the node they run on
	indexStreamAppTarget = "streamweir.target"   // StreamApps: kind/name of their target

	indexAutoscalerTarget = "streamweir.autoscaled" // autoscalers: kind/name of the workload on whose memory they act
)
