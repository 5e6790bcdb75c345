// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
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
	result, err := (&podTrimmer{}).trim(pod.DeepCopy())
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
		return decision.Recall(testobjects.StreamApp(), nil, []corev1.Pod{*pod}, decision.Volatile{}).Refreshes
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
	case len(c.Command) > 0, len(c.Env) > 0, len(pod.Spec.InitContainers[0].Env) > 0, len(pod.Status.InitContainerStatuses) > 0:
		t.Errorf("a container has more than its resources: %+v", c)
	case len(pod.ManagedFields) > 0, len(pod.Spec.Volumes) > 2, pod.Labels["app"] != "":
		t.Errorf("the pod has fields that no pass reads: %+v", pod)
	case pod.Annotations["checksum/config"] != "":
		t.Error("the pod has an annotation of another client")
	}
}

func TestTrimmedPodOfAnotherOwnerKeepsItsMemory(t *testing.T) {
	for _, kind := range []string{"DaemonSet", ""} {
		before := largePod()
		before.OwnerReferences = nil
		if kind != "" {
			before.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "logs", Controller: new(true)}}
		}
		after := trimmed(t, before)
		want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: before.Name, UID: before.UID, ResourceVersion: before.ResourceVersion}}
		want.Spec.NodeName = before.Spec.NodeName
		want.Spec.Volumes = before.Spec.Volumes[1:]
		want.Spec.Containers = []corev1.Container{{Resources: before.Spec.Containers[0].Resources}}
		want.Spec.InitContainers = []corev1.Container{{
			Resources: before.Spec.InitContainers[0].Resources, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		}}
		want.Status.Phase = corev1.PodRunning
		wantNoDiff(t, "pod of "+kind, want, after)
	}
}

func TestTrimmedPodsShareEqualResources(t *testing.T) {
	trimmer := &podTrimmer{}
	lists := map[string]corev1.ResourceList{}
	for _, name := range []string{"first", "second"} {
		result, err := trimmer.trim(largePod())
		if err != nil {
			t.Fatal(err)
		}
		lists[name] = result.(*corev1.Pod).Spec.Containers[0].Resources.Limits
	}
	lists["first"]["marker"] = resource.MustParse("1") // it is the same map
	if _, shared := lists["second"]["marker"]; !shared {
		t.Error("two equal pods have two lists of limits")
	}
	for i := range 2 * maxShared {
		trimmer.resourceList(corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(i), resource.BinarySI)})
	}
	if kept := len(trimmer.lists.byKey); kept > maxShared {
		t.Errorf("%d lists are kept, want %d at most", kept, maxShared)
	}
}

func TestTrimmedWorkloadsHaveTheSameFacts(t *testing.T) {
	template := testobjects.PodTemplate("2Gi", func(p *corev1.PodTemplateSpec) {
		p.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"}
		p.Spec.Affinity = &corev1.Affinity{}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "spot"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "state"}}
		c := &p.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Xss1m"}}
		c.Args = []string{"-jar", "app.jar"}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
		c.LivenessProbe = &corev1.Probe{}
		c.Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	})
	set := testobjects.StatefulSet(3, template)
	deployment := testobjects.Deployment(3, template)
	for _, object := range []metav1.Object{set, deployment} {
		object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
		object.SetGeneration(2)
	}
	world := func(set *appsv1.StatefulSet, deployment *appsv1.Deployment) decision.World {
		return decision.World{Now: testobjects.Now, App: testobjects.StreamApp(), StatefulSet: set, Deployment: deployment}
	}
	decided := func(w decision.World) any {
		d := decision.Decide(w, decision.Memory{})
		d.Facts.Workload.Template = nil // the part that is trimmed
		return []any{d.Facts.Workload, d.Facts.Container, d.Files, d.Injection}
	}
	trimmedSet, err := trimStatefulSet(set.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	wantNoDiff(t, "StatefulSet", decided(world(set, nil)), decided(world(trimmedSet.(*appsv1.StatefulSet), nil)))
	trimmedDeployment, err := trimDeployment(deployment.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	wantNoDiff(t, "Deployment", decided(world(nil, deployment)), decided(world(nil, trimmedDeployment.(*appsv1.Deployment))))
	for _, object := range []any{trimmedSet, trimmedDeployment} {
		if object.(metav1.Object).GetAnnotations() != nil {
			t.Errorf("%T has an annotation of another client", object)
		}
	}
	if c := trimmedSet.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0]; c.LivenessProbe != nil || len(c.Ports) > 0 {
		t.Errorf("a container of the template has fields that no pass reads: %+v", c)
	}
}

