// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"sync"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// CacheOptions returns options that keep the operator small in large clusters. It watches all pods, nodes and workloads, because none has a
// label of the operator to select by. So the cache only has the fields that a pass reads, and only the operator's own ConfigMaps.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:         {Transform: trimPod},
			&corev1.Node{}:        {Transform: trimNode},
			&appsv1.StatefulSet{}: {Transform: trimWorkload},
			&appsv1.Deployment{}:  {Transform: trimWorkload},
			&corev1.ConfigMap{}:   {Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy}), Transform: trimConfigMap},
		},
	}
}

// ClientOptions returns options for a client reading its own writes: a read waits until the cache has the pending writes of the object, a list
// for those of the kind.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}}
}

// anyVersion is for lists that need not contain the latest writes, and do not wait for those of other applications.
const anyVersion = client.DisableReadYourWritesConsistency

// trimPod keeps only a pod's owner, node, resources, images, volumes of agent and plan, status and the operator's annotations. A pod that no
// StreamApp can have as a target keeps its share of the memory of its node.
var trimPod = toolscache.TransformFunc(func(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone: its object was trimmed earlier
	}
	_, possibleTarget := decision.OwnerOf(pod)
	trimmed := &corev1.Pod{
		ObjectMeta: trimMeta(&pod.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName: intern(pod.Spec.NodeName), Overhead: trimResources(pod.Spec.Overhead), Resources: pod.Spec.Resources,
			Containers: trimContainers(pod.Spec.Containers, possibleTarget), InitContainers: trimContainers(pod.Spec.InitContainers, possibleTarget),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(intern(string(pod.Status.Phase)))},
	}
	if !possibleTarget {
		return trimmed, nil
	}
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
		trimmed.Labels = sharedLabels.get(hash, func() map[string]string {
			return map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: intern(hash)}
		})
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i]; v.Name == v1alpha1.AgentVolume || v.Name == v1alpha1.PlanVolume {
			trimmed.Spec.Volumes = append(trimmed.Spec.Volumes, v)
		}
	}
	trimmed.Status.Reason = pod.Status.Reason
	trimmed.Status.QOSClass = corev1.PodQOSClass(intern(string(pod.Status.QOSClass)))
	trimmed.Status.PodIPs = pod.Status.PodIPs
	trimmed.Status.NominatedNodeName = pod.Status.NominatedNodeName
	trimmed.Status.Conditions = trimConditions(pod.Status.Conditions)
	trimmed.Status.ContainerStatuses = trimStatuses(pod.Status.ContainerStatuses)
	return trimmed, nil
})

// podConditions are the types of conditions that a pass reads.
var podConditions = []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled, corev1.PodResizePending, corev1.PodResizeInProgress}

// trimConditions keeps the conditions that a pass reads.
func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var trimmed []corev1.PodCondition
	for i := range conditions {
		c := &conditions[i]
		scheduled := c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue
		if slices.Contains(podConditions, c.Type) && !scheduled {
			trimmed = append(trimmed, corev1.PodCondition{
				Type: corev1.PodConditionType(intern(string(c.Type))), Status: corev1.ConditionStatus(intern(string(c.Status))),
				Reason: intern(c.Reason), Message: c.Message, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return slices.Clip(trimmed)
}

// trimStatuses keeps the state, image and active limits of containers.
func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		trimmed[i] = corev1.ContainerStatus{
			Name: intern(s.Name), ImageID: intern(s.ImageID), RestartCount: s.RestartCount,
			State: s.State, LastTerminationState: s.LastTerminationState,
		}
		if s.Resources != nil {
			trimmed[i].Resources = &corev1.ResourceRequirements{Limits: trimResources(s.Resources.Limits)}
		}
	}
	return trimmed
}

// trimWorkload drops the metadata of a StatefulSet or Deployment, such as the last applied manifest, and the parts of its pod template that no
// pass reads.
var trimWorkload = toolscache.TransformFunc(func(object any) (any, error) {
	switch workload := object.(type) {
	case *appsv1.StatefulSet:
		workload.ObjectMeta = trimMeta(&workload.ObjectMeta)
		workload.Spec.VolumeClaimTemplates = nil
		trimTemplate(&workload.Spec.Template.Spec)
	case *appsv1.Deployment:
		workload.ObjectMeta = trimMeta(&workload.ObjectMeta)
		trimTemplate(&workload.Spec.Template.Spec)
	}
	return object, nil
})

func trimTemplate(spec *corev1.PodSpec) {
	spec.Affinity = nil
	spec.Tolerations = nil
	spec.TopologySpreadConstraints = nil
	spec.SecurityContext = nil
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			c.LivenessProbe = nil
			c.ReadinessProbe = nil
			c.StartupProbe = nil
			c.Lifecycle = nil
			c.SecurityContext = nil
		}
	}
}

