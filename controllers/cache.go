// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// CacheOptions returns options that keep the operator small in large clusters. It watches all pods, nodes and workloads, because they have no
// label of the operator to select by. So the cache only has the fields that a pass reads, and only the operator's own ConfigMaps.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:         {Transform: (&podTrimmer{}).trim},
			&corev1.Node{}:        {Transform: trimNode},
			&corev1.ConfigMap{}:   {Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy}), Transform: trimConfigMap},
			&appsv1.StatefulSet{}: {Transform: trimStatefulSet},
			&appsv1.Deployment{}:  {Transform: trimDeployment},
		},
	}
}

// podTrimmer trims pods. Equal parts of different pods are shared.
type podTrimmer struct {
	lists  table[amounts, corev1.ResourceList]
	texts  table[string, string]
	labels table[string, map[string]string]
}

// trim keeps the name, node, phase and resources of a pod, with which it takes part in the memory of its node. A pod that may belong to a
// target also keeps its owner, images, volumes of agent and plan, annotations of the operator, and state.
func (t *podTrimmer) trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone: its object was trimmed earlier
	}
	_, candidate := decision.OwnerOf(pod)
	trimmed := &corev1.Pod{
		Spec: corev1.PodSpec{
			NodeName: t.text(pod.Spec.NodeName), Overhead: t.resourceList(pod.Spec.Overhead), Volumes: trimVolumes(pod.Spec.Volumes),
			Containers: t.containers(pod.Spec.Containers, candidate), InitContainers: t.containers(pod.Spec.InitContainers, candidate),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if pod.Spec.Resources != nil {
		trimmed.Spec.Resources = new(t.requirements(pod.Spec.Resources))
	}
	if !candidate {
		trimmed.ObjectMeta = metav1.ObjectMeta{Namespace: t.text(pod.Namespace), Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
		return trimmed, nil
	}
	trimmed.ObjectMeta = trimMeta(&pod.ObjectMeta)
	trimmed.Namespace = t.text(pod.Namespace)
	if hash, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		trimmed.Labels = t.labels.share(hash, map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash})
	}
	trimmed.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Reason: pod.Status.Reason, QOSClass: pod.Status.QOSClass, PodIPs: pod.Status.PodIPs,
		NominatedNodeName: pod.Status.NominatedNodeName, Conditions: trimConditions(pod.Status.Conditions),
		ContainerStatuses: t.statuses(pod.Status.ContainerStatuses),
	}
	return trimmed, nil
}

// trimVolumes keeps the volumes of agent and plan.
func trimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var trimmed []corev1.Volume
	for i := range volumes {
		if v := &volumes[i]; v.Name == v1alpha1.AgentVolume || v.Name == v1alpha1.PlanVolume {
			trimmed = append(trimmed, *v)
		}
	}
	return trimmed
}

// containers keeps the resources of containers, and the restart policy, with which an init container is a sidecar. Those of a pod that may
// belong to a target also keep the name, the image and the resize policy.
func (t *podTrimmer) containers(containers []corev1.Container, candidate bool) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	trimmed := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		trimmed[i] = corev1.Container{Resources: t.requirements(&c.Resources), RestartPolicy: c.RestartPolicy}
		if candidate {
			trimmed[i].Name = t.text(c.Name)
			trimmed[i].Image = t.text(c.Image)
			trimmed[i].ResizePolicy = c.ResizePolicy
		}
	}
	return trimmed
}

// trimConditions keeps the conditions of readiness, scheduling and resizes.
func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	kept := func(c *corev1.PodCondition) bool {
		switch c.Type {
		case corev1.PodReady:
			return c.Status == corev1.ConditionTrue
		case corev1.PodScheduled:
			return c.Status != corev1.ConditionTrue
		default:
			return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
		}
	}
	var trimmed []corev1.PodCondition
	for i := range conditions {
		if kept(&conditions[i]) {
			trimmed = append(trimmed, conditions[i])
		}
	}
	return slices.Clip(trimmed)
}

// statuses keeps the state of containers, their restarts, the digests of their images and the active resources.
func (t *podTrimmer) statuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		trimmed[i] = corev1.ContainerStatus{
			Name: t.text(s.Name), ImageID: t.text(s.ImageID), RestartCount: s.RestartCount,
			State: trimState(s.State), LastTerminationState: trimState(s.LastTerminationState),
		}
		if s.Resources != nil {
			trimmed[i].Resources = new(t.requirements(s.Resources))
		}
	}
	return trimmed
}

