// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

// largePod returns a pod with every field that a pass reads, and many that it does not.
func largePod() *corev1.Pod {
	return testobjects.RunningPod(0, "1Gi", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "orders", "pod-template-hash": "6b9f4d5c7"}
		p.Annotations["checksum/config"] = strings.Repeat("a", 4096)
		p.Annotations[v1alpha1.PublishedAnnotation] = "second"
		p.Annotations[decision.AnnotationRefresh] = decision.Refresh{Count: 2, At: testobjects.Now}.String()
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}
		p.Spec.HostNetwork = true
		c := &p.Spec.Containers[0]
		c.Image = "registry.example/orders:1"
		c.Command = []string{"java"}
		c.Args = []string{"-jar", "app.jar"}
		c.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.NotRequired}}
		p.Spec.InitContainers = []corev1.Container{{
			Name: "proxy", Resources: testobjects.MemoryResources("64Mi", "64Mi"), RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			Env: []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}},
		}}
		p.Spec.InitContainers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		p.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: v1alpha1.AgentVolume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "streamweir-agent-0123456789"}},
		}}, {Name: v1alpha1.PlanVolume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "streamweir-plan-orders"}},
		}}}
	})
}

// trimmed returns the pod as the cache stores it.
func trimmed(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	result, err := trimPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	return result.(*corev1.Pod)
}

func TestTrimmedPodKeepsEverythingThatAPassReads(t *testing.T) {
	before := largePod()
	after := trimmed(t, before)
	nodes := map[string]*corev1.Node{"node-0": nil}
	wantNoDiff(t, "facts", decision.PodOf(before, testobjects.Container, nodes), decision.PodOf(after, testobjects.Container, nodes))
	refreshes := func(pod *corev1.Pod) map[string]decision.Refresh {
		return decision.Recall(testobjects.StreamApp(), nil, nil, []corev1.Pod{*pod}, decision.Volatile{}).Refreshes
	}
	wantNoDiff(t, "refreshes", map[string]decision.Refresh{"orders-0": {Count: 2, At: testobjects.Now}}, refreshes(after))
	if target, owned := decision.OwnerOf(after); !owned || target.String() != "StatefulSet/orders" {
		t.Errorf("owner = %v, %v; want StatefulSet/orders", target, owned)
	}
	if after.Namespace != before.Namespace || after.ResourceVersion != before.ResourceVersion || after.UID != before.UID {
		t.Errorf("the trimmed pod has another identity: %+v", after.ObjectMeta)
	}
}

func TestTrimmedPodOfDeploymentKeepsItsOwner(t *testing.T) {
	pod := largePod()
	pod.OwnerReferences[0].Kind = "ReplicaSet"
	pod.OwnerReferences[0].Name = "orders-6b9f4d5c7"
	if target, owned := decision.OwnerOf(trimmed(t, pod)); !owned || target.String() != "Deployment/orders" {
		t.Errorf("owner = %v, %v; want Deployment/orders", target, owned)
	}
}

func TestTrimmedPodDropsEverythingElse(t *testing.T) {
	pod := trimmed(t, largePod())
	c := pod.Spec.Containers[0]
	switch {
	case len(c.Command) > 0, len(c.Env) > 0, len(pod.Spec.InitContainers[0].Env) > 0:
		t.Errorf("a container has more than its resources: %+v", c)
	case len(pod.ManagedFields) > 0, len(pod.Spec.Volumes) > 2, pod.Labels["app"] != "":
		t.Errorf("the pod has fields that no pass reads: %+v", pod)
	case pod.Annotations["checksum/config"] != "":
		t.Error("the pod has an annotation of another client")
	}
}

func TestTrimmedNodeKeepsItsNameAndReadiness(t *testing.T) {
	large := testobjects.Node("node-0", corev1.ConditionUnknown)
	large.Labels = map[string]string{"zone": "a"}
	large.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example/orders:1"}}}
	large.Status.Conditions = append(large.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure})
	result, err := trimNode(large)
	if err != nil {
		t.Fatal(err)
	}
	node := result.(*corev1.Node)
	if !decision.NodeLost(node) || node.Name != "node-0" {
		t.Errorf("the trimmed node has no name or is not lost: %+v", node)
	}
	if len(node.Status.Images) > 0 || len(node.Status.Conditions) != 1 || len(node.Labels) > 0 {
		t.Errorf("the node has fields that no pass reads: %+v", node)
	}
}

func TestTrimmedConfigMapDropsTheJar(t *testing.T) {
	large := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "streamweir-agent-0123456789", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldOwner}}},
		Data:       map[string]string{"revision": "first"}, BinaryData: map[string][]byte{v1alpha1.AgentJarKey: []byte("PK")}, Immutable: new(true),
	}
	result, err := trimConfigMap(large.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	want := large.DeepCopy()
	want.ManagedFields = nil
	want.BinaryData = nil
	wantNoDiff(t, "ConfigMap", want, result)
}

// The informer also passes the tombstones of deletions that it missed.
func TestTombstonesAreNotTrimmed(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/orders-0"}
	for name, trim := range map[string]toolscache.TransformFunc{"pods": trimPod, "nodes": trimNode, "ConfigMaps": trimConfigMap} {
		if got, err := trim(tombstone); err != nil || got != any(tombstone) {
			t.Errorf("%s: trim(%v) = %v, %v; want the tombstone itself", name, tombstone, got, err)
		}
	}
}

func TestCacheContainsOnlyConfigMapsOfTheOperator(t *testing.T) {
	for object, options := range CacheOptions().ByObject {
		if _, ok := object.(*corev1.ConfigMap); !ok {
			continue
		}
		if !options.Label.Matches(labels.Set{labelManagedBy: managedBy}) || options.Label.Matches(labels.Set{"app": "orders"}) {
			t.Errorf("ConfigMaps are selected by %v, want those of the operator and no others", options.Label)
		}
		return
	}
	t.Error("all ConfigMaps of the cluster are cached")
}

func TestTrimmedWorkloadKeepsItsContainers(t *testing.T) {
	template := testobjects.PodTemplate("1Gi")
	c := &template.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: "JAVA_OPTS", Value: "-Xmx1g"}}
	c.LivenessProbe = &corev1.Probe{}
	template.Spec.Tolerations = []corev1.Toleration{{Key: "spot"}}
	set := testobjects.StatefulSet(3, template)
	set.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("a", 4096)}
	before := set.DeepCopy()
	result, err := trimWorkload(set)
	if err != nil {
		t.Fatal(err)
	}
	after := result.(*appsv1.StatefulSet)
	if after.UID != before.UID || after.Generation != before.Generation || len(after.Annotations) > 0 {
		t.Errorf("the metadata is %+v", after.ObjectMeta)
	}
	pods := &after.Spec.Template
	if pods.Spec.Containers[0].LivenessProbe != nil || len(pods.Spec.Tolerations) > 0 {
		t.Error("the template has fields that no pass reads")
	}
	wantNoDiff(t, "environment", before.Spec.Template.Spec.Containers[0].Env, pods.Spec.Containers[0].Env)
	wantNoDiff(t, "resources", before.Spec.Template.Spec.Containers[0].Resources, pods.Spec.Containers[0].Resources)
	wantNoDiff(t, "annotations of the template", before.Spec.Template.Annotations, pods.Annotations)
	wantNoDiff(t, "status", before.Status, after.Status)
}
