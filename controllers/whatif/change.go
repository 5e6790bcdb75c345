// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/controllers/decision"
)

// replicasOf returns the replicas of the target, with the documented default.
func replicasOf(world *decision.World) int32 {
	var replicas *int32
	if world.StatefulSet != nil {
		replicas = world.StatefulSet.Spec.Replicas
	} else {
		replicas = world.Deployment.Spec.Replicas
	}
	if replicas == nil {
		return 1
	}
	return *replicas
}

// setLimit sets the memory limit of the container, in the template and in all pods.
func setLimit(world *decision.World, limit *resource.Quantity) {
	copyTarget(world)
	template := world.Template()
	name := decision.FindContainer(template, world.App.Spec.Container).Name
	setContainerLimit(template.Spec.Containers, name, limit)
	pods := make([]corev1.Pod, len(world.Pods))
	for i := range world.Pods {
		pod := world.Pods[i].DeepCopy()
		setContainerLimit(pod.Spec.Containers, name, limit)
		for j := range pod.Status.ContainerStatuses {
			if s := &pod.Status.ContainerStatuses[j]; s.Name == name && s.Resources != nil {
				s.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *limit}
			}
		}
		pods[i] = *pod
	}
	world.Pods = pods
}

func setContainerLimit(containers []corev1.Container, name string, limit *resource.Quantity) {
	for i := range containers {
		c := &containers[i]
		if c.Name != name {
			continue
		}
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[corev1.ResourceMemory] = *limit
	}
}

// copyTarget replaces the target by a copy that may be changed.
func copyTarget(world *decision.World) {
	if world.StatefulSet != nil {
		world.StatefulSet = world.StatefulSet.DeepCopy()
		return
	}
	world.Deployment = world.Deployment.DeepCopy()
}

// startAnew removes all pods, and sets the number of pods to come.
func startAnew(world *decision.World, replicas int32) {
	copyTarget(world)
	if set := world.StatefulSet; set != nil {
		set.Spec.Replicas = &replicas
		set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation}
	} else {
		world.Deployment.Spec.Replicas = &replicas
		world.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: world.Deployment.Generation}
	}
	world.Pods = nil
	world.PlanConfigMap = nil
	world.Injection = nil
}
