// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// storedResources returns a pod template's spec with the resources of the pods created from it: requests default to limits, and then
// LimitRanges add their defaults (k8s.io/kubernetes pkg/apis/core/v1, SetDefaults_Pod; plugin/pkg/admission/limitranger). The order of
// LimitRanges is not defined in Kubernetes; here it is that of their names.
func storedResources(spec *corev1.PodSpec, ranges []corev1.LimitRange) *corev1.PodSpec {
	stored := *spec
	stored.Containers = slices.Clone(spec.Containers)
	stored.InitContainers = slices.Clone(spec.InitContainers)
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	for _, containers := range [][]corev1.Container{stored.InitContainers, stored.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Limits = maps.Clone(resources.Limits)
			resources.Requests = withDefaults(resources.Requests, resources.Limits)
			for _, r := range sorted {
				for _, item := range r.Spec.Limits {
					if item.Type == corev1.LimitTypeContainer {
						resources.Limits = withDefaults(resources.Limits, item.Default)
						resources.Requests = withDefaults(resources.Requests, item.DefaultRequest)
					}
				}
			}
		}
	}
	return &stored
}

// withDefaults returns a copy of a list with the defaults for absent resources.
func withDefaults(list, defaults corev1.ResourceList) corev1.ResourceList {
	result := maps.Clone(list)
	for name, quantity := range defaults {
		if _, known := result[name]; !known {
			if result == nil {
				result = corev1.ResourceList{}
			}
			result[name] = quantity
		}
	}
	return result
}

// limitOf returns the memory limit that a container of a pod has: the smaller of its own and of the pod's less the memory of the other
// containers; nil if neither is set. It is at least one byte.
func limitOf(spec *corev1.PodSpec, container *corev1.Container) *resource.Quantity {
	own, rest := memoryOf(container.Resources.Limits), podLimitLeft(spec, container.Name)
	if rest == nil || (own != nil && own.Cmp(*rest) <= 0) {
		return own
	}
	return rest
}

// podLimitLeft returns the pod-level memory limit less the limits of the other containers that run at the same time, or less their requests
// where they have no limits; nil without a pod-level limit.
func podLimitLeft(spec *corev1.PodSpec, container string) *resource.Quantity {
	if spec.Resources == nil || memoryOf(spec.Resources.Limits) == nil {
		return nil
	}
	left := memoryOf(spec.Resources.Limits).Value()
	for _, other := range containersBeside(spec, container) {
		if memory := cmp.Or(memoryOf(other.Resources.Limits), memoryOf(other.Resources.Requests)); memory != nil {
			left -= memory.Value()
		}
	}
	return new(quantity(max(1, left)))
}

// containersBeside returns the containers that run beside a container: the others, and init containers that are sidecars.
func containersBeside(spec *corev1.PodSpec, container string) []corev1.Container {
	sidecars := slices.DeleteFunc(slices.Clone(spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	others := slices.DeleteFunc(slices.Clone(spec.Containers), func(c corev1.Container) bool { return c.Name == container })
	return slices.Concat(sidecars, others)
}

// qosOf returns the QoS class of a pod with stored resources, as the API server does (k8s.io/kubernetes pkg/apis/core/v1/helper/qos,
// ComputePodQOS): pod-level resources decide alone. A missing pod-level request counts as the limit, although it is the sum of the
// containers' requests if they have any: the memory of such pods is not changed, so it does not matter.
func qosOf(spec *corev1.PodSpec) corev1.PodQOSClass {
	if spec.Resources != nil && len(spec.Resources.Limits)+len(spec.Resources.Requests) > 0 {
		pod := *spec.Resources
		pod.Requests = withDefaults(pod.Requests, pod.Limits)
		return qosOfRequirements(&pod)
	}
	var class corev1.PodQOSClass
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		switch of := qosOfRequirements(&c.Resources); {
		case class == "":
			class = of
		case class != of:
			return corev1.PodQOSBurstable
		}
	}
	return class
}

// qosOfRequirements returns the QoS class of requests and limits. Only CPU and memory count.
func qosOfRequirements(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	set, guaranteed := false, true
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, request := r.Limits[name], r.Requests[name]
		set = set || !limit.IsZero() || !request.IsZero()
		guaranteed = guaranteed && !limit.IsZero() && limit.Cmp(request) == 0
	}
	switch {
	case guaranteed:
		return corev1.PodQOSGuaranteed
	case set:
		return corev1.PodQOSBurstable
	}
	return corev1.PodQOSBestEffort
}