// listedPod returns a pod in the encoding of the API server, as large as those of a usual application: two containers with 21 variables,
// five volumes and a full status.
func listedPod(t testing.TB, number int, ownerKind string) []byte {
	t.Helper()
	name := fmt.Sprintf("payments-6b9f4d5c7-%05d", number)
	pod := testobjects.RunningPod(0, "1Gi")
	pod.Name = name
	pod.UID = uuid.NewUUID()
	pod.Spec.NodeName = fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", number/250, number%250)
	pod.Labels = map[string]string{"app": "payments", "pod-template-hash": "6b9f4d5c7"}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: ownerKind, Name: "payments-6b9f4d5c7", UID: pod.UID, Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	at := metav1.NewTime(testobjects.Now)
	first := &pod.Spec.Containers[0]
	for i := range 21 {
		first.Env = append(first.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "a value"})
	}
	first.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health"}}}
	first.Image = "registry.example/payments:1"
	first.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
	sidecar := *first.DeepCopy()
	sidecar.Name = "proxy"
	pod.Spec.Containers = append(pod.Spec.Containers, sidecar)
	for i := range 5 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", i)})
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}
	for _, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + strings.Repeat("0", 64), ContainerID: "containerd://" + strings.Repeat("0", 64),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}, Resources: c.Resources.DeepCopy(),
			AllocatedResources: c.Resources.Requests,
		})
	}
	encoded, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// bytesPerPod returns the live memory that one pod takes in the cache.
func bytesPerPod(t testing.TB, ownerKind string) float64 {
	t.Helper()
	const count = 2_000
	trimmer := &podTrimmer{}
	live := func() float64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return float64(memory.HeapAlloc)
	}
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	before := live()
	for i := range count {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(listedPod(t, i, ownerKind)); err != nil {
			t.Fatal(err)
		}
		stored, err := trimmer.trim(pod)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(stored); err != nil {
			t.Fatal(err)
		}
	}
	taken := live() - before
	runtime.KeepAlive(store)
	return taken / count
}

func TestCachedPodsAreSmall(t *testing.T) {
	for kind, most := range map[string]float64{"DaemonSet": 3 << 10, "ReplicaSet": 4 << 10} {
		if got := bytesPerPod(t, kind); got > most {
			t.Errorf("a pod of a %s takes %.0f bytes in the cache, want %.0f at most", kind, got, most)
		}
	}
}

// BenchmarkCachedPod measures the memory of one pod in the cache: one of a workload, and one of another owner.
func BenchmarkCachedPod(b *testing.B) {
	for _, kind := range []string{"ReplicaSet", "DaemonSet"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(bytesPerPod(b, kind), "B/pod")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func TestTrimmedNodeKeepsItsNameAndReadiness(t *testing.T) {
	large := testobjects.Node("node-0", corev1.ConditionUnknown)
	large.Labels = map[string]string{"zone": "a"}
	large.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourceCPU: resource.MustParse("8")}
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
	if memory := node.Status.Allocatable[corev1.ResourceMemory]; memory.String() != "16Gi" || len(node.Status.Allocatable) != 1 {
		t.Errorf("the trimmed node has the allocatable resources %v, want its memory", node.Status.Allocatable)
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
	for name, trim := range map[string]toolscache.TransformFunc{
		"pods": (&podTrimmer{}).trim, "nodes": trimNode, "ConfigMaps": trimConfigMap, "StatefulSets": trimStatefulSet, "Deployments": trimDeployment,
	} {
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
