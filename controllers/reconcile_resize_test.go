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

// bytesText formats bytes as messages do.
func bytesText(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// resizeStatus returns the status of a pod that differs from the representative one.
func (f *fixture) resizeStatus(pod string) v1alpha1.PodStatus {
	for _, p := range f.app().Status.DivergentPods {
		if p.Name == pod {
			return p
		}
	}
	return v1alpha1.PodStatus{}
}

func TestPendingResizeIsReported(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	before := f.plan().Data
	requested := 0
	for i, tt := range []struct {
		answer      fakekubelet.Answer
		wantReason  string
		wantOutcome v1alpha1.ResizeOutcome
		wantMessage string
	}{
		{fakekubelet.Ignore, v1alpha1.ReasonInProgress, v1alpha1.ResizeInProgress, "the resize of 2 pods is pending (InProgress)"},
		{fakekubelet.Defer, v1alpha1.ReasonResizeDeferred, v1alpha1.ResizeDeferred, "the resize of 2 pods is pending (Deferred): Node didn't have enough resource: memory"},
		{fakekubelet.Refuse, v1alpha1.ReasonResizeInfeasible, v1alpha1.ResizeInfeasible, "the resize of 2 pods is pending (Infeasible): In-place resize of this pod is not feasible on the node"},
		{fakekubelet.Delay, v1alpha1.ReasonInProgress, v1alpha1.ResizeInProgress, "the resize of 2 pods is pending (InProgress)"},
		{fakekubelet.Fail, v1alpha1.ReasonResizeError, v1alpha1.ResizeError, "the resize of 2 pods is pending (Error): failed to update container resources"},
	} {
		f.kubelet.AnswerResizes("", tt.answer)
		if i == 0 {
			f.scaleIn()
		}
		f.Eventually(func() string {
			return f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, tt.wantReason)
		}).Should(gomega.Equal(tt.wantMessage))
		f.Expect(f.resizeStatus("orders-0")).To(gomega.HaveField("Resize", tt.wantOutcome), string(tt.answer))
		f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWouldCascade)
		f.passes(3)
		f.Expect(f.plan().Data).To(gomega.Equal(before), "the larger plan must wait until the kubelet has raised the limits")
		if i == 0 {
			requested = f.writes.count(writeResize)
		}
	}
	f.Expect(requested).To(gomega.BeNumerically("<=", 3), "once for each pod, possibly for the terminating one too")
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(requested), "no resize is requested again, whatever the kubelet's response")

	f.kubelet.AnswerResizes("", fakekubelet.Apply)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.Expect(f.resizeStatus("orders-0")).To(gomega.Equal(v1alpha1.PodStatus{}), "the pod is like the representative one again")
	f.expectQuiet()
}

// createQuota creates a quota on memory limits with a scope, which the operator ignores. Only the test writes its status, with this free
// amount.
func (f *fixture) createQuota(free string) {
	f.t.Helper()
	hard := corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("100Gi")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "tight"},
		Spec: corev1.ResourceQuotaSpec{Hard: hard, ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopeNotTerminating, Operator: corev1.ScopeSelectorOpExists},
		}}},
	}
	f.Expect(admin.Create(f.t.Context(), quota)).To(gomega.Succeed())
	f.setQuota("tight", free)
}

// setQuota sets the free amount of 100Gi in the status of a quota.
func (f *fixture) setQuota(name, free string) {
	f.t.Helper()
	used := resource.MustParse("100Gi")
	used.Sub(resource.MustParse(free))
	f.Eventually(func() error {
		quota := &corev1.ResourceQuota{}
		f.get(name, quota)
		quota.Status.Hard = quota.Spec.Hard
		quota.Status.Used = corev1.ResourceList{corev1.ResourceLimitsMemory: used}
		return admin.Status().Update(f.t.Context(), quota)
	}).Should(gomega.Succeed())
}

func TestResizeRefusedByQuotaIsRequestedAgainLater(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	before := f.limits()["orders-0"]
	f.createQuota("1Mi")
	f.Eventually(func() string { // until the API server's quota admission has read the quota
		pod := f.pod("orders-0")
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("40Gi")
		return string(apierrors.ReasonForError(admin.SubResource("resize").Update(t.Context(), pod, dryRunSubResource)))
	}).Should(gomega.Equal(string(metav1.StatusReasonForbidden)))

	f.scaleIn()
	message := f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonResizeRefused)
	f.Expect(message).To(gomega.HavePrefix("the API server refused a limit of " + bytesText(requiredLimit(12)) + " for 2 pods: "))
	f.Expect(message).To(gomega.ContainSubstring("exceeded quota: tight"))
	f.Expect(f.resizeStatus("orders-0")).To(gomega.And(
		gomega.HaveField("Resize", v1alpha1.ResizeRefused), gomega.HaveField("Message", gomega.ContainSubstring("exceeded quota"))))
	requested := f.writes.count(writeResize)
	f.expectQuiet()
	f.Expect(requested).To(gomega.BeNumerically("<=", 3), "once for each pod, possibly for the terminating one too")
	f.Expect(f.limits()).To(gomega.HaveEach(before))

	f.setQuota("tight", "50Gi")
	f.advance(4 * time.Minute)
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(requested), "a refused resize is requested again after five minutes")
	f.advance(time.Minute)
	f.Eventually(f.limits).Should(gomega.HaveEach(requiredLimit(12)))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

func TestInvalidResizeIsReportedAndNotRequestedAtOnce(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	requested := 0
	f.writes.failWith(func(write string) error {
		if write != writeResize {
			return nil
		}
		requested++
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "orders", field.ErrorList{
			field.Forbidden(field.NewPath("spec"), "pod is running on a node that does not support resizing"),
		})
	})
	f.scaleIn()
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonResizeRefused)).To(gomega.Equal(
		"the API server refused a limit of " + bytesText(requiredLimit(12)) + " for 2 pods: Forbidden: pod is running on a node that does not support resizing"))
	f.expectQuiet()
	f.writes.failWith(nil)
	f.Expect(requested).To(gomega.BeNumerically("<=", 3), "once for each pod, possibly for the terminating one too")
	f.Expect(f.writes.count(writeResize)).To(gomega.BeZero())

	f.advance(5 * time.Minute)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Expect(f.limits()).To(gomega.HaveEach(requiredLimit(12)))
}
