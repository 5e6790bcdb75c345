// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// targetOnly removes everything from a StreamApp except for its target and mode.
func targetOnly(app *v1alpha1.StreamApp) {
	app.Spec.Memory = v1alpha1.MemorySpec{}
	app.Spec.Kafka = v1alpha1.KafkaSpec{}
}

// withoutKafka removes the Kafka group from a StreamApp.
func withoutKafka(app *v1alpha1.StreamApp) { app.Spec.Kafka = v1alpha1.KafkaSpec{} }

// enforceWithReports sets up pods that run with plan and agent and report. The StreamApp names no Kafka cluster.
func (f *fixture) enforceWithReports(changes ...func(*v1alpha1.StreamApp)) {
	f.t.Helper()
	f.simulateAgents()
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp(append([]func(*v1alpha1.StreamApp){withoutKafka}, changes...)...)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.rollout()
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	f.Eventually(func() v1alpha1.StreamAppStatus { return f.app().Status }).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))),
		gomega.HaveField("DivergentPods", gomega.Not(gomega.ContainElement(gomega.HaveField("PlanRevision", gomega.Not(gomega.BeEmpty())))))))
}

// expectBoundedByPlan waits until every pod has reported that it is bounded by the published plan.
func (f *fixture) expectBoundedByPlan() {
	f.t.Helper()
	f.Eventually(func() v1alpha1.StreamAppStatus { return f.app().Status }).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))), gomega.HaveField("DivergentPods", gomega.BeEmpty())))
}

// agentConfigMaps returns the ConfigMaps with agents.
func (f *fixture) agentConfigMaps() []corev1.ConfigMap {
	var all corev1.ConfigMapList
	f.Expect(admin.List(f.t.Context(), &all, client.InNamespace(f.namespace))).To(gomega.Succeed())
	var maps []corev1.ConfigMap
	for _, m := range all.Items {
		if strings.HasPrefix(m.Name, "streamweir-agent-") {
			maps = append(maps, m)
		}
	}
	return maps
}

func properties(data map[string]string) string { return data[planfile.PropertiesKey] }

func TestTargetAloneIsEnforced(t *testing.T) {
	f := newFixture(t, threeNodes()...)
	f.simulateAgents()
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp(targetOnly)

	// Only the limit is known. The plan has bounds nevertheless.
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)).To(
		gomega.HavePrefix("3 pods run without the agent, so the tasks are unknown"))
	f.Expect(f.writes.all()[:3]).To(gomega.Equal([]string{writePlan, writePlan, writeInjection}), "agent, plan, injection")
	maps := f.agentConfigMaps()
	bootstrap := f.plan().Data
	f.Expect(maps).To(gomega.HaveLen(1))
	f.Expect(maps[0].BinaryData).To(gomega.Equal(map[string][]byte{v1alpha1.AgentJarKey: testJar}))
	f.Expect(maps[0].Immutable).To(gomega.HaveValue(gomega.BeTrue()))
	f.Expect(f.injection().Spec.AgentConfigMap).To(gomega.Equal(maps[0].Name))
	f.Expect(properties(bootstrap)).To(gomega.And(gomega.ContainSubstring(fmt.Sprintf("limit.bytes=%d\n", templateLimit)),
		gomega.ContainSubstring("heap.bytes="), gomega.ContainSubstring("rocksdb.cache.bytes="), gomega.ContainSubstring("rocksdb.write.buffer.manager.bytes=")))
	f.Expect(bootstrap[planfile.RevisionKey]).To(gomega.Equal(f.injection().Spec.PlanRevision))

	f.rollout()
	for _, name := range f.readyPods() {
		container := f.pod(name).Spec.Containers[0]
		f.Expect(container.Env).To(gomega.ContainElement(corev1.EnvVar{
			Name: "JDK_JAVA_OPTIONS", Value: v1alpha1.AgentOption + " " + string(v1alpha1.LauncherOptions),
		}))
		f.Expect(f.kubelet.Mounted(name, maps[0].Name)).To(gomega.HaveKeyWithValue(v1alpha1.AgentJarKey, string(testJar)))
	}
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectBoundedByPlan()
	status := f.app().Status
	f.Expect(status.Tasks).To(gomega.HaveValue(gomega.BeEquivalentTo(tasksOfGroup)))
	f.Expect(status.Images).To(gomega.ConsistOf(gomega.And(gomega.HaveField("Image", "orders:1"), gomega.HaveField("State", v1alpha1.ImageProven),
		gomega.HaveField("ImageID", gomega.HavePrefix("orders:1@sha256:")))))
	f.Expect(properties(f.plan().Data)).To(gomega.ContainSubstring("rocksdb.arena.block.bytes="), "the stores are known")
	f.Expect(f.limits()).To(gomega.HaveEach(int64(templateLimit)), "without a range the template's limit stays")
	f.expectQuiet()
}

