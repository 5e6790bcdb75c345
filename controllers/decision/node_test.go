// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/internal/testobjects"
)

// TestNodeCapsResize: a running pod gets no more than its node can give beside the requests of the other pods.
func TestNodeCapsResize(t *testing.T) {
	const allocatable = 4 << 30
	nodeWith := func(memory string) []*corev1.Node {
		node := testobjects.Node("node-0", corev1.ConditionTrue)
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		return []*corev1.Node{node}
	}
	unknown := []*corev1.Node{testobjects.Node("node-0", corev1.ConditionTrue)}
	cases := map[string]struct {
		nodes    []*corev1.Node
		requests int64 // of all pods on the node; the pod itself requests 1Gi
		want     map[string]string
		capped   bool
	}{
		"node with room":                 {nodeWith("16Gi"), allocatable, map[string]string{"orders-0": "3153Mi"}, false},
		"exactly the required room":      {nodeWith("3153Mi"), 1 << 30, map[string]string{"orders-0": "3153Mi"}, false},
		"less room than required":        {nodeWith("4Gi"), 3 << 30, map[string]string{"orders-0": "2Gi"}, true},
		"no room":                        {nodeWith("4Gi"), 4 << 30, map[string]string{}, true},
		"node overcommitted":             {nodeWith("4Gi"), 9 << 30, map[string]string{}, true},
		"allocatable memory not known":   {unknown, 0, map[string]string{"orders-0": "3153Mi"}, false},
		"node not known":                 {nil, 0, map[string]string{"orders-0": "3153Mi"}, false},
		"allocatable beyond all numbers": {nodeWith("10E"), 0, map[string]string{"orders-0": "3153Mi"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := fixture{
				group: groupOf(20), workload: testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi")), pods: testobjects.RunningPods(1, "1Gi"),
				nodes: c.nodes, nodeRequests: map[string]int64{"node-0": c.requests},
			}.decide(t)
			wantNoDiff(t, "resizes", c.want, d.resizes())
			if got := d.Plan.Pods["orders-0"].CappedByNode; got != c.capped {
				t.Errorf("capped by the node: %t, want %t", got, c.capped)
			}
			if c.capped && d.RecheckAfter == 0 {
				t.Error("no recheck; other pods may leave the node without an event of this application")
			}
		})
	}
}

func TestMemoryRequest(t *testing.T) {
	request := func(memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	always := corev1.ContainerRestartPolicyAlways
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: request("1Gi")}, {Resources: request("512Mi")}}}}
		change(p)
		return p
	}
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   int64
	}{
		"containers":             {func(*corev1.Pod) {}, 1536 << 20},
		"smaller init container": {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Resources: request("1Gi")}} }, 1536 << 20},
		"larger init container":  {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Resources: request("2Gi")}} }, 2048 << 20},
		"sidecar": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Resources: request("512Mi"), RestartPolicy: &always}}
		}, 2048 << 20},
		"overhead": {func(p *corev1.Pod) {
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		}, 1600 << 20},
		"pod-level request": {func(p *corev1.Pod) { p.Spec.Resources = new(request("4Gi")) }, 4096 << 20},
		"succeeded":         {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, 0},
		"failed":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := MemoryRequest(pod(c.change)); got != c.want {
				t.Errorf("request %s, want %s", bytesText(got), bytesText(c.want))
			}
		})
	}
}
