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

func TestATargetThatDoesNotExistIsNamedAndFoundLater(t *testing.T) {
	w := newWorld(t)
	w.startOperator()
	w.createApp()
	message := "StatefulSet orders must exist in namespace " + w.namespace
	w.Expect(w.condition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)).To(gomega.Equal(message))
	w.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)
	w.passes(1)
	w.nothingWritten()

	w.createSet()
	w.condition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
}

func TestOfTwoStreamAppsForAWorkloadTheOldestWins(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp()
	first := w.injection()
	w.createApp(func(app *v1alpha1.StreamApp) {
		app.Name = "orders-too" // made in the same second, it is the later one by its name
		app.Spec.Kafka.ApplicationID = "orders"
	})
	w.Expect(w.conditionOf("orders-too", v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonConflictingStreamApp)).To(
		gomega.Equal("StreamApp orders is older and has the same target: delete one of the two"))
	w.Expect(w.exists("orders-too", &v1alpha1.PodInjection{})).To(gomega.BeFalse())
	w.condition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	w.Expect(w.injection().ResourceVersion).To(gomega.Equal(first.ResourceVersion))

	w.delete("orders", &v1alpha1.StreamApp{})
	w.conditionOf("orders-too", v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	w.Eventually(func() bool { return w.exists("orders-too", &v1alpha1.PodInjection{}) }).Should(gomega.BeTrue(), "the other one must take over")
	w.Eventually(func() bool { return w.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
}

func TestPodTemplatesThatCannotBePlannedFor(t *testing.T) {
	twoContainers := func(pods *corev1.PodTemplateSpec) {
		pods.Spec.Containers = append(pods.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1", Resources: memory("64Mi", "64Mi")})
	}
	for name, tt := range map[string]struct {
		template    func(*corev1.PodTemplateSpec)
		container   string
		wantReason  string
		wantMessage string
	}{
		"no container of the name": {
			template: twoContainers, container: "missing", wantReason: v1alpha1.ReasonContainerNotFound,
			wantMessage: `the pod template has no container "missing"; it has app, sidecar`,
		},
		"several containers and no name": {
			template: twoContainers, wantReason: v1alpha1.ReasonContainerAmbiguous,
			wantMessage: "`container` must name one of the containers of the pod template: app, sidecar",
		},
		"no memory limit": {
			template:    func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "") },
			wantReason:  v1alpha1.ReasonNoMemoryLimit,
			wantMessage: "container app must have a memory limit: without one there is nothing to divide",
		},
		"BestEffort": {
			template:    func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("", "") },
			wantReason:  v1alpha1.ReasonBestEffort,
			wantMessage: "the pods have neither requests nor limits (QoS class BestEffort): set a memory limit on container app",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createSet(tt.template)
			w.share(w.readyPods()...)
			w.startOperator()
			w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = tt.container })
			w.Expect(w.condition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, tt.wantReason)).To(gomega.Equal(tt.wantMessage))
			w.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, tt.wantReason)
			w.condition(v1alpha1.ConditionFits, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)
			w.staysQuiet()
			w.nothingWritten()
			w.Expect(w.gate.all()).To(gomega.HaveEach(writeStatus))
		})
	}
}

func TestALimitThatIsTooSmallIsNamedAndNothingIsPatched(t *testing.T) {
	w := newWorld(t)
	w.createSet(func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "1Gi") })
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory.MaxLimit = new(resource.MustParse("1200Mi")) })
	need := human(needWith(4, 1<<30))
	message := w.condition(v1alpha1.ConditionFits, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)
	w.Expect(message).To(gomega.HavePrefix("a limit of 1200Mi does not hold what a pod runs now: " + need + " are needed, but `maxLimit` is 1200Mi"))
	w.Expect(message).To(gomega.ContainSubstring("is too small by"), "the planner's own words, with the amount")
	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)).To(gomega.HavePrefix("nothing was changed: "))
	w.staysQuiet()
	w.nothingWritten()
	w.Expect(w.gate.all()).To(gomega.HaveEach(writeStatus))

	w.patchApp(`{"spec":{"memory":{"maxLimit":"8Gi"}}}`)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(needWith(6, 1<<30)))
}
