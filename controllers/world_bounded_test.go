// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// targetAlone leaves nothing of a StreamApp but its target and the mode Enforce.
func targetAlone(app *v1alpha1.StreamApp) {
	app.Spec.Memory, app.Spec.Kafka = v1alpha1.MemorySpec{}, v1alpha1.KafkaSpec{}
}

// withoutKafka leaves out where the group is found.
func withoutKafka(app *v1alpha1.StreamApp) { app.Spec.Kafka = v1alpha1.KafkaSpec{} }

// reporting makes a world whose pods run with plan and agent, and report. The StreamApp names no Kafka cluster.
func (w *world) reporting(changes ...func(*v1alpha1.StreamApp)) {
	w.t.Helper()
	w.playAgents()
	w.createSet()
	w.startOperator()
	w.createApp(append([]func(*v1alpha1.StreamApp){withoutKafka}, changes...)...)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.rollout()
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	w.Eventually(func() v1alpha1.StreamAppStatus { return w.app().Status }).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))),
		gomega.HaveField("DivergentPods", gomega.HaveEach(gomega.HaveField("PlanRevision", "")))))
}

// allBounded waits until every pod has reported that it is bounded, by the plan that is published.
func (w *world) allBounded() {
	w.t.Helper()
	w.Eventually(func() v1alpha1.StreamAppStatus { return w.app().Status }).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))), gomega.HaveField("DivergentPods", gomega.BeEmpty())))
}

// agentMaps are the ConfigMaps with agents.
func (w *world) agentMaps() []corev1.ConfigMap {
	var all corev1.ConfigMapList
	w.Expect(admin.List(w.t.Context(), &all, client.InNamespace(w.namespace))).To(gomega.Succeed())
	var maps []corev1.ConfigMap
	for _, m := range all.Items {
		if strings.HasPrefix(m.Name, "streamweir-agent-orders-") {
			maps = append(maps, m)
		}
	}
	return maps
}

func properties(data map[string]string) string { return data[planfile.PropertiesKey] }

func TestATargetAloneIsEnough(t *testing.T) {
	w := newWorld(t, threeNodes()...)
	w.playAgents()
	w.createSet()
	w.startOperator()
	w.createApp(targetAlone)

	// Nothing is known but the limit, and still there is a plan, with bounds.
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)).To(
		gomega.HavePrefix("3 pods run without the agent, which would tell which tasks there are"))
	w.Expect(w.gate.all()[:3]).To(gomega.Equal([]string{writePlan, writePlan, writeInjection}), "agent, plan, injection")
	maps, bootstrap := w.agentMaps(), w.plan().Data
	w.Expect(maps).To(gomega.HaveLen(1))
	w.Expect(maps[0].BinaryData).To(gomega.Equal(map[string][]byte{v1alpha1.AgentJarKey: testJar}))
	w.Expect(maps[0].Immutable).To(gomega.HaveValue(gomega.BeTrue()))
	w.Expect(w.injection().Spec.AgentConfigMap).To(gomega.Equal(maps[0].Name))
	w.Expect(properties(bootstrap)).To(gomega.And(gomega.ContainSubstring(fmt.Sprintf("limit.bytes=%d\n", templateLimit)),
		gomega.ContainSubstring("heap.bytes="), gomega.ContainSubstring("rocksdb.cache.bytes="), gomega.ContainSubstring("rocksdb.write.buffer.manager.bytes=")))
	w.Expect(bootstrap[planfile.RevisionKey]).To(gomega.Equal(w.injection().Spec.PlanRevision))

	w.rollout()
	for _, name := range w.readyPods() {
		container := w.pod(name).Spec.Containers[0]
		w.Expect(container.Env).To(gomega.ContainElement(corev1.EnvVar{
			Name: "JDK_JAVA_OPTIONS", Value: v1alpha1.AgentOption + " " + string(v1alpha1.LauncherOptions),
		}))
		w.Expect(w.kubelet.Mounted(name, maps[0].Name)).To(gomega.HaveKeyWithValue(v1alpha1.AgentJarKey, string(testJar)))
	}
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.allBounded()
	status := w.app().Status
	w.Expect(status.Tasks).To(gomega.HaveValue(gomega.BeEquivalentTo(tasksOfGroup)))
	w.Expect(status.Images).To(gomega.ConsistOf(gomega.And(gomega.HaveField("Image", "orders:1"), gomega.HaveField("State", v1alpha1.ImageProven),
		gomega.HaveField("ImageID", gomega.HavePrefix("orders:1@sha256:")))))
	w.Expect(properties(w.plan().Data)).To(gomega.ContainSubstring("rocksdb.arena.block.bytes="), "the stores are known now")
	w.Expect(w.limits()).To(gomega.HaveEach(int64(templateLimit)), "without a range the template's limit is not touched")
	w.staysQuiet()
}

