// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// Object is an object of Kubernetes.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are objects of Kubernetes, from manifests or from a cluster.
type Objects []Object

// select returns the objects of a type in a namespace.
func selectFrom[T Object](objects Objects, namespace string) []T {
	var selected []T
	for _, object := range objects {
		if typed, is := object.(T); is && object.GetNamespace() == namespace {
			selected = append(selected, typed)
		}
	}
	return selected
}

// find returns the object of a type with this name; the zero value if there is none.
func find[T Object](objects Objects, namespace, name string) T {
	var none T
	for _, object := range selectFrom[T](objects, namespace) {
		if object.GetName() == name {
			return object
		}
	}
	return none
}

// world selects the objects of a StreamApp.
func (o Objects) world(app *v1alpha1.StreamApp) decision.World {
	namespace := app.Namespace
	world := decision.World{
		App:           app,
		PlanConfigMap: find[*corev1.ConfigMap](o, namespace, decision.PlanConfigMapName(app.Name)),
		Injection:     find[*v1alpha1.PodInjection](o, namespace, app.Name),
	}
	target := decision.TargetOf(app)
	switch target.Kind {
	case v1alpha1.KindStatefulSet:
		world.StatefulSet = find[*appsv1.StatefulSet](o, namespace, target.Name)
	case v1alpha1.KindDeployment:
		world.Deployment = find[*appsv1.Deployment](o, namespace, target.Name)
	}
	for _, pod := range selectFrom[*corev1.Pod](o, namespace) {
		if owner, found := decision.OwnerOf(pod); found && owner == target {
			world.Pods = append(world.Pods, *pod)
		}
	}
	for _, limits := range selectFrom[*corev1.LimitRange](o, namespace) {
		world.LimitRanges = append(world.LimitRanges, *limits)
	}
	for _, quota := range selectFrom[*corev1.ResourceQuota](o, namespace) {
		world.ResourceQuotas = append(world.ResourceQuotas, *quota)
	}
	for _, autoscaler := range selectFrom[*unstructured.Unstructured](o, namespace) {
		if acts, byMemory := decision.AutoscalerTarget(autoscaler); byMemory && acts == target {
			world.Autoscalers = append(world.Autoscalers, *autoscaler)
		}
	}
	world.ConflictingApp = o.conflictingApp(app)
	world.Nodes = o.nodes(world.Pods)
	if template := world.Template(); template != nil {
		world.ConfigMaps = map[string]*corev1.ConfigMap{}
		for _, name := range decision.ConfigMapsToRead(app, template) {
			if configMap := find[*corev1.ConfigMap](o, namespace, name); configMap != nil {
				world.ConfigMaps[name] = configMap
			}
		}
	}
	return world
}

func (o Objects) conflictingApp(app *v1alpha1.StreamApp) string {
	var same []v1alpha1.StreamApp
	for _, other := range selectFrom[*v1alpha1.StreamApp](o, app.Namespace) {
		if decision.TargetOf(other) == decision.TargetOf(app) {
			same = append(same, *other)
		}
	}
	return decision.ConflictingApp(app, same)
}

// nodes returns the nodes of pods. Manifests have no nodes as a rule, so all nodes count as healthy if there is none.
func (o Objects) nodes(pods []corev1.Pod) map[string]*corev1.Node {
	if len(selectFrom[*corev1.Node](o, "")) == 0 {
		return nil
	}
	nodes := map[string]*corev1.Node{}
	for i := range pods {
		if name := pods[i].Spec.NodeName; name != "" {
			nodes[name] = find[*corev1.Node](o, "", name)
		}
	}
	return nodes
}

// ConfigMapsToRead returns the names of the ConfigMaps that may set the variable for JVM options.
func (o Objects) ConfigMapsToRead(app *v1alpha1.StreamApp) []string {
	world := o.world(app)
	template := world.Template()
	if template == nil {
		return nil
	}
	return decision.ConfigMapsToRead(app, template)
}

// NodesOf returns the names of the nodes of the StreamApp's pods, sorted.
func (o Objects) NodesOf(app *v1alpha1.StreamApp) []string {
	names := map[string]bool{}
	for _, pod := range o.world(app).Pods {
		if pod.Spec.NodeName != "" {
			names[pod.Spec.NodeName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
