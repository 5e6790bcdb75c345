// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestScaleOutPublishesSmallerPlanWithoutLoweringLimits(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.scaleInAndRaise()
	resizes := f.writes.count(writeResize)
	f.patchStatefulSet(`{"spec":{"replicas":3}}`)
	f.Eventually(f.readyPods).Should(gomega.HaveLen(3))
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.Eventually(f.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(requiredLimit(6))))
	f.Expect(f.plan().Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(requiredLimit(6)))),
		"the plan must be safe for the limit of new pods")
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectQuiet()
	f.Expect(f.limits()).To(gomega.HaveKeyWithValue("orders-0", requiredLimit(12)), "a limit is only lowered at the next start")
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(resizes))

	f.rollout()
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.Expect(f.limits()).To(gomega.HaveEach(requiredLimit(6)))
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(resizes))
}

func TestOOMKilledContainerIsNoPodFailure(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	before := f.limits()
	f.Expect(f.kubelet.RestartContainer(t.Context(), "orders-1", "app", "OOMKilled", 137)).To(gomega.Succeed())
	f.spreadTasks("orders-0", "orders-2") // other pods have its tasks until it returns
	f.passes(2)
	f.expectQuiet()
	f.Expect(f.limits()).To(gomega.Equal(before), "the active plan covers it, and a leak must not raise the limit")
	f.Expect(f.writes.count(writeResize)).To(gomega.BeZero())
}

func TestDeletedObjectsAreWrittenAgain(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	want := f.snapshot()
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme}) // the policies reserve this for the operator
	f.Expect(err).NotTo(gomega.HaveOccurred())
	plan := f.plan()
	injection := f.injection()
	for _, object := range []client.Object{injection.DeepCopy(), plan.DeepCopy()} {
		f.Expect(operator.Delete(t.Context(), object)).To(gomega.Succeed())
	}
	f.Eventually(func() bool { return f.plan().UID != plan.UID && f.injection().UID != injection.UID }).Should(gomega.BeTrue())
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectQuiet()
	f.Expect(f.snapshot()).To(gomega.Equal(want))
	f.Expect(f.plan().OwnerReferences).To(gomega.Equal(plan.OwnerReferences))
}

func TestEventsDescribeChanges(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.scaleInAndRaise()
	notes := func() map[string]string {
		var events eventsv1.EventList
		f.Expect(admin.List(t.Context(), &events, client.InNamespace(f.namespace))).To(gomega.Succeed())
		found := map[string]string{}
		for _, e := range events.Items {
			if e.Regarding.Kind == "StreamApp" {
				found[e.Type+" "+e.Reason] += e.Note + "\n"
			}
		}
		return found
	}
	f.Eventually(notes).Should(gomega.And(
		gomega.HaveKeyWithValue("Warning WouldCascade", gomega.And(
			gomega.ContainSubstring("published a new plan for the pods. "), gomega.ContainSubstring("rollout restart statefulset/orders"))),
		gomega.HaveKeyWithValue("Normal LimitRaised", gomega.ContainSubstring("pod orders-0 from "+bytesText(requiredLimit(6))+" to "+bytesText(requiredLimit(12)))),
	))
}

func TestConfigMapsOfOthersCauseNoPass(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.expectQuiet()
	before := f.groups.startedPasses()
	f.Expect(admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "other", Labels: map[string]string{"streamweir.dev/streamapp": "orders"}},
	})).To(gomega.Succeed())
	f.Consistently(f.groups.startedPasses).Should(gomega.Equal(before))
}
