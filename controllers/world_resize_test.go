// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/fakekubelet"
)

// human is an amount as messages show it.
func human(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// resizeOf gives what the status says of a pod's resize.
func (w *world) resizeOf(pod string) v1alpha1.PodStatus {
	for _, p := range w.app().Status.DivergentPods {
		if p.Name == pod {
			return p
		}
	}
	return v1alpha1.PodStatus{}
}

func TestWhatTheKubeletAnswersToAResizeIsReported(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	before, asked := w.plan().Data, 0
	for i, tt := range []struct {
		answer      fakekubelet.Answer
		wantReason  string
		wantOutcome v1alpha1.ResizeOutcome
		wantMessage string
	}{
		{fakekubelet.Ignore, v1alpha1.ReasonInProgress, v1alpha1.ResizeInProgress, "the resize of 2 pods is not done (InProgress)"},
		{fakekubelet.Defer, v1alpha1.ReasonResizeDeferred, v1alpha1.ResizeDeferred, "the resize of 2 pods is not done (Deferred): Node didn't have enough resource: memory"},
		{fakekubelet.Refuse, v1alpha1.ReasonResizeInfeasible, v1alpha1.ResizeInfeasible, "the resize of 2 pods is not done (Infeasible): In-place resize of this pod is not feasible on the node"},
		{fakekubelet.Delay, v1alpha1.ReasonInProgress, v1alpha1.ResizeInProgress, "the resize of 2 pods is not done (InProgress)"},
		{fakekubelet.Fail, v1alpha1.ReasonResizeError, v1alpha1.ResizeError, "the resize of 2 pods is not done (Error): failed to update container resources"},
	} {
		w.kubelet.AnswerResizes("", tt.answer)
		if i == 0 {
			w.scaleIn()
		}
		w.Eventually(func() string { return w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, tt.wantReason) }).Should(gomega.Equal(tt.wantMessage))
		w.Expect(w.resizeOf("orders-0")).To(gomega.HaveField("Resize", tt.wantOutcome), string(tt.answer))
		w.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWouldCascade)
		w.passes(3)
		w.Expect(w.plan().Data).To(gomega.Equal(before), "the larger plan must wait until the limits are in force")
		if i == 0 {
			asked = w.gate.sent(writeResize)
		}
	}
	w.Expect(asked).To(gomega.BeNumerically("<=", 3), "once for each pod, maybe for the one that was about to go")
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(asked), "no pod's limit is asked for again, whatever the kubelet says")

	w.kubelet.AnswerResizes("", fakekubelet.Apply)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.Expect(w.resizeOf("orders-0")).To(gomega.Equal(v1alpha1.PodStatus{}), "it is as the typical pod again")
	w.staysQuiet()
}

// createQuota creates a quota on memory limits with a scope, which the operator does not foresee. Nobody but the test keeps
// its status: what is used is what leaves so much free.
func (w *world) createQuota(free string) {
	w.t.Helper()
	hard := corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("100Gi")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "tight"},
		Spec: corev1.ResourceQuotaSpec{Hard: hard, ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopeNotTerminating, Operator: corev1.ScopeSelectorOpExists},
		}}},
	}
	w.Expect(admin.Create(w.t.Context(), quota)).To(gomega.Succeed())
	w.setQuota("tight", free)
}

// setQuota makes the status of a quota say that so much of 100Gi is free.
func (w *world) setQuota(name, free string) {
	w.t.Helper()
	used := resource.MustParse("100Gi")
	used.Sub(resource.MustParse(free))
	w.Eventually(func() error {
		quota := &corev1.ResourceQuota{}
		w.get(name, quota)
		quota.Status.Hard = quota.Spec.Hard
		quota.Status.Used = corev1.ResourceList{corev1.ResourceLimitsMemory: used}
		return admin.Status().Update(w.t.Context(), quota)
	}).Should(gomega.Succeed())
}

func TestAResizeThatAQuotaRefusesIsReportedAndAskedForAgainLater(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	before := w.limits()["orders-0"]
	w.createQuota("1Mi")
	w.Eventually(func() string { // until the API server's quota admission has seen the quota
		pod := w.pod("orders-0")
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("40Gi")
		return string(apierrors.ReasonForError(admin.SubResource("resize").Update(t.Context(), pod, dryRunSubResource)))
	}).Should(gomega.Equal(string(metav1.StatusReasonForbidden)))

	w.scaleIn()
	message := w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonResizeRefused)
	w.Expect(message).To(gomega.HavePrefix("the API server refuses a limit of " + human(needOfOne(12)) + " for 2 pods: "))
	w.Expect(message).To(gomega.ContainSubstring("exceeded quota: tight"))
	w.Expect(w.resizeOf("orders-0")).To(gomega.And(
		gomega.HaveField("Resize", v1alpha1.ResizeRefused), gomega.HaveField("Message", gomega.ContainSubstring("exceeded quota"))))
	asked := w.gate.sent(writeResize)
	w.staysQuiet()
	w.Expect(asked).To(gomega.BeNumerically("<=", 3), "once for each pod, maybe for the one that was about to go")
	w.Expect(w.limits()).To(gomega.HaveEach(before))

	w.setQuota("tight", "50Gi")
	w.later(4 * time.Minute)
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(asked), "people change quotas in minutes, not in seconds")
	w.later(time.Minute)
	w.Eventually(w.limits).Should(gomega.HaveEach(needOfOne(12)))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

func TestAResizeThatTheAPIServerCallsInvalidIsReportedAndNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	asked := 0
	w.gate.refuseWith(func(write string) error {
		if write != writeResize {
			return nil
		}
		asked++
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "orders", field.ErrorList{
			field.Forbidden(field.NewPath("spec"), "pod is running on a node that does not support resizing"),
		})
	})
	w.scaleIn()
	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonResizeRefused)).To(gomega.Equal(
		"the API server refuses a limit of " + human(needOfOne(12)) + " for 2 pods: Forbidden: pod is running on a node that does not support resizing"))
	w.staysQuiet()
	w.gate.refuseWith(nil)
	w.Expect(asked).To(gomega.BeNumerically("<=", 3), "once for each pod, maybe for the one that was about to go")
	w.Expect(w.gate.sent(writeResize)).To(gomega.BeZero())

	w.later(5 * time.Minute)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.Expect(w.limits()).To(gomega.HaveEach(needOfOne(12)))
}
