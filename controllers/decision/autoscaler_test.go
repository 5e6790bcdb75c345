// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// autoscaler returns an autoscaler named "scaler" with the spec in YAML.
func autoscaler(t *testing.T, kind, spec string) unstructured.Unstructured {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "scaler"}, "spec": fields}}
}

func TestAutoscalersThatActOnMemory(t *testing.T) {
	const vpa, scaled, hpa = "VerticalPodAutoscaler", "ScaledObject", "HorizontalPodAutoscaler"
	const orders = "{apiVersion: apps/v1, kind: StatefulSet, name: orders}"
	cases := map[string]struct {
		kind, spec  string
		target      string // empty: of no workload
		ofContainer bool   // acts on the memory of container app
	}{
		"VPA without a policy": {vpa, "{targetRef: " + orders + "}", "StatefulSet/orders", true},
		"VPA in mode Initial":  {vpa, "{targetRef: " + orders + ", updatePolicy: {updateMode: Initial}}", "StatefulSet/orders", true},
		"VPA in mode Off":      {vpa, "{targetRef: " + orders + `, updatePolicy: {updateMode: "Off"}}`, "", false},
		"VPA of the cpu of all containers": {
			vpa, `{targetRef: ` + orders + `, resourcePolicy: {containerPolicies: [{containerName: "*", controlledResources: [cpu]}]}}`,
			"StatefulSet/orders", false,
		},
		"VPA of the cpu of another container": {
			vpa, `{targetRef: ` + orders + `, resourcePolicy: {containerPolicies: [{containerName: proxy, controlledResources: [cpu]}]}}`,
			"StatefulSet/orders", true,
		},
		"VPA whose policy of the container is Off": {
			vpa, `{targetRef: ` + orders + `, resourcePolicy: {containerPolicies: [{containerName: "*"}, {containerName: app, mode: "Off"}]}}`,
			"StatefulSet/orders", false,
		},
		"VPA whose policy of the container includes memory": {
			vpa, `{targetRef: ` + orders + `, resourcePolicy: {containerPolicies: [{containerName: "*", mode: "Off"}, ` +
				`{containerName: app, controlledResources: [cpu, memory]}]}}`,
			"StatefulSet/orders", true,
		},
		"VPA of another group's kind": {vpa, "{targetRef: {apiVersion: apps.kruise.io/v1, kind: StatefulSet, name: orders}}", "", false},
		"HPA by memory": {
			hpa, "{scaleTargetRef: " + orders + ", metrics: [{type: Resource, resource: {name: cpu}}, {type: Resource, resource: {name: memory}}]}",
			"StatefulSet/orders", true,
		},
		"HPA by cpu": {hpa, "{scaleTargetRef: " + orders + ", metrics: [{type: Resource, resource: {name: cpu}}]}", "", false},
		"HPA by the memory of another container": {
			hpa, "{scaleTargetRef: " + orders + ", metrics: [{type: ContainerResource, containerResource: {name: memory, container: proxy}}]}",
			"StatefulSet/orders", false,
		},
		"HPA by the memory of the container": {
			hpa, "{scaleTargetRef: " + orders + ", metrics: [{type: ContainerResource, containerResource: {name: memory, container: app}}]}",
			"StatefulSet/orders", true,
		},
		"HPA by a metric with the name memory": {
			hpa, "{scaleTargetRef: " + orders + ", metrics: [{type: Pods, pods: {metric: {name: memory}}}]}", "", false,
		},
		"ScaledObject by memory, kind by default": {
			scaled, "{scaleTargetRef: {name: orders}, triggers: [{type: kafka}, {type: memory, metadata: {value: '80'}}]}", "Deployment/orders", true,
		},
		"ScaledObject by the memory of another container": {
			scaled, "{scaleTargetRef: " + orders + ", triggers: [{type: memory, metadata: {containerName: proxy}}]}", "StatefulSet/orders", false,
		},
		"ScaledObject by lag":  {scaled, "{scaleTargetRef: " + orders + ", triggers: [{type: kafka}]}", "", false},
		"ScaledObject of text": {scaled, "{scaleTargetRef: orders, triggers: memory}", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := autoscaler(t, c.kind, c.spec)
			target := ""
			if found, acts := AutoscalerTarget(&object); acts {
				target = found.String()
			}
			if target != c.target {
				t.Errorf("target = %q, want %q", target, c.target)
			}
			if c.target == "" {
				return
			}
			conflict := conflictingAutoscaler([]unstructured.Unstructured{object}, &Container{Name: "app"})
			if conflict.Found() != c.ofContainer {
				t.Errorf("conflict = %+v", conflict)
			}
		})
	}
}

// autoscalerCases: the plan is made, but nothing is changed.
func autoscalerCases(t *testing.T) map[string]conditionCase {
	t.Helper()
	vpa := autoscaler(t, "VerticalPodAutoscaler", "{targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: orders}}")
	hpa := autoscaler(t, "HorizontalPodAutoscaler", "{metrics: [{resource: {name: memory}}]}")
	keda := autoscaler(t, "ScaledObject", "{triggers: [{type: memory}]}")
	conflict := func(f fixture, message string, autoscalers ...unstructured.Unstructured) conditionCase {
		return conditionCase{
			fixture: f, world: func(w *World) { w.Autoscalers = autoscalers },
			want: conditions{
				v1alpha1.ConditionCompatible: isFalse(v1alpha1.ReasonConflictingAutoscaler, message),
				v1alpha1.ConditionFits:       isTrue(v1alpha1.ReasonFits, ""),
				v1alpha1.ConditionApplied:    isFalse(v1alpha1.ReasonConflictingAutoscaler, "nothing was changed: "+message),
			},
		}
	}
	const setsMemory = "VerticalPodAutoscaler scaler sets the memory of container app; " +
		"set its `updateMode` to Off, leave memory out of its `controlledResources`, or delete it"
	const scalesByMemory = "ScaledObject scaler scales the pods by their memory; use another metric, or delete it"
	return map[string]conditionCase{
		"plan that is applied":                 conflict(settledFixture(t), setsMemory, vpa),
		"nothing was ever applied":             conflict(reported(), setsMemory, hpa, vpa),
		"ScaledObject is named before its HPA": conflict(settledFixture(t), scalesByMemory, hpa, keda),
	}
}

// TestConflictingAutoscalerFreezesEverything: nothing is patched or removed, although the limits are too small.
func TestConflictingAutoscalerFreezesEverything(t *testing.T) {
	input := reported().after(t)
	input.reports = manyReports(100)
	w, m := input.world(t)
	if d := Decide(w, m); len(d.Resizes) == 0 {
		t.Fatal("no limit is raised without an autoscaler")
	}
	w.Autoscalers = []unstructured.Unstructured{autoscaler(t, "VerticalPodAutoscaler", "{targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: orders}}")}
	d := Decide(w, m)
	wantNoChanges(t, &d)
	if d.status().RequiredLimit == nil {
		t.Error("the status has no required limit")
	}
}
