// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/fakekubelet"
)

// capBytes returns a limit, in whole MiB, that holds the tasks of a pod now, but not after the failure of another pod.
func capBytes() int64 { return (requiredLimit(4) + requiredLimit(6)) / 2 >> 20 << 20 }

func TestLimitRangeCapsInjectedMemory(t *testing.T) {
	f := newFixture(t)
	f.Expect(admin.Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(capBytes(), resource.BinarySI)},
		}}},
	})).To(gomega.Succeed())
	f.enforce() // the pods are created, so the LimitRange has admitted them
	f.Expect(f.limits()).To(gomega.HaveEach(capBytes()))
	f.Expect(f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonCapped)).To(gomega.Equal(
		bytesText(requiredLimit(6)) + " are required to tolerate the failure of 1 pod, but LimitRange small allows at most " + bytesText(capBytes())))
	f.expectCondition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)

	f.delete("small", &corev1.LimitRange{})
	f.Eventually(f.limits).Should(gomega.HaveEach(requiredLimit(6)), "without the cap the limits of running pods are raised")
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
}

func TestFreeQuotaIsDividedByReplicas(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.Expect(admin.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "shared"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("100Gi")}},
	})).To(gomega.Succeed())
	f.setQuota("shared", bytesText(3*(capBytes()-templateLimit)))
	f.startOperator()
	f.createStreamApp()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.Expect(f.injection().Spec.Memory.Limit).To(equalBytes(capBytes()), "the present 2Gi and a third of the free part")
	f.Expect(f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonCapped)).To(gomega.HaveSuffix(
		"but ResourceQuota shared allows at most " + bytesText(capBytes())))

	f.setQuota("shared", "90Gi")
	f.Eventually(f.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(requiredLimit(6))))
}

func TestInjectedMemoryIsWithdrawnWhenPodsCannotBeCreated(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.awaitInjection()
	f.createQuota("2060Mi") // enough for a pod of the template, not for one with the injected limit
	f.Eventually(func() bool {
		_, err := dryRunPod(t.Context(), f.namespace, ownedPod("orders"))
		return err != nil
	}).Should(gomega.BeTrue(), "the quota must take effect")

	f.delete("orders-2", &corev1.Pod{})
	f.Eventually(func() *metav1.Time { return f.app().Status.PodsUnavailableSinceTime }).ShouldNot(gomega.BeNil())
	f.advance(time.Minute)
	f.Eventually(f.readyPods).Should(gomega.HaveLen(3), "without the injected memory the pod can be created")
	f.Expect(f.injection().Spec.Memory.Limit).To(gomega.BeNil())
	f.Expect(f.limits()).To(gomega.HaveKeyWithValue("orders-2", gomega.BeEquivalentTo(2<<30)))
	f.Expect(f.pod("orders-2").Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation), "the plan is still injected")

	f.spreadTasks(f.readyPods()...)
	f.advance(time.Minute)
	var withdrawal decision.Withdrawal
	f.Expect(json.Unmarshal([]byte(f.injection().Annotations[decision.AnnotationWithdrawal]), &withdrawal)).To(gomega.Succeed())
	retry := withdrawal.Since.Add(5 * time.Minute).Format(time.RFC3339)
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)).To(gomega.Equal(
		"pods could not be created or placed with a limit of " + bytesText(requiredLimit(6)) +
			", so new pods get the template's 2Gi; the operator retries at " + retry + ": make room in quota, LimitRange or nodes, or lower `maxLimit`"))
	f.expectQuiet()
	f.Expect(f.injection().Spec.Memory.Limit).To(gomega.BeNil(), "the withdrawal must be stable")

	f.setQuota("tight", "90Gi")
	f.advance(5 * time.Minute)
	f.Eventually(f.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(requiredLimit(6))), "the operator retries")
	f.Eventually(f.limits).Should(gomega.HaveKeyWithValue("orders-2", requiredLimit(6)), "the limit of the pod that was created without it is raised")
}

func TestInjectedMemoryIsWithdrawnWhenNoNodeHasRoom(t *testing.T) {
	// Room for three pods of the template. One of them can have the injected request instead, but not two.
	f := newFixture(t, fakekubelet.Node{Name: "small", Memory: resource.MustParse("4Gi")})
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = v1alpha1.RequestsFollowLimit })
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.awaitInjection()
	f.delete("orders-2", &corev1.Pod{})
	f.Eventually(func() string { return f.scheduled("orders-2") }).Should(gomega.Equal("True"))
	f.delete("orders-1", &corev1.Pod{})
	f.Eventually(func() string { return f.scheduled("orders-1") }).Should(gomega.Equal("False"))
	f.spreadTasks("orders-0", "orders-2")
	f.advance(90 * time.Second)
	f.Expect(f.injection().Spec.Memory.Limit).NotTo(gomega.BeNil(), "an autoscaler may add a node")
	f.advance(4 * time.Minute)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)
	f.Expect(f.injection().Spec.Memory.Limit).To(gomega.BeNil())

	f.Eventually(func() string { // a new pod then fits on the node
		pod, err := dryRunPod(t.Context(), f.namespace, ownedPod("orders"))
		f.Expect(err).NotTo(gomega.HaveOccurred())
		return pod.Spec.Containers[0].Resources.Limits.Memory().String()
	}).Should(gomega.Equal("2Gi"))
	f.delete("orders-1", &corev1.Pod{})
	f.Eventually(f.readyPods).Should(gomega.HaveLen(3))
	f.spreadTasks(f.readyPods()...)
	f.expectQuiet()
	f.Expect(f.injection().Spec.Memory.Limit).To(gomega.BeNil(), "the withdrawal must be stable")
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)
}

// scheduled returns the status of a pod's condition PodScheduled; empty for a missing pod.
func (f *fixture) scheduled(name string) string {
	pod := &corev1.Pod{}
	if !f.exists(name, pod) || pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return string(c.Status)
		}
	}
	return ""
}
