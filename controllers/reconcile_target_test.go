// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestMissingTargetIsReportedAndFoundLater(t *testing.T) {
	f := newFixture(t)
	f.startOperator()
	f.createStreamApp()
	message := "StatefulSet orders does not exist in namespace " + f.namespace
	f.Expect(f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)).To(gomega.Equal(message))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)
	f.passes(1)
	f.expectNothingWritten()

	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
}

func TestOldestOfTwoStreamAppsWithSameTargetIsEnforced(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	first := f.injection()
	f.createStreamApp(func(app *v1alpha1.StreamApp) {
		app.Name = "orders-too" // created in the same second, so the name decides
		app.Spec.Kafka.ApplicationID = "orders"
	})
	f.Expect(f.expectConditionOf("orders-too", v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonConflictingStreamApp)).To(
		gomega.Equal("StreamApp orders has the same target and is older; delete one of the two"))
	f.Expect(f.exists("orders-too", &v1alpha1.PodInjection{})).To(gomega.BeFalse())
	f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	f.Expect(f.injection().ResourceVersion).To(gomega.Equal(first.ResourceVersion))

	f.delete("orders", &v1alpha1.StreamApp{})
	f.expectConditionOf("orders-too", v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	f.Eventually(func() bool { return f.exists("orders-too", &v1alpha1.PodInjection{}) }).Should(gomega.BeTrue(), "the other StreamApp must be enforced")
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
}

func TestUnsupportedPodTemplateIsReported(t *testing.T) {
	twoContainers := func(pods *corev1.PodTemplateSpec) {
		pods.Spec.Containers = append(pods.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1", Resources: memory("64Mi", "64Mi")})
	}
	for name, tt := range map[string]struct {
		template    func(*corev1.PodTemplateSpec)
		container   string
		wantReason  string
		wantMessage string
	}{
		"no container with this name": {
			template: twoContainers, container: "missing", wantReason: v1alpha1.ReasonContainerNotFound,
			wantMessage: `the pod template has no container "missing"; set ` + "`container` to one of app, sidecar",
		},
		"several containers and no name": {
			template: twoContainers, wantReason: v1alpha1.ReasonContainerAmbiguous,
			wantMessage: "the pod template has several containers; set `container` to one of app, sidecar",
		},
		"no memory limit": {
			template:    func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "") },
			wantReason:  v1alpha1.ReasonNoMemoryLimit,
			wantMessage: "container app has no memory limit; set one so that memory can be budgeted",
		},
		"BestEffort": {
			template:    func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("", "") },
			wantReason:  v1alpha1.ReasonBestEffort,
			wantMessage: "the pods have neither requests nor limits (QoS class BestEffort); set a memory limit on container app",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createStatefulSet(tt.template)
			f.spreadTasks(f.readyPods()...)
			f.startOperator()
			f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = tt.container })
			f.Expect(f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, tt.wantReason)).To(gomega.Equal(tt.wantMessage))
			f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, tt.wantReason)
			f.expectCondition(v1alpha1.ConditionFits, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)
			f.expectQuiet()
			f.expectNothingWritten()
			f.Expect(f.writes.all()).To(gomega.HaveEach(writeStatus))
		})
	}
}

func TestLimitTooSmallIsReportedAndNothingIsWritten(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "1Gi") })
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory.MaxLimit = new(resource.MustParse("1200Mi")) })
	required := bytesText(requiredLimitFor(4, 1<<30))
	message := f.expectCondition(v1alpha1.ConditionFits, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)
	f.Expect(message).To(gomega.HavePrefix("a limit of 1200Mi does not hold the tasks of a pod now: " + required + " are required, but `maxLimit` is 1200Mi"))
	f.Expect(message).To(gomega.ContainSubstring("is too small by"), "the planner's deficit, with the amount")
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)).To(gomega.HavePrefix("nothing was changed: "))
	f.expectQuiet()
	f.expectNothingWritten()
	f.Expect(f.writes.all()).To(gomega.HaveEach(writeStatus))

	f.patchStreamApp(`{"spec":{"memory":{"maxLimit":"8Gi"}}}`)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.Expect(f.injection().Spec.Memory.Limit).To(equalBytes(requiredLimitFor(6, 1<<30)))
}
