// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// largePod is a pod with everything in it that a pass does not read, and with everything that it does.
func largePod() *corev1.Pod {
	return runningPod(0, "1Gi", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "orders", "pod-template-hash": "6b9f4d5c7"}
		p.Annotations["checksum/config"] = strings.Repeat("a", 4096)
		p.Annotations[v1alpha1.PublishedAnnotation] = "second"
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}
		p.Spec.HostNetwork = true
		c := &p.Spec.Containers[0]
		c.Image, c.Command, c.Args = "registry.example/orders:1", []string{"java"}, []string{"-jar", "app.jar"}
		c.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.NotRequired}}
		p.Spec.InitContainers = []corev1.Container{{
			Name: "proxy", Resources: memoryResources("64Mi", "64Mi"), RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			Env: []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}},
		}}
		p.Spec.InitContainers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		p.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: v1alpha1.AgentVolume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "streamweir-agent-orders-0123456789"}},
		}}}
	})
}

func TestTrimPodKeepsWhatAPassReads(t *testing.T) {
	before := largePod()
	result, err := trimPod(before.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	trimmed := result.(*corev1.Pod)
	nodes := map[string]nodeFacts{"node-0": {lost: true}}
	wantNoDiff(t, "facts", readPod(before, testContainer, nodes), readPod(trimmed, testContainer, nodes), comparePods)
	if got, want := workloadOfPod(trimmed), workloadOfPod(before); got != want {
		t.Errorf("workload = %q, want %q", got, want)
	}
	if trimmed.Namespace != before.Namespace || trimmed.ResourceVersion != before.ResourceVersion || trimmed.UID != before.UID {
		t.Errorf("the trimmed pod lost its identity: %+v", trimmed.ObjectMeta)
	}
}

func TestTrimPodKeepsTheOwnerOfADeploymentsPod(t *testing.T) {
	pod := largePod()
	pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = "ReplicaSet", "orders-6b9f4d5c7"
	result, err := trimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if got := workloadOfPod(result.(*corev1.Pod)); got != "Deployment/orders" {
		t.Errorf("workload = %q, want Deployment/orders", got)
	}
}

func TestTrimPodDropsTheRest(t *testing.T) {
	result, err := trimPod(largePod())
	if err != nil {
		t.Fatal(err)
	}
	trimmed := result.(*corev1.Pod)
	c := trimmed.Spec.Containers[0]
	switch {
	case len(c.Command) > 0, len(c.Env) > 0, len(trimmed.Spec.InitContainers[0].Env) > 0:
		t.Errorf("a container kept more than its resources: %+v", c)
	case len(trimmed.ManagedFields) > 0, len(trimmed.Spec.Volumes) > 1, trimmed.Labels["app"] != "":
		t.Errorf("the pod kept what no pass reads: %+v", trimmed)
	case trimmed.Annotations["checksum/config"] != "":
		t.Error("the pod kept an annotation that is not ours")
	}
}

func TestTrimNode(t *testing.T) {
	large := node("node-0", corev1.ConditionUnknown)
	large.Labels = map[string]string{"zone": "a"}
	large.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example/orders:1"}}}
	large.Status.Conditions = append(large.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure})
	result, err := trimNode(large)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := result.(*corev1.Node)
	if !readNode(trimmed).lost || trimmed.Name != "node-0" {
		t.Errorf("the trimmed node lost its name or that it is lost: %+v", trimmed)
	}
	if len(trimmed.Status.Images) > 0 || len(trimmed.Status.Conditions) != 1 || len(trimmed.Labels) > 0 {
		t.Errorf("the node kept what no pass reads: %+v", trimmed)
	}
}

// TestTrimsLeaveTombstonesAlone: the informer also hands over what it missed the deletion of.
func TestTrimsLeaveTombstonesAlone(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/orders-0"}
	for name, trim := range map[string]toolscache.TransformFunc{"pods": trimPod, "nodes": trimNode} {
		if got, err := trim(tombstone); err != nil || got != any(tombstone) {
			t.Errorf("%s: trim(%v) = %v, %v; want the tombstone itself", name, tombstone, got, err)
		}
	}
}

func TestWorkloadOfPod(t *testing.T) {
	owned := func(apiVersion, kind, name, hash string, controller bool) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller},
		}}}
		if hash != "" {
			pod.Labels = map[string]string{"pod-template-hash": hash}
		}
		return pod
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a StatefulSet":                             {owned("apps/v1", "StatefulSet", "orders", "", true), "StatefulSet/orders"},
		"a ReplicaSet of a Deployment":              {owned("apps/v1", "ReplicaSet", "orders-6b9f4d5c7", "6b9f4d5c7", true), "Deployment/orders"},
		"a Deployment whose name looks like a hash": {owned("apps/v1", "ReplicaSet", "orders-abc-6b9", "6b9", true), "Deployment/orders-abc"},
		"a ReplicaSet of its own":                   {owned("apps/v1", "ReplicaSet", "orders", "", true), ""},
		"a ReplicaSet whose name has another hash":  {owned("apps/v1", "ReplicaSet", "orders-111", "222", true), ""},
		"a hash that only ends the same":            {owned("apps/v1", "ReplicaSet", "orders-x6b9", "6b9", true), ""},
		"a Job":                                     {owned("batch/v1", "Job", "orders", "", true), ""},
		"an owner that does not control it":         {owned("apps/v1", "StatefulSet", "orders", "", false), ""},
		"a StatefulSet of another API group":        {owned("apps.kruise.io/v1beta1", "StatefulSet", "orders", "", true), ""},
		"a ReplicaSet of another API group":         {owned("example.com/v1", "ReplicaSet", "orders-6b9", "6b9", true), ""},
		"no owner":                                  {&corev1.Pod{}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := workloadOfPod(c.pod); got != c.want {
				t.Errorf("workloadOfPod = %q, want %q", got, c.want)
			}
		})
	}
}

func TestCacheHoldsOnlyOurConfigMaps(t *testing.T) {
	for object, options := range CacheOptions().ByObject {
		if _, ok := object.(*corev1.ConfigMap); !ok {
			continue
		}
		if !options.Label.Matches(labels.Set{labelManagedBy: managedBy}) || options.Label.Matches(labels.Set{"app": "orders"}) {
			t.Errorf("ConfigMaps are selected by %v, want those that we manage and no others", options.Label)
		}
		return
	}
	t.Error("all ConfigMaps of the cluster are cached")
}
