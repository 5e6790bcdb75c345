// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestScalingOutPublishesTheSmallerPlanAndLowersNothingInPlace(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	w.raised()
	resizes := w.gate.sent(writeResize)
	w.patchSet(`{"spec":{"replicas":3}}`)
	w.Eventually(w.readyPods).Should(gomega.HaveLen(3))
	w.share(w.readyPods()...)
	w.passes(1)
	w.Eventually(w.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(needOfOne(6))))
	w.Expect(w.plan().Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(needOfOne(6)))),
		"the plan must be safe for the limit that new pods get")
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.staysQuiet()
	w.Expect(w.limits()).To(gomega.HaveKeyWithValue("orders-0", needOfOne(12)), "a limit is lowered at the next start only")
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(resizes))

	w.rollout()
	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.Expect(w.limits()).To(gomega.HaveEach(needOfOne(6)))
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(resizes))
}

func TestAContainerThatIsKilledForMemoryIsNoLoss(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	before := w.limits()
	w.Expect(w.kubelet.RestartContainer(t.Context(), "orders-1", "app", "OOMKilled", 137)).To(gomega.Succeed())
	w.share("orders-0", "orders-2") // its tasks are elsewhere until it is back
	w.passes(2)
	w.staysQuiet()
	w.Expect(w.limits()).To(gomega.Equal(before), "the plan in force covers it, and a leak is not answered with a larger limit")
	w.Expect(w.gate.sent(writeResize)).To(gomega.BeZero())
}

func TestWhatSomeoneElseDeletesIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	want := w.outcome()
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme}) // nobody else may
	w.Expect(err).NotTo(gomega.HaveOccurred())
	plan, injection := w.plan(), w.injection()
	for _, object := range []client.Object{injection.DeepCopy(), plan.DeepCopy()} {
		w.Expect(operator.Delete(t.Context(), object)).To(gomega.Succeed())
	}
	w.Eventually(func() bool { return w.plan().UID != plan.UID && w.injection().UID != injection.UID }).Should(gomega.BeTrue())
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.staysQuiet()
	w.Expect(w.outcome()).To(gomega.Equal(want))
	w.Expect(w.plan().OwnerReferences).To(gomega.Equal(plan.OwnerReferences))
}

func TestAWorkloadThatIsMadeAnewOwnsThePlan(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.share(w.readyPods()...)
	stop := w.startOperator()
	w.createApp()
	w.injection()
	w.delete("orders", &appsv1.StatefulSet{})
	w.condition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)
	w.Eventually(func() bool { return w.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
	w.Eventually(w.pods).Should(gomega.BeEmpty())
	w.createSet()
	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	w.ownsThePlan()

	stop()
	w.delete("orders", &appsv1.StatefulSet{})
	w.Eventually(w.pods).Should(gomega.BeEmpty())
	w.createSet() // all while the operator is stopped
	w.startOperator()
	w.share(w.readyPods()...)
	w.passes(1)
	w.ownsThePlan()
	w.staysQuiet()
}

// ownsThePlan waits until the plan belongs to the StatefulSet as it is now, and to nothing else.
func (w *world) ownsThePlan() {
	w.t.Helper()
	w.injection()
	set := &appsv1.StatefulSet{}
	w.get("orders", set)
	w.Eventually(w.plan).Should(gomega.HaveField("OwnerReferences", gomega.ConsistOf(gomega.HaveField("UID", set.UID))))
}

func TestEventsTellWhatWasDone(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	w.raised()
	notes := func() map[string]string {
		var events eventsv1.EventList
		w.Expect(admin.List(t.Context(), &events, client.InNamespace(w.namespace))).To(gomega.Succeed())
		found := map[string]string{}
		for _, e := range events.Items {
			if e.Regarding.Kind == "StreamApp" {
				found[e.Type+" "+e.Reason] += e.Note + "\n"
			}
		}
		return found
	}
	w.Eventually(notes).Should(gomega.And(
		gomega.HaveKeyWithValue("Normal PlanPublished", gomega.ContainSubstring("wrote a new plan for the pods' containers to read")),
		gomega.HaveKeyWithValue("Warning RestartNeeded", gomega.ContainSubstring("rollout restart statefulset/orders")),
		gomega.HaveKeyWithValue("Normal LimitRaised", gomega.ContainSubstring("pod orders-0 from "+human(needOfOne(6))+" to "+human(needOfOne(12)))),
		gomega.HaveKey("Normal Applied"),
	))
}

func TestConfigMapsThatAreNotTheOperatorsAreNotLookedAt(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	w.staysQuiet() // what was begun has ended
	before := w.groups.passesBegun()
	w.Expect(admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "of-the-user", Labels: map[string]string{"streamweir.dev/streamapp": "orders"}},
	})).To(gomega.Succeed())
	w.Consistently(w.groups.passesBegun).Should(gomega.Equal(before))
}
