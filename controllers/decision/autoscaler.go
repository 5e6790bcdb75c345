// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Autoscalers by memory conflict with the plan: one that sets the memory of the container reverts the injected limit and the resizes, and one
// that scales by the memory in use counts memory that the plan has distributed. While there is one, the operator changes nothing.

// AutoscalerKinds are the kinds of autoscalers that can act on memory, in the order in which they are reported. Only the last one is part of
// Kubernetes. KEDA creates such an object for each ScaledObject.
var AutoscalerKinds = []schema.GroupVersionKind{verticalPodAutoscaler, scaledObject, horizontalPodAutoscaler}

var (
	verticalPodAutoscaler   = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
	scaledObject            = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
	horizontalPodAutoscaler = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
)

// AutoscalerTarget returns the workload that an autoscaler acts on by memory, in any of its containers; false if it does not.
func AutoscalerTarget(object *unstructured.Unstructured) (Target, bool) {
	ref := fields(object.Object).at("spec").at("targetRef")
	if object.GetKind() != verticalPodAutoscaler.Kind {
		ref = fields(object.Object).at("spec").at("scaleTargetRef")
	}
	group, err := schema.ParseGroupVersion(cmp.Or(ref.text("apiVersion"), "apps/v1"))
	target := Target{v1alpha1.WorkloadKind(cmp.Or(ref.text("kind"), string(v1alpha1.KindDeployment))), ref.text("name")}
	return target, err == nil && group.Group == "apps" && target.Name != "" && actsOnMemory(object, "")
}

// actsOnMemory returns whether an autoscaler acts on the memory of a container; of any container if the name is empty.
func actsOnMemory(object *unstructured.Unstructured, container string) bool {
	spec := fields(object.Object).at("spec")
	isMemory := func(metric fields) bool {
		ofContainer := container == "" || metric.text("container") == "" || metric.text("container") == container
		return metric.text("name") == string(corev1.ResourceMemory) && ofContainer
	}
	switch object.GetKind() {
	case verticalPodAutoscaler.Kind:
		return spec.at("updatePolicy").text("updateMode") != "Off" && setsMemory(spec, container)
	case scaledObject.Kind:
		return slices.ContainsFunc(spec.list("triggers"), func(trigger fields) bool {
			return isMemory(fields{"name": trigger["type"], "container": trigger.at("metadata")["containerName"]})
		})
	default:
		return slices.ContainsFunc(spec.list("metrics"), func(metric fields) bool {
			return isMemory(metric.at("resource")) || isMemory(metric.at("containerResource"))
		})
	}
}

// setsMemory returns whether the resource policy of a VerticalPodAutoscaler includes the memory of a container. The policy of the container
// has precedence over that of all containers. Without a policy it includes everything.
func setsMemory(spec fields, container string) bool {
	policies := spec.at("resourcePolicy").list("containerPolicies")
	for _, name := range []string{container, "*"} {
		i := slices.IndexFunc(policies, func(p fields) bool { return container != "" && p.text("containerName") == name })
		if i < 0 {
			continue
		}
		controlled, restricted := policies[i]["controlledResources"].([]any)
		return policies[i].text("mode") != "Off" && (!restricted || slices.Contains(controlled, any(string(corev1.ResourceMemory))))
	}
	return true
}

// conflictingAutoscaler returns the first autoscaler that acts on the memory of the container; not found without one.
func conflictingAutoscaler(autoscalers []unstructured.Unstructured, container *Container) Problem {
	for _, kind := range AutoscalerKinds {
		var names []string
		for i := range autoscalers {
			if o := &autoscalers[i]; o.GetKind() == kind.Kind && actsOnMemory(o, container.Name) {
				names = append(names, o.GetName())
			}
		}
		if len(names) > 0 {
			return Problem{v1alpha1.ReasonConflictingAutoscaler, conflictingAutoscalerText(kind.Kind, slices.Min(names), container.Name)}
		}
	}
	return Problem{}
}

func conflictingAutoscalerText(kind, name, container string) string {
	conflict := fmt.Sprintf("%s %s scales the pods by their memory", kind, name)
	remedy := "use another metric, or delete it"
	if kind == verticalPodAutoscaler.Kind {
		conflict = fmt.Sprintf("%s %s sets the memory of container %s", kind, name, container)
		remedy = "set its `updateMode` to Off, leave memory out of its `controlledResources`, or delete it"
	}
	return conflict + "; " + remedy
}

// fields are the fields of an object without a Go type. A field of another type counts as missing.
type fields map[string]any

func (f fields) text(name string) string {
	text, _ := f[name].(string)
	return text
}

func (f fields) at(name string) fields {
	object, _ := f[name].(map[string]any)
	return object
}

func (f fields) list(name string) []fields {
	items, _ := f[name].([]any)
	var list []fields
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			list = append(list, object)
		}
	}
	return list
}
