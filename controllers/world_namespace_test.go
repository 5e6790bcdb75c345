// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/fakekubelet"
)

// wallBytes is a limit, in whole MiB, that holds what a pod runs now, and not what it would run after a loss.
func wallBytes() int64 { return (needOfOne(4) + needOfOne(6)) / 2 >> 20 << 20 }

func TestALimitRangeIsAWallForInjectedMemory(t *testing.T) {
	w := newWorld(t)
	w.Expect(admin.Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(wallBytes(), resource.BinarySI)},
		}}},
	})).To(gomega.Succeed())
	w.enforced() // pods are created, so the LimitRange has let them through
	w.Expect(w.limits()).To(gomega.HaveEach(wallBytes()))
	w.Expect(w.condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonCapped)).To(gomega.Equal(
		human(needOfOne(6)) + " are needed to survive the loss of one pod, but LimitRange small allows at most " + human(wallBytes())))
	w.condition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)

	w.delete("small", &corev1.LimitRange{})
	w.Eventually(w.limits).Should(gomega.HaveEach(needOfOne(6)), "the wall is gone, and running pods are raised")
	w.condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
}

func TestAQuotaIsAWallOfWhichEachReplicaHasItsShare(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.share(w.readyPods()...)
	w.Expect(admin.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shared"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("100Gi")}},
	})).To(gomega.Succeed())
	w.setQuota("shared", human(3*(wallBytes()-templateLimit)))
	w.startOperator()
	w.createApp()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(wallBytes()), "2Gi as now, and a third of what is free")
	w.Expect(w.condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonCapped)).To(gomega.HaveSuffix(
		"but ResourceQuota shared allows at most " + human(wallBytes())))

	w.setQuota("shared", "90Gi")
	w.Eventually(w.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(needOfOne(6))))
}

func TestInjectedMemoryIsWithdrawnWhenPodsCannotBeCreatedWithIt(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.awaitInjecting()
	w.createQuota("2060Mi") // room for a pod of the template, not for one with the injected limit
	w.Eventually(func() bool {
		_, err := dryRunPod(t.Context(), w.namespace, ownedPod("orders"))
		return err != nil
	}).Should(gomega.BeTrue(), "the quota must be in force")

	w.delete("orders-2", &corev1.Pod{})
	w.Eventually(w.readyPods).Should(gomega.Equal([]string{"orders-0", "orders-1"}))
	w.Eventually(func() *metav1.Time { return w.app().Status.PodsUnavailableSinceTime }).ShouldNot(gomega.BeNil())
	w.passes(2)
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(needOfOne(6)), "a pod that has just gone may still come back")
	w.later(time.Minute)
	w.Eventually(w.readyPods).Should(gomega.HaveLen(3), "without the injected memory the pod can be created")
	w.Expect(w.injection().Spec.Memory.Limit).To(gomega.BeNil())
	w.Expect(w.limits()).To(gomega.HaveKeyWithValue("orders-2", gomega.BeEquivalentTo(2<<30)))
	w.Expect(w.pod("orders-2").Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation), "the plan itself is still injected")

	w.share(w.readyPods()...)
	w.later(time.Minute)
	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)).To(gomega.Equal(
		"pods could not be created or placed with a limit of " + human(needOfOne(6)) +
			", so new pods get the template's 2Gi; it is tried again after an hour: make room in quota, LimitRange or nodes, or lower `maxLimit`"))
	w.staysQuiet()
	w.Expect(w.injection().Spec.Memory.Limit).To(gomega.BeNil(), "it must not come and go")

	w.setQuota("tight", "90Gi")
	w.later(time.Hour)
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(needOfOne(6)), "somebody may have made room")
	w.Eventually(w.limits).Should(gomega.HaveKeyWithValue("orders-2", needOfOne(6)), "the pod that came without it is raised")
}

func TestInjectedMemoryIsWithdrawnWhenNoNodeHasRoomForIt(t *testing.T) {
	// Room for three pods of the template, and for one of them with the injected request in its place, not for two.
	w := newWorld(t, fakekubelet.Node{Name: "small", Memory: resource.MustParse("4Gi")})
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = v1alpha1.RequestsFollowLimit })
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.awaitInjecting()
	w.delete("orders-2", &corev1.Pod{})
	w.Eventually(func() string { return w.scheduled("orders-2") }).Should(gomega.Equal("True"))
	w.delete("orders-1", &corev1.Pod{})
	w.Eventually(func() string { return w.scheduled("orders-1") }).Should(gomega.Equal("False"))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)
	w.Expect(w.injection().Spec.Memory.Limit).To(gomega.BeNil())

	w.Eventually(func() string { // whoever replaces the pod gets one that has room
		pod, err := dryRunPod(t.Context(), w.namespace, ownedPod("orders"))
		w.Expect(err).NotTo(gomega.HaveOccurred())
		return pod.Spec.Containers[0].Resources.Limits.Memory().String()
	}).Should(gomega.Equal("2Gi"))
	w.delete("orders-1", &corev1.Pod{})
	w.Eventually(w.readyPods).Should(gomega.HaveLen(3))
	w.share(w.readyPods()...)
	w.staysQuiet()
	w.Expect(w.injection().Spec.Memory.Limit).To(gomega.BeNil(), "it must not come and go")
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)
}

// scheduled gives the status of a pod's condition PodScheduled, empty for a pod that is not there.
func (w *world) scheduled(name string) string {
	pod := &corev1.Pod{}
	if !w.exists(name, pod) || pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return string(c.Status)
		}
	}
	return ""
}
