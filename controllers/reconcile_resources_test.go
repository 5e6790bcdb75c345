// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// TestLimitOfLimitRangeIsRaised: the pod template has no resources, and a LimitRange gives each pod those of the usual template.
func TestLimitOfLimitRangeIsRaised(t *testing.T) {
	f := newFixture(t)
	defaults := memory("512Mi", "2Gi")
	f.Expect(admin.Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "defaults"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: defaults.Limits, DefaultRequest: defaults.Requests,
		}}},
	})).To(gomega.Succeed())
	f.Eventually(func() string { // the API server reads LimitRanges through a watch
		pod := ownedPod("probe")
		pod.Spec.Containers[0].Resources = memory("", "")
		pod, err := dryRunPod(t.Context(), f.namespace, pod)
		f.Expect(err).NotTo(gomega.HaveOccurred())
		return pod.Spec.Containers[0].Resources.Limits.Memory().String()
	}).Should(gomega.Equal("2Gi"))
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("", "") })
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	f.restartWithPlan()
	f.Expect(f.limits()).To(gomega.HaveEach(requiredLimit(6)))
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
}

func TestPodLevelLimitIsPlannedForAndKept(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) {
		pods.Spec.Containers[0].Resources = memory("512Mi", "4Gi")
		pods.Spec.Containers = append(pods.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1", Resources: memory("512Mi", "3Gi")})
		pods.Spec.Resources = new(memory("1Gi", "5Gi"))
	})
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = "app" })
	f.restartWithPlan()
	f.Expect(f.limits()).To(gomega.HaveEach(int64(4 << 30)))
	f.Expect(f.app().Status.Limit).To(equalBytes(2<<30), "3Gi of the pod's 5Gi are for the other container")
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonWouldCascade)
	f.spreadTasks(f.readyPods()[:1]...)
	f.passes(2)
	f.Expect(f.limits()).To(gomega.HaveEach(int64(4 << 30)))
	f.Expect(f.writes.all()).NotTo(gomega.ContainElement(writeResize))
}