func TestPodsAreRefreshedUntilTheyReportThePlan(t *testing.T) {
	f := newFixture(t)
	f.enforceWithReports()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.kubelet.KeepMounts("orders-1", true)
	before := f.plan().Data
	refreshes := func() int { return f.refreshCount("orders-1") }
	f.agents.setTasks(2 * tasksOfGroup)
	f.Eventually(func() map[string]string { return f.plan().Data }).ShouldNot(gomega.Equal(before))
	f.Eventually(refreshes).Should(gomega.Equal(1))
	f.clock.SetTime(time.Now()) // the clock still has a time before the start of the pods
	f.expectQuiet()
	f.Expect(refreshes()).To(gomega.Equal(1), "the pod has time to load the plan")

	f.advance(11 * time.Second)
	f.Eventually(refreshes).Should(gomega.Equal(2), "the pod is refreshed again")
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPublishing)).To(
		gomega.HavePrefix("the plan is published, but 1 pod (orders-1) has not loaded it"))
	f.advance(11 * time.Second)
	f.Expect(refreshes()).To(gomega.Equal(2), "the wait doubles each time")
	f.advance(11 * time.Second)
	f.Eventually(refreshes).Should(gomega.Equal(3))
	f.Expect(f.refreshCount("orders-0")).To(gomega.Equal(1), "the others have loaded it")

	f.kubelet.KeepMounts("orders-1", false)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectQuiet()
}

// refreshCount returns how often a pod was refreshed for the revision that it was last notified of.
func (f *fixture) refreshCount(pod string) int {
	f.t.Helper()
	var refresh decision.Refresh
	f.Expect(json.Unmarshal([]byte(f.pod(pod).Annotations[decision.AnnotationRefresh]), &refresh)).To(gomega.Succeed())
	return refresh.Count
}

