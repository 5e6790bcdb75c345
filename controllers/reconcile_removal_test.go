// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestPlanOfDeletedStreamAppStaysUntilNoPodMountsIt(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.delete("orders", &v1alpha1.StreamApp{})
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse(), "new pods must not be injected")
	f.Eventually(f.plan).Should(gomega.HaveField("Annotations", gomega.HaveKey("streamweir.dev/unused-since")))
	f.Expect(f.groups.tracks(f.namespace + "/orders")).To(gomega.BeFalse())

	f.advance(61 * time.Minute)
	f.Expect(f.plan().Data).NotTo(gomega.BeEmpty(), "the pods mount it: their containers could not restart without it")
	f.expectQuiet()

	f.patchStatefulSet(`{"spec":{"replicas":0}}`)
	f.Eventually(f.pods).Should(gomega.BeEmpty())
	f.advance(61 * time.Minute)
	f.Eventually(func() bool { return f.exists("streamweir-plan-orders", &corev1.ConfigMap{}) }).Should(gomega.BeFalse())
}

func TestPlanOfRecreatedStreamAppIsKept(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.delete("orders", &v1alpha1.StreamApp{})
	f.Eventually(f.plan).Should(gomega.HaveField("Annotations", gomega.HaveKey("streamweir.dev/unused-since")))
	uid := f.plan().UID
	f.createStreamApp()
	f.Eventually(f.plan).Should(gomega.HaveField("Annotations", gomega.Not(gomega.HaveKey("streamweir.dev/unused-since"))))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Expect(f.plan().UID).To(gomega.Equal(uid))
	f.Expect(f.plan().OwnerReferences).To(gomega.HaveLen(2))
	f.expectQuiet()
}

func TestChangeToObserveModeRemovesInjection(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	limits := f.limits()
	f.patchStreamApp(`{"spec":{"mode":"Observe"}}`)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonObserveMode)
	f.Expect(f.exists("orders", &v1alpha1.PodInjection{})).To(gomega.BeFalse())
	f.Expect(f.plan().Data).NotTo(gomega.BeEmpty(), "the pods mount it")
	f.Expect(f.limits()).To(gomega.Equal(limits))
	f.expectQuiet()
}

func TestOptedOutPodsAreNotChanged(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) {
		pods.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"}
	})
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	f.injection()
	f.awaitInjection()
	f.patchStatefulSet(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now()))
	f.awaitRollout()
	f.spreadTasks(f.readyPods()...)
	f.scaleIn() // without the opt-out the limits would be raised
	f.expectQuiet()
	f.Expect(f.pods()).To(gomega.HaveLen(2))
	for _, pod := range f.pods() {
		f.Expect(pod.Annotations).NotTo(gomega.HaveKey(v1alpha1.PlanAnnotation))
		f.Expect(pod.Spec.Volumes).To(gomega.BeEmpty())
		f.Expect(pod.Generation).To(gomega.BeEquivalentTo(1))
	}
	f.Expect(f.limits()).To(gomega.HaveEach(gomega.BeEquivalentTo(templateLimit)))
	f.Expect(f.writes.count(writeResize)).To(gomega.BeZero())
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}
