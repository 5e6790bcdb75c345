// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
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
	testNamespace = "shop"
	testApp       = "orders"
	testContainer = "app"
)

// testNow is the time of every pass, unless a test moves it.
var testNow = time.Date(2026, time.March, 14, 9, 26, 53, 0, time.UTC)

// change is a change to an object that a builder makes.
type change[T any] func(*T)

func build[T any](object T, changes []change[T]) *T {
	for _, apply := range changes {
		apply(&object)
	}
	return &object
}

func memory(text string) *resource.Quantity { return new(resource.MustParse(text)) }

// streamApp is a StreamApp for the StatefulSet of its name, in mode Enforce.
func streamApp(changes ...change[v1alpha1.StreamApp]) *v1alpha1.StreamApp {
	return build(v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testApp, UID: "app-uid", Generation: 1},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: testApp},
			Mode:      v1alpha1.ModeEnforce,
		},
	}, changes)
}

// limitsBetween lets the operator choose the limit; "" leaves a side open.
func limitsBetween(least, most string) change[v1alpha1.StreamApp] {
	return func(app *v1alpha1.StreamApp) {
		if least != "" {
			app.Spec.Memory.MinLimit = memory(least)
		}
		if most != "" {
			app.Spec.Memory.MaxLimit = memory(most)
		}
	}
}

// podTemplate has one container, whose memory request and limit are equal and which has no CPU limit: Burstable.
func podTemplate(limit string, changes ...change[corev1.PodTemplateSpec]) *corev1.PodTemplateSpec {
	labels := map[string]string{"app": testApp}
	return build(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: testContainer, Image: "registry.example/orders:1", Resources: memoryResources(limit, limit)}}},
	}, changes)
}

// memoryResources has a request and a limit of memory; "" leaves one out.
func memoryResources(request, limit string) corev1.ResourceRequirements {
	var resources corev1.ResourceRequirements
	if request != "" {
		resources.Requests = corev1.ResourceList{corev1.ResourceMemory: *memory(request)}
	}
	if limit != "" {
		resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *memory(limit)}
	}
	return resources
}

// statefulSet is not rolling out.
func statefulSet(replicas int32, template *corev1.PodTemplateSpec, changes ...change[appsv1.StatefulSet]) *appsv1.StatefulSet {
	return build(appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testApp, UID: "workload-uid", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: testApp, Template: *template,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: replicas, CurrentRevision: "1", UpdateRevision: "1"},
	}, changes)
}

// deployment is not rolling out.
func deployment(replicas int32, template *corev1.PodTemplateSpec, changes ...change[appsv1.Deployment]) *appsv1.Deployment {
	return build(appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testApp, UID: "workload-uid", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: *template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas},
	}, changes)
}

// runningPod is the pod of the StatefulSet with this ordinal: injected, ready since an hour, on a node and with an address of its own,
// and with the limit in force.
func runningPod(ordinal int, limit string, changes ...change[corev1.Pod]) *corev1.Pod {
	hourAgo := metav1.NewTime(testNow.Add(-time.Hour))
	name := fmt.Sprintf("%s-%d", testApp, ordinal)
	resources := memoryResources(limit, limit)
	return build(corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1", CreationTimestamp: hourAgo,
			Annotations: map[string]string{v1alpha1.PlanAnnotation: "first"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: testApp, UID: "workload-uid", Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", ordinal), Containers: []corev1.Container{{Name: testContainer, Resources: resources}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.0.0.%d", ordinal+1)}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: hourAgo}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: testContainer, Resources: &resources}},
		},
	}, changes)
}

// runningPodsOf makes running pods with the same limit.
func runningPodsOf(count int, limit string, changes ...change[corev1.Pod]) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, runningPod(i, limit, changes...))
	}
	return pods
}

// node has a kubelet that says what the condition Ready is.
func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}
