// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testobjects builds the Kubernetes objects of tests: an application named orders with its pods.
package testobjects

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Names that all objects of the tests share.
const (
	Namespace = "shop"
	App       = "orders"
	Container = "app"
)

// Now is the time of every pass, unless a test moves it.
var Now = time.Date(2026, time.March, 14, 9, 26, 53, 0, time.UTC)

// Change changes an object that a builder returns.
type Change[T any] func(*T)

// Build applies changes to an object.
func Build[T any](object T, changes []Change[T]) *T {
	for _, apply := range changes {
		apply(&object)
	}
	return &object
}

// Memory parses an amount of memory.
func Memory(text string) *resource.Quantity { return new(resource.MustParse(text)) }

// StreamApp returns a StreamApp in mode Enforce for the StatefulSet of the same name.
func StreamApp(changes ...Change[v1alpha1.StreamApp]) *v1alpha1.StreamApp {
	return Build(v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: App, UID: "app-uid", Generation: 1},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: App},
			Mode:      v1alpha1.ModeEnforce,
		},
	}, changes)
}

// LimitsBetween sets the range of the limit; "" leaves a bound out.
func LimitsBetween(least, most string) Change[v1alpha1.StreamApp] {
	return func(app *v1alpha1.StreamApp) {
		if least != "" {
			app.Spec.Memory.MinLimit = Memory(least)
		}
		if most != "" {
			app.Spec.Memory.MaxLimit = Memory(most)
		}
	}
}

// PodTemplate returns a Burstable template with one container, with equal memory request and limit and without a CPU limit.
func PodTemplate(limit string, changes ...Change[corev1.PodTemplateSpec]) *corev1.PodTemplateSpec {
	labels := map[string]string{"app": App}
	return Build(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: Container, Image: "registry.example/orders:1", Resources: MemoryResources(limit, limit)}}},
	}, changes)
}

// MemoryResources returns a request and a limit of memory; "" leaves one out.
func MemoryResources(request, limit string) corev1.ResourceRequirements {
	var resources corev1.ResourceRequirements
	if request != "" {
		resources.Requests = corev1.ResourceList{corev1.ResourceMemory: *Memory(request)}
	}
	if limit != "" {
		resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *Memory(limit)}
	}
	return resources
}

// StatefulSet returns a StatefulSet without a rollout in progress.
func StatefulSet(replicas int32, template *corev1.PodTemplateSpec, changes ...Change[appsv1.StatefulSet]) *appsv1.StatefulSet {
	return Build(appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: App, UID: "workload-uid", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: App, Template: *template,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: replicas, CurrentRevision: "1", UpdateRevision: "1"},
	}, changes)
}

// Deployment returns a Deployment without a rollout in progress.
func Deployment(replicas int32, template *corev1.PodTemplateSpec, changes ...Change[appsv1.Deployment]) *appsv1.Deployment {
	return Build(appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: App, UID: "workload-uid", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: *template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas},
	}, changes)
}

// RunningPod returns the pod of the StatefulSet with this ordinal: injected, ready for an hour, with an active limit, on its own node and with
// its own address.
func RunningPod(ordinal int, limit string, changes ...Change[corev1.Pod]) *corev1.Pod {
	hourAgo := metav1.NewTime(Now.Add(-time.Hour))
	name := fmt.Sprintf("%s-%d", App, ordinal)
	resources := MemoryResources(limit, limit)
	return Build(corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1", CreationTimestamp: hourAgo,
			Annotations: map[string]string{v1alpha1.PlanAnnotation: "first"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: App, UID: "workload-uid", Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", ordinal), Containers: []corev1.Container{{Name: Container, Resources: resources}},
			Volumes: []corev1.Volume{ConfigMapVolume(v1alpha1.PlanVolume, v1alpha1.ConfigMapPrefix+"plan-"+App)},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.0.0.%d", ordinal+1)}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: hourAgo}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: Container, Resources: &resources}},
		},
	}, changes)
}

// ConfigMapVolume returns a volume with a ConfigMap.
func ConfigMapVolume(name, configMap string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
	}}
}

// NotInjected makes a pod one that was created without plan and agent.
func NotInjected(p *corev1.Pod) {
	p.Annotations = nil
	p.Spec.Volumes = nil
}

// WithoutAgent makes a pod one that was created without the agent.
func WithoutAgent(p *corev1.Pod) {
	p.Spec.Volumes = slices.DeleteFunc(slices.Clone(p.Spec.Volumes), func(v corev1.Volume) bool { return v.Name == v1alpha1.AgentVolume })
}

// RunningPods returns running pods with the same limit.
func RunningPods(count int, limit string, changes ...Change[corev1.Pod]) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, RunningPod(i, limit, changes...))
	}
	return pods
}

// Node returns a node with this status of the condition Ready.
func Node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}