// trimState drops the ID of the container and the message of a waiting one.
func trimState(state corev1.ContainerState) corev1.ContainerState {
	trimmed := corev1.ContainerState{Running: state.Running}
	if state.Waiting != nil {
		trimmed.Waiting = &corev1.ContainerStateWaiting{Reason: state.Waiting.Reason}
	}
	if state.Terminated != nil {
		end := *state.Terminated
		end.ContainerID = ""
		trimmed.Terminated = &end
	}
	return trimmed
}

// table has one value for each key, so that equal parts of many objects are one object in the cache.
type table[K comparable, V any] struct {
	mu    sync.Mutex
	byKey map[K]V
}

// maxShared bounds the values in a table that may be in no object any more. The table then starts anew.
const maxShared = 10_000

// share returns the value with a key, which is the given one if there was none. It must not be changed.
func (t *table[K, V]) share(key K, value V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if shared, known := t.byKey[key]; known {
		return shared
	}
	if t.byKey == nil || len(t.byKey) >= maxShared {
		t.byKey = map[K]V{}
	}
	t.byKey[key] = value
	return value
}

// amounts are the resources of a list: thousandths of a CPU and bytes of memory; -1 if not set.
type amounts struct{ cpu, memory int64 }

// resourceList returns the CPU and memory of a list. A list takes about 700 bytes, a pod has four for each container.
func (t *podTrimmer) resourceList(resources corev1.ResourceList) corev1.ResourceList {
	key := amounts{cpu: -1, memory: -1}
	trimmed := corev1.ResourceList{}
	if cpu, set := resources[corev1.ResourceCPU]; set {
		key.cpu = cpu.MilliValue()
		trimmed[corev1.ResourceCPU] = cpu
	}
	if memory, set := resources[corev1.ResourceMemory]; set {
		key.memory = memory.Value()
		trimmed[corev1.ResourceMemory] = memory
	}
	if len(trimmed) == 0 {
		return nil
	}
	return t.lists.share(key, trimmed)
}

// requirements is [podTrimmer.resourceList] for requests and limits.
func (t *podTrimmer) requirements(resources *corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: t.resourceList(resources.Requests), Limits: t.resourceList(resources.Limits)}
}

// text returns a text that many pods have, such as the name of an image.
func (t *podTrimmer) text(text string) string { return t.texts.share(text, text) }

// trimStatefulSet drops the metadata and the fields of the pod template that no pass reads.
var trimStatefulSet = toolscache.TransformFunc(func(object any) (any, error) {
	set, ok := object.(*appsv1.StatefulSet)
	if !ok {
		return object, nil
	}
	set.ObjectMeta = trimMeta(&set.ObjectMeta)
	set.Spec.VolumeClaimTemplates = nil
	trimTemplate(&set.Spec.Template.Spec)
	return set, nil
})

// trimDeployment is trimStatefulSet for a Deployment.
var trimDeployment = toolscache.TransformFunc(func(object any) (any, error) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return object, nil
	}
	deployment.ObjectMeta = trimMeta(&deployment.ObjectMeta)
	trimTemplate(&deployment.Spec.Template.Spec)
	return deployment, nil
})

// trimTemplate drops the parts of a pod template that are about scheduling, security, probes and ports.
func trimTemplate(spec *corev1.PodSpec) {
	spec.Affinity = nil
	spec.DNSConfig = nil
	spec.HostAliases = nil
	spec.ImagePullSecrets = nil
	spec.NodeSelector = nil
	spec.ReadinessGates = nil
	spec.SecurityContext = nil
	spec.Tolerations = nil
	spec.TopologySpreadConstraints = nil
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Lifecycle = nil
			c.LivenessProbe = nil
			c.Ports = nil
			c.ReadinessProbe = nil
			c.SecurityContext = nil
			c.StartupProbe = nil
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

// trimMeta keeps the identity, the owners and the operator's annotations of an object.
func trimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	trimmed := metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		Generation: meta.Generation, CreationTimestamp: meta.CreationTimestamp,
		DeletionTimestamp: meta.DeletionTimestamp, OwnerReferences: meta.OwnerReferences,
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

// Names of the fields by which the cache is indexed.
const (
	indexPodWorkload     = "streamweir.workload" // pods: kind/name of the workload that owns them
	indexPodConfigMap    = "streamweir.config"   // pods: the ConfigMaps of agent and plan that they mount
	indexPodNode         = "streamweir.node"     // pods: the node they run on
	indexStreamAppTarget = "streamweir.target"   // StreamApps: kind/name of their target
)
