// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// prepareEnforced is [fixture.enforce] with the operator that already runs.
func prepareEnforced(f *fixture) {
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.createStreamApp()
	f.restartWithPlan()
	f.expectQuiet()
}

func TestOperatorKilledDuringFirstWritesLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: func(f *fixture) {
			f.createStatefulSet()
			f.spreadTasks(f.readyPods()...)
		},
		change: func(f *fixture) {
			f.createStreamApp()
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
			f.expectQuiet()
		},
	})
}

func TestOperatorWithAgentKilledDuringFirstWritesLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		agents:  true,
		prepare: func(f *fixture) { f.createStatefulSet() },
		change: func(f *fixture) {
			f.createStreamApp(withoutKafka)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
			f.expectQuiet()
		},
	})
}

func TestOperatorKilledWhileRaisingLimitsLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{prepare: prepareEnforced, change: (*fixture).scaleInAndRaise})
}

func TestOperatorKilledWhileLoweringLimitsLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: func(f *fixture) {
			prepareEnforced(f)
			f.scaleInAndRaise()
			f.patchStatefulSet(`{"spec":{"replicas":3}}`)
			f.Eventually(f.readyPods).Should(gomega.HaveLen(3))
			f.expectQuiet()
		},
		change: func(f *fixture) {
			f.spreadTasks(f.readyPods()...)
			f.passes(1)
			f.Eventually(f.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(requiredLimit(6))))
			f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
			f.expectQuiet()
		},
	})
}

func TestOperatorKilledWhileWithdrawingMemoryLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: func(f *fixture) { // no pod is injected yet: raised limits would use the quota
			f.createStatefulSet()
			f.spreadTasks(f.readyPods()...)
			f.createStreamApp()
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
			f.awaitInjection()
			f.createQuota("2060Mi") // enough for a pod of the template, not for one with the injected limit
			f.Eventually(func() bool {
				_, err := dryRunPod(f.t.Context(), f.namespace, ownedPod("orders"))
				return err != nil
			}).Should(gomega.BeTrue(), "the quota must take effect")
			f.expectQuiet()
		},
		change: func(f *fixture) {
			f.delete("orders-2", &corev1.Pod{})
			f.Eventually(func() bool {
				withdrawn := f.injection().Spec.Memory.Limit == nil
				return withdrawn || f.app().Status.PodsUnavailableSinceTime != nil
			}).Should(gomega.BeTrue(), "the missing pod must be noticed")
			f.advance(2 * time.Minute)
			f.Eventually(f.readyPods).Should(gomega.HaveLen(3), "without the injected memory the pod can be created")
			f.spreadTasks(f.readyPods()...)
			f.advance(time.Minute)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPodCreationRefused)
			f.expectQuiet()
		},
	})
}

func TestOperatorKilledWhileHoldingLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: prepareEnforced,
		change: func(f *fixture) {
			limits := f.limits()
			revision := f.injection().Spec.PlanRevision
			f.patchStreamApp(`{"spec":{"mode":"Hold"}}`)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonHeld)
			f.scaleIn()
			f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonWouldCascade)
			f.expectQuiet()
			for _, pod := range f.pods() {
				f.Expect(f.limits()).To(gomega.HaveKeyWithValue(pod.Name, limits[pod.Name]), "a held limit must not change")
			}
			f.Expect(f.injection().Spec.PlanRevision).To(gomega.Equal(revision), "a held plan must not change")
			f.patchStreamApp(`{"spec":{"mode":"Enforce"}}`)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
			f.expectQuiet()
		},
	})
}

// removePlan restarts the pods without the plan, and waits until the operator has removed it.
func (f *fixture) removePlan() {
	f.t.Helper()
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
	f.Eventually(func() []string { return f.snapshot().unneeded }).Should(gomega.ContainElement("plan"))
	f.Eventually(func() string { // until the API server has read the deletion
		pod, err := dryRunPod(f.t.Context(), f.namespace, ownedPod("orders"))
		f.Expect(err).NotTo(gomega.HaveOccurred())
		return pod.Annotations[v1alpha1.PlanAnnotation]
	}).Should(gomega.BeEmpty())
	f.patchStatefulSet(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"now"}}}}}`)
	f.awaitRollout()
	f.spreadTasks(f.readyPods()...)
	f.advance(61 * time.Minute)
	f.Eventually(func() bool { return f.exists("streamweir-plan-orders", &corev1.ConfigMap{}) }).Should(gomega.BeFalse())
	f.expectQuiet()
}

func TestOperatorKilledWhileChangingToObserveModeLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: prepareEnforced,
		change: func(f *fixture) {
			f.patchStreamApp(`{"spec":{"mode":"Observe"}}`)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonObserveMode)
			f.removePlan()
		},
	})
}

func TestOperatorKilledAfterDeletionOfStreamAppLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: prepareEnforced,
		change: func(f *fixture) {
			f.delete("orders", &v1alpha1.StreamApp{})
			f.removePlan()
		},
	})
}

func TestOperatorKilledWhileStreamAppIsRecreatedLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: prepareEnforced,
		change: func(f *fixture) {
			f.delete("orders", &v1alpha1.StreamApp{})
			f.collectGarbage()
			f.createStreamApp()
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
			f.expectOwnersOfPlan()
			f.expectQuiet()
		},
	})
}

func TestOperatorKilledWhileWorkloadIsRecreatedLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		prepare: prepareEnforced,
		change: func(f *fixture) {
			f.deleteStatefulSet()
			f.passes(1)
			f.createStatefulSet()
			f.expectInjectedPods()
			f.spreadTasks(f.readyPods()...)
			f.passes(1)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
			f.expectOwnersOfPlan()
			f.expectQuiet()
		},
	})
}

func TestOperatorKilledDuringItsUpgradeLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, killScenario{
		agents: true,
		prepare: func(f *fixture) {
			f.createStatefulSet()
			f.createStreamApp(withoutKafka)
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
			f.expectQuiet() // no pod mounts the agent yet
		},
		newJar: []byte("PK: a newer jar"),
		change: func(f *fixture) {
			f.Eventually(f.agentNames).Should(gomega.HaveLen(2))
			f.Eventually(func() bool { return slices.Contains(f.agentNames(), f.injection().Spec.AgentConfigMap) }).Should(gomega.BeTrue())
			f.advanceAgents(2 * time.Minute)
			f.Eventually(f.unneededAgents).Should(gomega.HaveLen(1))
			f.advanceAgents(2 * time.Hour)
			f.Eventually(f.agentNames).Should(gomega.Equal([]string{f.injection().Spec.AgentConfigMap}))
			f.expectQuiet()
		},
	})
}