// trimConfigMap drops binary data: the agent, of which each namespace has a copy. The copies are verified at the source.
var trimConfigMap = toolscache.TransformFunc(func(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.ConfigMap{ObjectMeta: configMap.ObjectMeta, Data: configMap.Data, Immutable: configMap.Immutable}
	trimmed.ManagedFields = nil
	return trimmed, nil
})

// trimNode keeps the condition Ready of a node, which decides whether it is lost, and its allocatable memory.
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

// trimMeta keeps the identity of an object, its controller and its annotations of the operator.
func trimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	trimmed := metav1.ObjectMeta{
		Name: meta.Name, Namespace: intern(meta.Namespace), UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		Generation: meta.Generation, CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
	for i := range meta.OwnerReferences {
		if o := &meta.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			trimmed.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: intern(o.APIVersion), Kind: intern(o.Kind), Name: intern(o.Name), UID: types.UID(intern(string(o.UID))), Controller: o.Controller,
			}}
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

// trimContainers keeps the resources of containers, and the fields of a possible target that a pass reads.
func trimContainers(containers []corev1.Container, possibleTarget bool) []corev1.Container {
	trimmed := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		resources := corev1.ResourceRequirements{Limits: trimResources(c.Resources.Limits), Requests: trimResources(c.Resources.Requests)}
		trimmed[i] = corev1.Container{Resources: resources, RestartPolicy: c.RestartPolicy}
		if possibleTarget {
			trimmed[i].Name = intern(c.Name)
			trimmed[i].Image = intern(c.Image)
			trimmed[i].ResizePolicy = c.ResizePolicy
		}
	}
	return trimmed
}

// intern returns the one copy of a text that many pods have.
func intern(text string) string { return unique.Make(text).Value() }

// sharedMaps holds one copy of equal maps. A map takes 300 to 640 bytes, and the pods of a workload have equal ones. Objects of the cache are
// not changed, so they may share it.
type sharedMaps[M any] struct {
	mu    sync.Mutex
	byKey map[string]M
}

// maxSharedMaps bounds the copies. When it is reached they are forgotten, and collected from then on.
const maxSharedMaps = 10000

var (
	sharedResources sharedMaps[corev1.ResourceList]
	sharedLabels    sharedMaps[map[string]string]
)

// get returns the copy with a key, or makes it.
func (s *sharedMaps[M]) get(key string, newMap func() M) M {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.byKey[key]; ok {
		return known
	}
	if s.byKey == nil || len(s.byKey) >= maxSharedMaps {
		s.byKey = map[string]M{}
	}
	made := newMap()
	s.byKey[strings.Clone(key)] = made
	return made
}

// trimResources returns the shared copy of the CPU and the memory in a list; nil without both.
func trimResources(list corev1.ResourceList) corev1.ResourceList {
	trimmed := corev1.ResourceList{}
	var key strings.Builder
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, ok := list[name]; ok {
			trimmed[name] = amount
			key.WriteString(string(name) + amount.String())
		}
	}
	if len(trimmed) == 0 {
		return nil
	}
	return sharedResources.get(key.String(), func() corev1.ResourceList { return trimmed })
}

// Names of the fields by which the cache is indexed.
const (
	indexPodWorkload     = "streamweir.workload" // pods: kind/name of the workload that owns them
	indexPodConfigMap    = "streamweir.config"   // pods: the ConfigMaps of agent and plan that they mount
	indexPodNode         = "streamweir.node"     // pods: the node they run on
	indexStreamAppTarget = "streamweir.target"   // StreamApps: kind/name of their target

	indexAutoscalerTarget = "streamweir.autoscaled" // autoscalers: kind/name of the workload on whose memory they act
)
