// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// collectGarbage acts as the garbage collector of Kubernetes, with its account: it deletes the operator's objects without any living owner.
func (f *fixture) collectGarbage() {
	f.t.Helper()
	config := rest.CopyConfig(operatorConfig)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:generic-garbage-collector", Groups: []string{"system:masters"},
	}
	collector, err := client.New(config, client.Options{Scheme: scheme})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	var living []types.UID
	for _, owner := range []client.Object{&v1alpha1.StreamApp{}, &appsv1.StatefulSet{}} {
		if f.exists("orders", owner) {
			living = append(living, owner.GetUID())
		}
	}
	lives := func(owner metav1.OwnerReference) bool { return slices.Contains(living, owner.UID) }
	var injections v1alpha1.PodInjectionList
	var configMaps corev1.ConfigMapList
	f.Expect(admin.List(f.t.Context(), &injections, client.InNamespace(f.namespace))).To(gomega.Succeed())
	f.Expect(admin.List(f.t.Context(), &configMaps, client.InNamespace(f.namespace))).To(gomega.Succeed())
	var objects []client.Object
	for i := range injections.Items {
		objects = append(objects, &injections.Items[i])
	}
	for i := range configMaps.Items {
		objects = append(objects, &configMaps.Items[i])
	}
	for _, object := range objects {
		owners := object.GetOwnerReferences()
		if len(owners) > 0 && !slices.ContainsFunc(owners, lives) {
			f.Expect(client.IgnoreNotFound(collector.Delete(f.t.Context(), object))).To(gomega.Succeed())
		}
	}
}

// expectInjectedPods expects that every pod is ready and was injected at its creation.
func (f *fixture) expectInjectedPods() {
	f.t.Helper()
	f.Eventually(f.readyPods).Should(gomega.HaveLen(3), "every pod must start")
	for _, pod := range f.pods() {
		f.Expect(pod.Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation), pod.Name)
	}
}

// deleteStatefulSet deletes the StatefulSet orders and waits until its pods are gone.
func (f *fixture) deleteStatefulSet() {
	f.t.Helper()
	f.delete("orders", &appsv1.StatefulSet{})
	f.Eventually(f.pods).Should(gomega.BeEmpty())
	f.collectGarbage()
}

func TestWorkloadRecreatedWithoutOperatorIsInjected(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	stop := f.startOperator()
	f.createStreamApp(withoutKafka)
	f.injection()
	f.expectQuiet()
	stop()
	f.deleteStatefulSet()
	f.createStatefulSet()
	f.expectInjectedPods()

	f.startOperator()
	f.expectBounded()
	f.expectOwnersOfPlan()
	f.expectQuiet()
}

func TestWorkloadRecreatedIsInjectedFromItsFirstPod(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	uid := f.injection().UID
	for range 3 {
		f.deleteStatefulSet()
		f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)
		f.createStatefulSet()
		f.expectInjectedPods()
		f.Expect(f.injection().UID).To(gomega.Equal(uid), "a deleted injection misses pods")
		f.spreadTasks(f.readyPods()...)
		f.passes(1)
		f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
		f.expectOwnersOfPlan()
	}
	f.expectQuiet()
	f.Expect(f.injection().Annotations).NotTo(gomega.HaveKey("streamweir.dev/unused-since"))
}

func TestInjectionOfMissingTargetIsRemovedLater(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.deleteStatefulSet()
	f.Eventually(f.injection).Should(gomega.HaveField("Annotations", gomega.HaveKey("streamweir.dev/unused-since")))
	f.advance(59 * time.Minute)
	f.injection()
	f.expectQuiet()
	f.advance(2 * time.Minute)
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
	f.Eventually(f.plan).Should(gomega.HaveField("Annotations", gomega.HaveKey("streamweir.dev/unused-since")))
	f.advance(61 * time.Minute)
	f.Eventually(func() bool { return f.exists("streamweir-plan-orders", &corev1.ConfigMap{}) }).Should(gomega.BeFalse())
	f.expectQuiet()
}

func TestPlanOutlivesEitherOwner(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	uid := f.plan().UID
	for name, recreate := range map[string]func(){
		"StreamApp": func() {
			f.delete("orders", &v1alpha1.StreamApp{})
			f.collectGarbage()
			f.createStreamApp()
		},
		"workload": func() {
			f.deleteStatefulSet()
			f.createStatefulSet()
			f.spreadTasks(f.readyPods()...)
		},
	} {
		recreate()
		f.passes(1)
		f.expectOwnersOfPlan()
		f.Expect(f.plan().UID).To(gomega.Equal(uid), fmt.Sprintf("the plan must outlive the %s", name))
	}
	f.delete("orders", &v1alpha1.StreamApp{})
	f.deleteStatefulSet()
	f.Expect(f.exists("streamweir-plan-orders", &corev1.ConfigMap{})).To(gomega.BeFalse(), "a plan without owners is garbage")
}

// expectOwnersOfPlan waits until the present StatefulSet and StreamApp are the owners of the plan.
func (f *fixture) expectOwnersOfPlan() {
	f.t.Helper()
	set := &appsv1.StatefulSet{}
	f.get("orders", set)
	f.Eventually(f.plan).Should(gomega.HaveField("OwnerReferences", gomega.ConsistOf(
		gomega.HaveField("UID", set.UID), gomega.HaveField("UID", f.app().UID))))
}
