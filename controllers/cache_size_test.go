// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// usualPod returns a running pod with two containers as the API server sends it: 21 environment variables, probes, 5 volumes, 5 conditions.
func usualPod(i int, owner metav1.OwnerReference) *corev1.Pod {
	text := func(format string) string { return fmt.Sprintf(format, i) }
	workload := i / 10
	resources := func(container int) corev1.ResourceRequirements {
		list := func(factor int64) corev1.ResourceList {
			return corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(100*factor, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(workload%50+container+1)*factor<<26, resource.BinarySI),
			}
		}
		return corev1.ResourceRequirements{Requests: list(1), Limits: list(2)}
	}
	owner.Name = fmt.Sprintf("%s-%d", owner.Name, workload)
	owner.Controller = new(true)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("namespace-%d", i/100), Name: owner.Name + text("-%05d"), UID: types.UID(text("0a8f5c1e-7a55-4f0a-9c3e-%012d")),
			ResourceVersion: text("9%08d"), CreationTimestamp: metav1.Now(), OwnerReferences: []metav1.OwnerReference{owner},
			Labels: map[string]string{"app": text("app-%d"), "pod-template-hash": "6b9f4d5c7"}, Annotations: map[string]string{"checksum": text("%064d")},
		},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%200), ServiceAccountName: text("account-%d")},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, PodIPs: []corev1.PodIP{{IP: text("10.0.%d.1")}}, PodIP: text("10.0.%d.1")},
	}
	for c := range 2 {
		container := corev1.Container{Name: fmt.Sprintf("container-%d", c), Image: fmt.Sprintf("registry.example/team/image-%d:1.%d", workload, c), Resources: resources(c)}
		for e := range 21 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", e), Value: text("value-%d")})
		}
		own := resources(c)
		status := corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			ContainerID: text("containerd://%064d"), Ready: true, Resources: &own, AllocatedResources: own.Requests,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	for v := range 5 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", v)})
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled, corev1.ContainersReady, corev1.PodInitialized, "PodReadyToStartContainers"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	return pod
}

// ownersOfOthers are the owners of pods that are not pods of a StreamApp.
var ownersOfOthers = map[string]metav1.OwnerReference{
	"DaemonSet":   {APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "0a8f5c1e-7a55-4f0a-9c3e-000000000001"},
	"StatefulSet": {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "store", UID: "0a8f5c1e-7a55-4f0a-9c3e-000000000002"},
}

// bytesPerPod returns the memory of a cached pod, indexes included.
func bytesPerPod(tb testing.TB, owner metav1.OwnerReference, pods int) float64 {
	tb.Helper()
	indexers := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	for _, i := range indexes {
		if _, ok := i.object.(*corev1.Pod); ok {
			indexers["field:"+i.field] = func(object any) ([]string, error) {
				pod := object.(client.Object)
				var keys []string
				for _, value := range i.values(pod) { // as controller-runtime does
					keys = append(keys, pod.GetNamespace()+"/"+value, "__all_namespaces/"+value)
				}
				return keys, nil
			}
		}
	}
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	used := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := used()
	for i := range pods {
		trimmed, err := trimPod(usualPod(i, owner))
		if err != nil {
			tb.Fatal(err)
		}
		if err := store.Add(trimmed); err != nil {
			tb.Fatal(err)
		}
	}
	per := float64(used()-before) / float64(pods)
	runtime.KeepAlive(store)
	return per
}

// TestCachedPodOfOthersIsSmall bounds the memory that a cluster's other pods cost the operator.
func TestCachedPodOfOthersIsSmall(t *testing.T) {
	for kind, limit := range map[string]float64{"DaemonSet": 3 << 10, "StatefulSet": 4 << 10} {
		per := bytesPerPod(t, ownersOfOthers[kind], 5000)
		t.Logf("%s: %.0f bytes for each pod", kind, per)
		if per > limit {
			t.Errorf("a cached pod of a %s has %.0f bytes, want at most %.0f", kind, per, limit)
		}
	}
}

// BenchmarkCachedPod measures the memory of a cached pod of others.
func BenchmarkCachedPod(b *testing.B) {
	for kind, owner := range ownersOfOthers {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(bytesPerPod(b, owner, 10000), "B/pod")
			}
		})
	}
}
