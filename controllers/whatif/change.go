// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/controllers/decision"
)

// replicasOf returns the replicas of the target, with the documented default.
func replicasOf(world decision.World) int32 {
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

// limitedTo returns a world with another memory limit of the container, in the template and in all pods.
func limitedTo(world decision.World, limit *resource.Quantity) decision.World {
	world = withOwnTarget(world)
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
	return withPods(world, pods)
}

// withPods returns a world with other pods. The use of the quotas changes by the difference.
func withPods(world decision.World, pods []corev1.Pod) decision.World {
	before := quotaUseOf(world.Pods)
	after := quotaUseOf(pods)
	quotas := slices.Clone(world.ResourceQuotas)
	for i := range quotas {
		used := maps.Clone(quotas[i].Status.Used)
		for name, total := range used {
			if bytes, counted := after[name]; counted {
				used[name] = *quantity(max(0, total.Value()+bytes-before[name]))
			}
		}
		quotas[i].Status.Used = used
	}
	world.ResourceQuotas = quotas
	world.Pods = pods
	return world
}

// quotaUseOf returns the memory of pods in bytes, by the resources of a quota.
func quotaUseOf(pods []corev1.Pod) map[corev1.ResourceName]int64 {
	var limits, requests int64
	for i := range pods {
		if phase := pods[i].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		for _, c := range pods[i].Spec.Containers {
			limit := c.Resources.Limits.Memory().Value()
			limits += limit
			if request, set := c.Resources.Requests[corev1.ResourceMemory]; set {
				requests += request.Value()
			} else {
				requests += limit // the API server sets it to the limit
			}
		}
	}
	return map[corev1.ResourceName]int64{corev1.ResourceLimitsMemory: limits, corev1.ResourceRequestsMemory: requests, corev1.ResourceMemory: requests}
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

// withOwnTarget returns a world with a copy of the target that may be changed.
func withOwnTarget(world decision.World) decision.World {
	world.StatefulSet = world.StatefulSet.DeepCopy()
	world.Deployment = world.Deployment.DeepCopy()
	return world
}

// startedAnew returns a world without pods, with this number of pods to come.
func startedAnew(world decision.World, replicas int32) decision.World {
	world = withOwnTarget(world)
	if set := world.StatefulSet; set != nil {
		set.Spec.Replicas = &replicas
		set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation}
	} else {
		world.Deployment.Spec.Replicas = &replicas
		world.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: world.Deployment.Generation}
	}
	world.PlanConfigMap = nil
	world.Injection = nil
	return withPods(world, nil)
}
