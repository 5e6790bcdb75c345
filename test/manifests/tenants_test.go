// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func storedStatefulSet(t *testing.T, namespace string) *appsv1.StatefulSet {
	t.Helper()
	labels := map[string]string{"app": "orders"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "orders", Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec = aPod().Spec
	if err := admin.Create(t.Context(), set); err != nil {
		t.Fatalf("creating the StatefulSet: %v", err)
	}
	return set
}

// A tuning team, or a bot, may write StreamApps of a namespace and nothing else.
func TestUsersWithStreamAppsOnlyChangeNoPods(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	plan, injection := createOwnObjects(t, namespace)
	pod, set := aPod(mountsPlan(planName), app(cpu)), storedStatefulSet(t, namespace)
	pod.Namespace = namespace
	if err := admin.Create(t.Context(), pod); err != nil {
		t.Fatalf("creating the pod: %v", err)
	}
	grantRule(t, namespace, "mallory", writesStreamApps())
	mallory := as(t, "mallory")
	gomega.NewWithT(t).Eventually(func() error {
		return mallory.Create(t.Context(), streamAppFor(namespace, v1alpha1.KindStatefulSet, v1alpha1.JVMSpec{}), client.DryRunAll)
	}, eventually, polling).Should(gomega.Succeed())

	checkCannotWrite(t, mallory, plan, byRBAC)
	checkCannotWrite(t, mallory, injection, byRBAC)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"streamweir.dev/plan":"g2"}}}`))
	for name, request := range map[string]func() error{
		"patch a pod": func() error { return mallory.Patch(t.Context(), pod.DeepCopy(), patch, client.DryRunAll) },
		"resize a pod": func() error {
			return mallory.SubResource("resize").Update(t.Context(), pod.DeepCopy(), client.DryRunAll)
		},
		"delete a pod":       func() error { return mallory.Delete(t.Context(), pod.DeepCopy(), client.DryRunAll) },
		"patch the workload": func() error { return mallory.Patch(t.Context(), set.DeepCopy(), patch, client.DryRunAll) },
		"read the plan":      func() error { return mallory.Get(t.Context(), client.ObjectKeyFromObject(plan), plan.DeepCopy()) },
		"write a StreamApp elsewhere": func() error {
			return mallory.Create(t.Context(), streamAppFor(elsewhere, v1alpha1.KindStatefulSet, v1alpha1.JVMSpec{}))
		},
		"write a status": func() error {
			return mallory.Status().Patch(t.Context(), streamAppFor(namespace, "", v1alpha1.JVMSpec{}), patch)
		},
	} {
		t.Run(name, func(t *testing.T) { wantDenied(t, byRBAC, request) })
	}
}

// A PodInjection changes the pods of its own namespace only, under any name of their owner.
func TestPodsOfOtherNamespacesAreNotInjected(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	createInjections(t, namespace, []v1alpha1.PodInjection{anInjection()})
	if got := create(t, elsewhere, aPod()); got.Annotations[v1alpha1.PlanAnnotation] != "" || len(got.Spec.Volumes) != 0 {
		t.Error("a PodInjection of another namespace was used")
	}
}
