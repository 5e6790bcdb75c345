// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// manyTasks require a larger limit than the template's.
const manyTasks = 400

// enforceManyTasks sets up pods that run with plan and agent and report many tasks. Their limits are raised, and the operator's clock shows a
// time at which they have run for five minutes. The StreamApp names no Kafka cluster.
func (f *fixture) enforceManyTasks() (stop func()) {
	f.t.Helper()
	f.simulateAgents()
	f.createStatefulSet()
	stop = f.startOperator()
	f.createStreamApp(withoutKafka)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.rollout()
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	f.agents.setTasks(manyTasks)
	f.Eventually(func() *int32 { return f.app().Status.Tasks }).Should(gomega.HaveValue(gomega.BeEquivalentTo(manyTasks)))
	f.Eventually(f.limits).Should(gomega.HaveEach(gomega.BeNumerically(">", templateLimit)))
	f.expectPlanLoaded()
	f.clock.SetTime(time.Now().Add(5 * time.Minute))
	f.passes(2)
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.Expect(f.injection().Spec.Memory.Limit.Value()).To(gomega.BeNumerically(">", templateLimit))
	f.expectQuiet()
	return stop
}

// expectPlanLoaded waits until every pod has reported that it is bounded by the published plan. Their limits may differ.
func (f *fixture) expectPlanLoaded() {
	f.t.Helper()
	f.Eventually(func() v1alpha1.StreamAppStatus { return f.app().Status }).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))),
		gomega.HaveField("DivergentPods", gomega.Not(gomega.ContainElement(gomega.HaveField("PlanRevision", gomega.Not(gomega.BeEmpty())))))))
}

// expectKept expects plan, injection and limits to stay as they were.
func (f *fixture) expectKept(before snapshot) {
	f.t.Helper()
	before.conditions = nil
	f.Consistently(func() snapshot {
		after := f.snapshot()
		after.conditions = nil
		return after
	}).Should(gomega.Equal(before), "plan, injection and limits stay")
}

// expectPlannedFromMemory expects a pod planned with its last known load.
func (f *fixture) expectPlannedFromMemory() {
	f.t.Helper()
	f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)).To(
		gomega.HaveSuffix("planned with their last known load"))
	f.expectCondition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
}

// ofAnotherPod makes the reports of a pod unusable.
func ofAnotherPod(name string) func(string, *report.Report) {
	return func(pod string, r *report.Report) {
		if pod == name {
			r.PodUID = "elsewhere"
		}
	}
}

func TestSilentPodKeepsPlanAndLimits(t *testing.T) {
	f := newFixture(t)
	f.enforceManyTasks()
	before := f.snapshot()
	f.agents.setChange(ofAnotherPod("orders-2"))
	f.Expect(f.kubelet.RestartContainer(t.Context(), "orders-2", "app", "Error", 1)).To(gomega.Succeed())
	f.advance(5 * time.Minute)
	f.expectPlannedFromMemory()
	f.advance(5 * time.Minute)
	f.expectKept(before)
	f.expectQuiet()

	f.agents.setChange(func(string, *report.Report) {})
	f.clock.SetTime(time.Now().Add(10 * time.Minute))
	f.Expect(f.app().Status.Tasks).To(gomega.HaveValue(gomega.BeEquivalentTo(manyTasks)))
}

func TestRestartedOperatorKeepsPlanOfSilentPod(t *testing.T) {
	f := newFixture(t)
	stop := f.enforceManyTasks()
	before := f.snapshot()
	stop()
	f.agents.setChange(ofAnotherPod("orders-2"))
	f.startOperator()
	f.expectPlannedFromMemory()
	f.advance(5 * time.Minute)
	f.expectKept(before)
	f.expectQuiet()
}

// TestRestartWithLateSourcesWritesNothing: neither objects nor conditions move, although no pod answers in the first second.
func TestRestartWithLateSourcesWritesNothing(t *testing.T) {
	f := newFixture(t)
	stop := f.enforceManyTasks()
	before := f.resourceVersions()
	writes := len(f.writes.all())
	stop()
	f.agents.setUnreachable(true)
	f.startOperator()
	f.passes(3)
	f.Consistently(f.resourceVersions, time.Second).Should(gomega.Equal(before))
	f.agents.setUnreachable(false)
	f.Consistently(f.resourceVersions, 2*time.Second).Should(gomega.Equal(before)) // the requests are repeated after a second
	f.passes(3)
	f.Expect(f.resourceVersions()).To(gomega.Equal(before))
	f.Expect(f.writes.all()).To(gomega.HaveLen(writes))
}

func TestRestartWithoutSourcesFreezesAfterGrace(t *testing.T) {
	f := newFixture(t)
	stop := f.enforceManyTasks()
	before := f.snapshot()
	figures := f.app().Status
	stop()
	f.agents.setUnreachable(true)
	f.startOperator()
	f.passes(3)
	f.Expect(f.snapshot()).To(gomega.Equal(before), "no condition moves within the grace")
	f.advance(3 * time.Minute)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonAssignmentUnknown)
	f.expectKept(before)
	status := f.app().Status
	f.Expect(status.RequiredLimit).To(equalBytes(figures.RequiredLimit.Value()))
	f.Expect(status.Lines).To(gomega.HaveLen(len(figures.Lines)))
	f.agents.setUnreachable(false)
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectKept(before)
}

// planLimit returns the limit that a plan is for.
func planLimit(files map[string]string) int64 {
	plan, err := planfile.Parse(files)
	if err != nil {
		return 0
	}
	return plan.Limit
}