func TestAPlanCountsAsPublishedWhenThePodsReportIt(t *testing.T) {
	w := newWorld(t)
	w.reporting()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.kubelet.KeepMounts("orders-1", true)
	before := w.plan().Data
	touches := func() string { return w.pod("orders-1").Annotations["streamweir.dev/touched"] }
	w.agents.sharedTasks(2 * tasksOfGroup)
	w.Eventually(func() map[string]string { return w.plan().Data }).ShouldNot(gomega.Equal(before))
	w.Eventually(touches).Should(gomega.HavePrefix("1 "))
	w.clock.SetTime(time.Now()) // the clock has stood still since before the pods were started
	w.staysQuiet()
	w.Expect(touches()).To(gomega.HavePrefix("1 "), "it has time to see it")

	w.later(11 * time.Second)
	w.Eventually(touches).Should(gomega.HavePrefix("2 "), "it is told again")
	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPublishing)).To(
		gomega.HavePrefix("the plan is published, but not yet seen by one pod, the first is orders-1"))
	w.later(11 * time.Second)
	w.Expect(touches()).To(gomega.HavePrefix("2 "), "each time it has twice as long")
	w.later(11 * time.Second)
	w.Eventually(touches).Should(gomega.HavePrefix("3 "))
	w.Expect(w.pod("orders-0").Annotations["streamweir.dev/touched"]).To(gomega.HavePrefix("1 "), "the others have seen it")

	w.kubelet.KeepMounts("orders-1", false)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.staysQuiet()
}

