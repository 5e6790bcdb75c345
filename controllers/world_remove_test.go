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

func TestAfterAStreamAppThePlanStaysUntilNoPodNeedsIt(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	w.delete("orders", &v1alpha1.StreamApp{})
	w.Eventually(func() bool { return w.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse(), "new pods must not get the plan any more")
	w.Eventually(w.plan).Should(gomega.HaveField("Annotations", gomega.HaveKey("streamweir.dev/unused-since")))
	w.Expect(w.groups.tracks(w.namespace + "/orders")).To(gomega.BeFalse())

	w.later(61 * time.Minute)
	w.Expect(w.plan().Data).NotTo(gomega.BeEmpty(), "pods mount it: their containers could not restart without it")
	w.staysQuiet()

	w.patchSet(`{"spec":{"replicas":0}}`)
	w.Eventually(w.pods).Should(gomega.BeEmpty())
	w.later(61 * time.Minute)
	w.Eventually(func() bool { return w.exists("streamweir-plan-orders", &corev1.ConfigMap{}) }).Should(gomega.BeFalse())
}

func TestThePlanOfAStreamAppThatComesBackIsKept(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	w.delete("orders", &v1alpha1.StreamApp{})
	w.Eventually(w.plan).Should(gomega.HaveField("Annotations", gomega.HaveKey("streamweir.dev/unused-since")))
	uid := w.plan().UID
	w.createApp()
	w.Eventually(w.plan).Should(gomega.HaveField("Annotations", gomega.Not(gomega.HaveKey("streamweir.dev/unused-since"))))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.Expect(w.plan().UID).To(gomega.Equal(uid))
	w.Expect(w.plan().OwnerReferences).To(gomega.HaveLen(1))
	w.staysQuiet()
}

func TestObserveAfterEnforceTakesTheInjectionBack(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	limits := w.limits()
	w.patchApp(`{"spec":{"mode":"Observe"}}`)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonObserveMode)
	w.Expect(w.exists("orders", &v1alpha1.PodInjection{})).To(gomega.BeFalse())
	w.Expect(w.plan().Data).NotTo(gomega.BeEmpty(), "pods mount it")
	w.Expect(w.limits()).To(gomega.Equal(limits))
	w.staysQuiet()
}

func TestAPodThatOptsOutIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.createSet(func(pods *corev1.PodTemplateSpec) {
		pods.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"}
	})
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp()
	w.injection()
	w.awaitInjecting()
	w.patchSet(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now()))
	w.awaitRollout()
	w.share(w.readyPods()...)
	w.scaleIn() // they would have to be raised
	w.staysQuiet()
	w.Expect(w.pods()).To(gomega.HaveLen(2))
	for _, pod := range w.pods() {
		w.Expect(pod.Annotations).NotTo(gomega.HaveKey(v1alpha1.PlanAnnotation))
		w.Expect(pod.Spec.Volumes).To(gomega.BeEmpty())
		w.Expect(pod.Generation).To(gomega.BeEquivalentTo(1))
	}
	w.Expect(w.limits()).To(gomega.HaveEach(gomega.BeEquivalentTo(templateLimit)))
	w.Expect(w.gate.sent(writeResize)).To(gomega.BeZero())
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}