func TestOnlyProvenImageGetsLessThanTemplateLimit(t *testing.T) {
	// An even share of the tasks requires 1023Mi, an uneven one, as for a moment of a rollout, 1025Mi. The limit must hold both: the operator
	// rightly raises a smaller one.
	const minLimit = 1280 << 20
	f := newFixture(t)
	f.simulateAgents()
	f.agents.setChange(func(_ string, r *report.Report) { r.Bounded = report.BoundedPending })
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp(withoutKafka, func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.MinLimit = resource.NewQuantity(minLimit, resource.BinarySI)
	})
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.rollout()
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	f.Eventually(func() []v1alpha1.ImageStatus { return f.app().Status.Images }).Should(gomega.ConsistOf(gomega.HaveField("State", v1alpha1.ImageStarted)))
	unbounded := f.app().Status.RequiredLimit.Value()
	f.Expect(f.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)))
	f.Expect(properties(f.plan().Data)).To(gomega.ContainSubstring("rocksdb.cache.bytes="), "the bounds are published so that an image can be proven")

	f.agents.setChange(func(string, *report.Report) {})
	f.Eventually(func() []v1alpha1.ImageStatus { return f.app().Status.Images }).Should(gomega.ConsistOf(gomega.HaveField("State", v1alpha1.ImageProven)))
	f.Eventually(func() int64 { return f.app().Status.RequiredLimit.Value() }).Should(gomega.BeNumerically("<", unbounded/2))
	bounded := f.app().Status.RequiredLimit.Value()
	memory := func() v1alpha1.InjectedMemory { return f.injection().Spec.Memory }
	f.Eventually(memory).Should(gomega.And(gomega.HaveField("ForImage", "orders:1"), gomega.HaveField("Limit", equalBytes(minLimit))), "down to minLimit")
	f.Expect(f.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)), "no limit of a running pod is lowered")

	resizes := f.writes.count(writeResize) // for default RocksDB memory
	f.rollout()
	f.Expect(f.limits()).To(gomega.HaveEach(gomega.BeEquivalentTo(minLimit)))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(resizes))
	f.expectBoundedByPlan()
	f.expectQuiet()

	// Another image is unproven, even before the operator has observed it.
	f.agents.setChange(func(_ string, r *report.Report) { r.Bounded = report.BoundedOff })
	f.patchStatefulSet(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"orders:2"}]}}}}`)
	f.awaitRollout()
	f.Expect(f.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)))
	f.Eventually(func() string {
		return f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNotBounded)
	}).Should(
		gomega.HavePrefix("RocksDB is not bounded in 3 pods (orders-0), so default RocksDB memory counts"))
	f.Eventually(func() []v1alpha1.ImageStatus { return f.app().Status.Images }).Should(gomega.ConsistOf(
		gomega.And(gomega.HaveField("Image", "orders:2"), gomega.HaveField("State", v1alpha1.ImageStarted)),
		gomega.And(gomega.HaveField("Image", "orders:1"), gomega.HaveField("State", v1alpha1.ImageProven))))
	f.Eventually(func() int64 { return f.app().Status.RequiredLimit.Value() }).Should(gomega.BeNumerically(">", 2*bounded))
}

func TestInjectionStopsWhenFirstPodFailsToStart(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	withAgent := func(c corev1.Container) bool {
		return c.Image != "orders:3" && len(c.Env) > 0 && strings.Contains(c.Env[0].Value, "-javaagent")
	}
	f.kubelet.Crash(withAgent)
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp(withoutKafka)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.awaitInjection()
	f.patchStatefulSet(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"now"}}}}}`)

	message := f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInjectedPodFailedToStart)
	f.Expect(message).To(gomega.And(gomega.HavePrefix("pods with image orders:1 failed to start before their agent reported"),
		gomega.ContainSubstring("logs -p orders-2"), gomega.ContainSubstring("delete the pod")))
	f.Expect(f.injection().Spec.ExcludedImages).To(gomega.Equal([]string{"orders:1"}))
	f.Expect(f.app().Status.Images).To(gomega.ConsistOf(gomega.And(gomega.HaveField("Image", "orders:1"), gomega.HaveField("State", v1alpha1.ImageFailedToStart))))

	f.Eventually(func() bool { // as the message recommends; until the API server has read the exclusion, the new pod is injected again
		pod := &corev1.Pod{}
		if !f.exists("orders-2", pod) || pod.DeletionTimestamp != nil {
			return false
		}
		if hasAgent(pod) {
			f.Expect(client.IgnoreNotFound(admin.Delete(t.Context(), pod))).To(gomega.Succeed())
			return false
		}
		return true
	}).Should(gomega.BeTrue())
	f.awaitRollout()
	for _, pod := range f.pods() {
		f.Expect(pod.Annotations).NotTo(gomega.HaveKey(v1alpha1.PlanAnnotation), pod.Name)
		f.Expect(pod.Spec.Containers[0].Resources.Limits.Memory()).To(equalBytes(templateLimit))
	}
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInjectedPodFailedToStart)
	f.expectQuiet()

	f.patchStatefulSet(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"orders:3"}]}}}}`)
	f.awaitRollout()
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Eventually(func() *int32 { return f.app().Status.BoundedPods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(3)))
}

func TestUnusableReportsKeepPlanAndLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		change      func(*report.Report)
		wantMessage string
	}{
		"of another pod":           {func(r *report.Report) { r.PodUID = "elsewhere" }, "the report belongs to another pod"},
		"of a newer agent":         {func(r *report.Report) { r.Schema = 2 }, "this operator does not support the version of the report"},
		"too large":                {func(r *report.Report) { r.Clients[0].Topology = strings.Repeat("x", 300<<10) }, "the report is larger than 256 KiB"},
		"without a schema version": {func(r *report.Report) { r.Schema = 0 }, "this operator does not support the version of the report"},
		"without a UID":            {func(r *report.Report) { r.PodUID = "" }, "the report belongs to another pod"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.enforceWithReports()
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
			f.expectQuiet()
			before := f.snapshot()
			f.agents.setChange(func(pod string, r *report.Report) {
				if pod == "orders-1" {
					tt.change(r)
				}
			})
			f.Eventually(func() []string { return f.app().Status.Warnings }).Should(gomega.ContainElement("pod orders-1: " + tt.wantMessage))
			f.advance(3 * time.Minute)
			f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)).To(
				gomega.Equal("no report from 1 pod with the agent (orders-1): " + tt.wantMessage))
			after := f.snapshot()
			after.conditions = nil
			before.conditions = nil
			f.Expect(after).To(gomega.Equal(before), "plan, injection and limits stay")
		})
	}
}

// A pod serves its report only to the token in the plan that it mounts. The token stays for as long as the ConfigMap exists.
func TestReportsAreReadWithTheTokenOfTheMountedPlan(t *testing.T) {
	f := newFixture(t)
	f.enforceWithReports()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	token := planfile.Token(f.plan().Data)
	f.Expect(token).To(gomega.HaveLen(64))
	f.agents.setTasks(2 * tasksOfGroup)
	f.Eventually(f.plan).Should(gomega.HaveField("Data", gomega.HaveKeyWithValue(planfile.RevisionKey, gomega.Not(gomega.Equal(f.plan().Data[planfile.RevisionKey])))))
	f.Expect(planfile.Token(f.plan().Data)).To(gomega.Equal(token), "another plan keeps the token")
	f.expectQuiet()
	before := f.snapshot()

	f.kubelet.KeepMounts("orders-1", true)
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme}) // the policies reserve this for the operator
	f.Expect(err).NotTo(gomega.HaveOccurred())
	plan := f.plan()
	f.Expect(operator.Delete(t.Context(), plan.DeepCopy())).To(gomega.Succeed())
	f.Eventually(f.plan).Should(gomega.HaveField("UID", gomega.Not(gomega.Equal(plan.UID))))
	f.Expect(planfile.Token(f.plan().Data)).NotTo(gomega.Or(gomega.BeEmpty(), gomega.Equal(token)), "another ConfigMap has another token")
	f.Eventually(func() []string { return f.app().Status.Warnings }).Should(gomega.ContainElement(
		"pod orders-1: the agent does not accept the operator's token, because the plan that the pod mounts is another one or not up to date"))
	f.Eventually(func() []string { f.advance(11 * time.Second); return f.app().Status.Warnings }).ShouldNot(
		gomega.ContainElement(gomega.HavePrefix("pod orders-0")), "pods that do not accept the token are refreshed")
	f.advance(3 * time.Minute)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)
	f.Expect(f.limits()).To(gomega.Equal(before.limits))

	f.kubelet.KeepMounts("orders-1", false)
	f.Eventually(func() []string { f.advance(6 * time.Minute); return f.app().Status.Warnings }).Should(gomega.BeEmpty())
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectQuiet()
}

func TestImpossibleReportedFiguresAreNotCounted(t *testing.T) {
	f := newFixture(t)
	f.enforceWithReports()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	required := f.app().Status.RequiredLimit.Value()
	f.agents.setChange(func(_ string, r *report.Report) {
		r.JVM.Metaspace = 1 << 60
		r.JVM.CodeCache = -5
		r.RocksDB.CacheCapacity = 1 << 60
		r.Clients[0].Records.AverageSize = -7
	})
	f.Eventually(func() []string { return f.app().Status.Warnings }).Should(
		gomega.ContainElement("pod orders-0 reports more memory than its limit: its figures do not count"))
	f.Expect(f.app().Status.RequiredLimit).To(equalBytes(required))
}

func TestKafkaGroupReplacesReportsOfUnreachablePods(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.agents.setUnreachable(true)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.rollout()
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied) // the pods have just started
	f.advance(3 * time.Minute)
	f.Eventually(func() string {
		f.passes(1)
		return f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)
	}).Should(gomega.Equal("no report from 3 pods with the agent (orders-0): the agent in the pod cannot be reached; " +
		"network policies and service meshes must admit the operator at port 7907; the Kafka group is used instead"))
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
	f.Expect(f.app().Status.Images).To(gomega.ConsistOf(gomega.HaveField("State", v1alpha1.ImageStarted)), "it runs, and its memory is unknown")
	f.Expect(f.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)))

	f.agents.setUnreachable(false)
	f.Eventually(func() *int32 { return f.app().Status.BoundedPods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(3)))
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
}

func TestObserveModeInjectsNoAgent(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp(targetOnly, func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve })
	f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonNoSource)).To(
		gomega.Equal("`kafka` is not set and no agent is injected in mode Observe, so the task assignment cannot be determined"))
	f.passes(2)
	f.expectNothingWritten()
	f.Expect(f.agentConfigMaps()).To(gomega.BeEmpty())
	f.Expect(f.writes.all()).To(gomega.HaveEach(writeStatus))
}