func TestOnlyAProvenImageGetsLessThanTheTemplate(t *testing.T) {
	w := newWorld(t)
	w.playAgents()
	w.agents.say(func(_ string, reported *report.Report) { reported.Bounded = report.BoundedPending })
	w.createSet()
	w.startOperator()
	w.createApp(withoutKafka)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.rollout()
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	w.Eventually(func() []v1alpha1.ImageStatus { return w.app().Status.Images }).Should(gomega.ConsistOf(gomega.HaveField("State", v1alpha1.ImageStarted)))
	asShipped := w.app().Status.RequiredLimit.Value()
	w.Expect(w.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)))
	w.Expect(properties(w.plan().Data)).To(gomega.ContainSubstring("rocksdb.cache.bytes="), "the bounds are published all the same, or nothing could be proven")

	w.agents.say(func(string, *report.Report) {})
	w.Eventually(func() []v1alpha1.ImageStatus { return w.app().Status.Images }).Should(gomega.ConsistOf(gomega.HaveField("State", v1alpha1.ImageProven)))
	w.Eventually(func() int64 { return w.app().Status.RequiredLimit.Value() }).Should(gomega.BeNumerically("<", asShipped/2))
	bounded := w.app().Status.RequiredLimit.Value()
	memory := func() v1alpha1.InjectedMemory { return w.injection().Spec.Memory }
	w.Eventually(memory).Should(gomega.And(gomega.HaveField("ForImage", "orders:1"), gomega.HaveField("Limit", equalBytes(1<<30))), "down to minLimit")
	w.Expect(w.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)), "no limit of a running pod is lowered")

	resizes := w.gate.sent(writeResize) // to what the stores may take as they are shipped
	w.rollout()
	w.Expect(w.limits()).To(gomega.HaveEach(gomega.BeEquivalentTo(1 << 30)))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(resizes))
	w.allBounded()
	w.staysQuiet()

	// Another image is another matter, even before the operator has seen it.
	w.agents.say(func(_ string, reported *report.Report) { reported.Bounded = report.BoundedOff })
	w.patchSet(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"orders:2"}]}}}}`)
	w.awaitRollout()
	w.Expect(w.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)))
	w.Eventually(func() string {
		return w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNotBounded)
	}).Should(
		gomega.HavePrefix("RocksDB is not bounded in 3 pods, so it counts as Kafka Streams ships it; the first is orders-0"))
	w.Eventually(func() []v1alpha1.ImageStatus { return w.app().Status.Images }).Should(gomega.ConsistOf(
		gomega.And(gomega.HaveField("Image", "orders:2"), gomega.HaveField("State", v1alpha1.ImageStarted)),
		gomega.And(gomega.HaveField("Image", "orders:1"), gomega.HaveField("State", v1alpha1.ImageProven))))
	w.Eventually(func() int64 { return w.app().Status.RequiredLimit.Value() }).Should(gomega.BeNumerically(">", 2*bounded))
}

func TestInjectionStopsWhereTheFirstPodDoesNotStart(t *testing.T) {
	w := newWorld(t)
	w.playAgents()
	withAgent := func(c corev1.Container) bool {
		return c.Image != "orders:3" && len(c.Env) > 0 && strings.Contains(c.Env[0].Value, "-javaagent")
	}
	w.kubelet.Crash(withAgent)
	w.createSet()
	w.startOperator()
	w.createApp(withoutKafka)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.awaitInjecting()
	w.patchSet(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"now"}}}}}`)

	message := w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInjectedPodFailedToStart)
	w.Expect(message).To(gomega.And(gomega.HavePrefix("the first pod with image orders:1 ended before its agent reported"),
		gomega.ContainSubstring("logs -p orders-2"), gomega.ContainSubstring("delete the pod")))
	w.Expect(w.injection().Spec.ExcludedImages).To(gomega.Equal([]string{"orders:1"}))
	w.Expect(w.app().Status.Images).To(gomega.ConsistOf(gomega.And(gomega.HaveField("Image", "orders:1"), gomega.HaveField("State", v1alpha1.ImageFailedToStart))))

	w.Eventually(func() bool { // as the message says; until the API server knows of the exception the pod comes back as it was
		pod := &corev1.Pod{}
		if !w.exists("orders-2", pod) || pod.DeletionTimestamp != nil {
			return false
		}
		if hasAgent(pod) {
			w.Expect(client.IgnoreNotFound(admin.Delete(t.Context(), pod))).To(gomega.Succeed())
			return false
		}
		return true
	}).Should(gomega.BeTrue())
	w.awaitRollout()
	for _, pod := range w.pods() {
		w.Expect(pod.Annotations).NotTo(gomega.HaveKey(v1alpha1.PlanAnnotation), pod.Name)
		w.Expect(pod.Spec.Containers[0].Resources.Limits.Memory()).To(equalBytes(templateLimit))
	}
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInjectedPodFailedToStart)
	w.staysQuiet()

	w.patchSet(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"orders:3"}]}}}}`)
	w.awaitRollout()
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.Eventually(func() *int32 { return w.app().Status.BoundedPods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(3)))
}

func TestReportsThatLieOrCannotBeReadTakeNothingAway(t *testing.T) {
	for name, tt := range map[string]struct {
		change      func(*report.Report)
		wantMessage string
	}{
		"of another pod":             {func(r *report.Report) { r.PodUID = "elsewhere" }, "the report belongs to another pod"},
		"of a newer agent":           {func(r *report.Report) { r.Schema = 2 }, "this operator does not support the version of the report"},
		"larger than any report is":  {func(r *report.Report) { r.Clients[0].Topology = strings.Repeat("x", 300<<10) }, "the report is larger than 256 KiB"},
		"without a version of it":    {func(r *report.Report) { r.Schema = 0 }, "this operator does not support the version of the report"},
		"with a UID that is missing": {func(r *report.Report) { r.PodUID = "" }, "the report belongs to another pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.reporting()
			w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
			w.staysQuiet()
			before := w.outcome()
			w.agents.say(func(pod string, reported *report.Report) {
				if pod == "orders-1" {
					tt.change(reported)
				}
			})
			w.Eventually(func() []string { return w.app().Status.Warnings }).Should(gomega.ContainElement("pod orders-1: " + tt.wantMessage))
			w.later(3 * time.Minute)
			w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)).To(
				gomega.Equal("one pod with the agent cannot be asked for a report, the first is orders-1: " + tt.wantMessage))
			after := w.outcome()
			after.conditions, before.conditions = nil, nil
			w.Expect(after).To(gomega.Equal(before), "plan, injection and limits stay")
		})
	}
}

func TestFiguresThatCannotBeAreNotCounted(t *testing.T) {
	w := newWorld(t)
	w.reporting()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	need := w.app().Status.RequiredLimit.Value()
	w.agents.say(func(_ string, reported *report.Report) {
		reported.JVM.Metaspace, reported.JVM.CodeCache, reported.RocksDB.CacheCapacity = 1<<60, -5, 1<<60
		reported.Clients[0].Records.AverageSize = -7
	})
	w.Eventually(func() []string { return w.app().Status.Warnings }).Should(
		gomega.ContainElement("pod orders-0 reports more memory than its limit: its figures are not counted"))
	w.Expect(w.app().Status.RequiredLimit).To(equalBytes(need))
}

func TestPodsThatCannotBeReachedAreNamedAndTheGroupIsAskedInstead(t *testing.T) {
	w := newWorld(t)
	w.playAgents()
	w.agents.hide(true)
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.rollout()
	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied) // they have only just started
	w.later(3 * time.Minute)
	w.Eventually(func() string {
		w.passes(1)
		return w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)
	}).Should(gomega.Equal("3 pods with the agent cannot be asked for a report, the first is orders-0: the agent in the pod cannot be reached. " +
		"Network policies and service meshes must let the operator in at port 7907; the Kafka group is asked instead"))
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
	w.Expect(w.app().Status.Images).To(gomega.ConsistOf(gomega.HaveField("State", v1alpha1.ImageStarted)), "it runs, and nobody knows how")
	w.Expect(w.limits()).To(gomega.HaveEach(gomega.BeNumerically(">=", templateLimit)))

	w.agents.hide(false)
	w.Eventually(func() *int32 { return w.app().Status.BoundedPods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(3)))
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
}

func TestInModeObserveNoAgentIsInjected(t *testing.T) {
	w := newWorld(t)
	w.playAgents()
	w.createSet()
	w.startOperator()
	w.createApp(targetAlone, func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve })
	w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonNoSource)).To(
		gomega.Equal("`kafka` is not set, and in mode Observe no agent is injected, so nobody tells which pod runs which tasks"))
	w.passes(2)
	w.nothingWritten()
	w.Expect(w.agentMaps()).To(gomega.BeEmpty())
	w.Expect(w.gate.all()).To(gomega.HaveEach(writeStatus))
}

func TestAnOperatorWithAnAgentIsReplacedWithoutADifference(t *testing.T) {
	killedAfter(t, func(w *world) {
		w.playAgents()
		w.createSet()
	}, func(w *world) {
		w.createApp(withoutKafka)
		w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
		w.staysQuiet()
	})
}