// TestPodsWithoutInjectionKeepThePlan: it may only grow, because the tasks move to the pods that still have an agent.
func TestPodsWithoutInjectionKeepThePlan(t *testing.T) {
	f := newFixture(t)
	f.enforceManyTasks()
	plan, memory := f.plan().Data, f.injection().Spec.Memory
	f.patchStatefulSet(`{"spec":{"template":{"metadata":{"annotations":{"streamweir.dev/inject":"false"}}}}}`)
	f.awaitRollout()
	f.clock.SetTime(time.Now().Add(10 * time.Minute))
	f.passes(3)
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)
	f.advance(5 * time.Minute)
	f.Expect(planLimit(f.plan().Data)).To(gomega.BeNumerically(">=", planLimit(plan)))
	f.Expect(f.injection().Spec.Memory.Limit.Value()).To(gomega.BeNumerically(">=", memory.Limit.Value()))
	f.expectQuiet()
}

// TestStreamAppCreatedAgainRaisesNothing: its pods are known to be bounded, although Kafka answers before they do.
func TestStreamAppCreatedAgainRaisesNothing(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	for range 2 { // the second time with the limit of a proven image
		f.rollout()
		f.spreadTasks(f.readyPods()...)
		f.expectBounded()
		f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	}
	f.clock.SetTime(time.Now().Add(5 * time.Minute))
	f.expectQuiet()
	limits := f.limits()
	f.Expect(limits).To(gomega.HaveEach(gomega.BeNumerically("<", templateLimit)))
	images := f.app().Status.Images
	resizes := f.writes.count(writeResize)

	f.agents.setUnreachable(true)
	f.delete("orders", &v1alpha1.StreamApp{})
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
	f.createStreamApp()
	f.Consistently(f.limits, time.Second).Should(gomega.Equal(limits))
	f.agents.setUnreachable(false)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectQuiet()
	f.Expect(f.limits()).To(gomega.Equal(limits))
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(resizes))
	f.Expect(f.app().Status.Images).To(gomega.HaveLen(len(images)))
	f.Expect(f.app().Status.Images[0].SinceTime.Equal(images[0].SinceTime)).To(gomega.BeTrue(), "the proof is remembered")
}

// TestRenamedStreamAppNeedsARestart: its pods keep the plan of the old one. They are not refreshed without end.
func TestRenamedStreamAppNeedsARestart(t *testing.T) {
	f := newFixture(t)
	f.enforceManyTasks()
	spec := f.app().Spec
	f.delete("orders", &v1alpha1.StreamApp{})
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
	f.Expect(admin.Create(t.Context(), &v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "orders-v2"}, Spec: spec})).To(gomega.Succeed())
	message := func() string {
		return f.expectConditionOf("orders-v2", v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	}
	f.Expect(message()).To(gomega.HavePrefix("3 pods (orders-0) mount the plan of another StreamApp"))
	refreshes := f.writes.count(writeRefresh)
	limits := f.limits()
	f.agents.setTasks(2 * manyTasks)
	for name, limit := range limits {
		f.Eventually(f.limits).Should(gomega.HaveKeyWithValue(name, gomega.BeNumerically(">", limit)), "the limits are raised")
	}
	for range 5 {
		f.clock.SetTime(f.clock.Now().Add(6 * time.Minute))
		f.groups.changes <- f.namespace + "/orders-v2"
		f.Consistently(func() int { return f.writes.count(writeRefresh) }, 200*time.Millisecond).Should(gomega.Equal(refreshes))
	}
	f.Expect(message()).To(gomega.ContainSubstring("mount the plan of another StreamApp"))
	f.Expect(f.writes.count(writeRefresh)).To(gomega.Equal(refreshes), "no pod with another plan is refreshed")

	f.patchStatefulSet(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"now"}}}}}`)
	f.awaitRollout()
	for _, name := range f.readyPods() {
		f.Expect(planOf(f.pod(name))).To(gomega.Equal(decision.PlanConfigMapName("orders-v2")))
	}
	f.expectConditionOf("orders-v2", v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

// TestMemoryIsWrittenWithThePlan, and alone when only the assignment has changed.
func TestMemoryIsWrittenWithThePlan(t *testing.T) {
	f := newFixture(t)
	f.enforceWithReports()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	memory := func() string { return f.plan().Annotations[decision.AnnotationMemory] }
	f.Eventually(memory).Should(gomega.ContainSubstring(`"active":{"0":"0,3,6,9"}`))
	f.expectQuiet()
	before := f.plan().Data[planfile.RevisionKey]
	f.agents.setChange(func(pod string, r *report.Report) { // two pods exchange a task
		tasks := r.Clients[0].Threads[0].Tasks
		for i := range tasks {
			switch {
			case pod == "orders-0" && tasks[i].ID == "0_9":
				tasks[i].ID = "0_10"
			case pod == "orders-1" && tasks[i].ID == "0_10":
				tasks[i].ID = "0_9"
			}
		}
	})
	f.Eventually(memory).Should(gomega.ContainSubstring(`"active":{"0":"0,3,6,10"}`))
	f.expectQuiet()
	f.Expect(f.plan().Data).To(gomega.HaveKeyWithValue(planfile.RevisionKey, before))
}

// TestHoldKeepsEverything while a larger limit is required.
func TestHoldKeepsEverything(t *testing.T) {
	f := newFixture(t)
	f.enforceWithReports()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectQuiet()
	before := f.snapshot()
	f.patchStreamApp(`{"spec":{"mode":"Hold"}}`)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonHeld)
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHeld)
	f.agents.setTasks(manyTasks)
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonWouldCascade)
	f.expectKept(before)
	f.expectQuiet()
	f.patchStreamApp(`{"spec":{"mode":"Enforce"}}`)
	f.Eventually(f.limits).Should(gomega.HaveEach(gomega.BeNumerically(">", templateLimit)))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
}
