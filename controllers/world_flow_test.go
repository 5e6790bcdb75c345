// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/fakekubelet"
	"streamweir.dev/streamweir/memplan"
)

// needOfOne asks the planner itself for the smallest limit that holds so many tasks of the group in one pod.
func needOfOne(tasks int) int64 { return needWith(tasks, templateLimit) }

// needWith is needOfOne for another limit of the template: the application gets along with the heap that it has under it.
func needWith(tasks int, templateLimit int64) int64 {
	w := memplan.NewWorkload(memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.Assumed))
	w.Protocol = memplan.Known(memplan.Streams, memplan.Measured)
	w.Threads, w.Brokers = memplan.Known(1, memplan.Measured), memplan.Known(3, memplan.Measured)
	w.Standbys, w.WarmUps = memplan.Known(0, memplan.Measured), memplan.Known(0, memplan.Default)
	w.JVM.LeastHeap = w.JVM.HeapUnder(memplan.Bytes(templateLimit))
	w.JVM.HeapMode = memplan.HeapPlanned
	w.Allocator = memplan.Known(memplan.GlibcArenas, memplan.Derived)
	w.Subtopologies = []memplan.Subtopology{{ID: "0", Tasks: tasksOfGroup, InputPartitions: 1, Stores: []memplan.Store{
		{Name: "accounts", Kind: memplan.TimestampedKeyValue, Caching: true},
		{Name: "totals", Kind: memplan.TimestampedKeyValue, Caching: true},
	}}}
	load := memplan.Load{Threads: 1, Active: tasks, Total: tasks, Caps: []memplan.Cap{{Active: tasks, Total: tasks}}}
	return int64(memplan.RequiredLimit(w, load, memplan.DefaultPolicy()))
}

func threeNodes() []fakekubelet.Node {
	var nodes []fakekubelet.Node
	for _, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, fakekubelet.Node{Name: name, Memory: resource.MustParse("64Gi")})
	}
	return nodes
}

// maxRAM is the line of the plan that names the limit which it was made for.
func maxRAM(limit int64) string { return fmt.Sprintf("-XX:MaxRAM=%d\n", limit) }

func TestThePlanIsPublishedAndInjectedIntoNewPods(t *testing.T) {
	w := newWorld(t, threeNodes()...)
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp()

	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)).To(gomega.Equal(fmt.Sprintf(
		"3 pods run without the plan, since they are older than it. Restart them when it suits you: kubectl -n %s rollout restart statefulset/orders", w.namespace)))
	w.Expect(w.gate.all()[:2]).To(gomega.Equal([]string{writePlan, writeInjection}), "no pod may be made to mount what is not there")
	w.condition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
	need := needOfOne(6) // 12 tasks on the two pods that survive, one stream thread each
	w.Expect(w.app().Status.RequiredLimit).To(equalBytes(need))

	set, app, plan, injection := &appsv1.StatefulSet{}, w.app(), w.plan(), w.injection()
	w.get("orders", set)
	w.Expect(plan.Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(need))))
	w.Expect(plan.OwnerReferences).To(gomega.ConsistOf(gomega.HaveField("UID", set.UID)), "the plan must live as long as the workload")
	w.Expect(injection.OwnerReferences).To(gomega.ConsistOf(gomega.HaveField("UID", app.UID)), "the injection must go with the StreamApp")
	w.Expect(injection.Spec.Memory.ForLimit).To(equalBytes(templateLimit))
	w.Expect(injection.Spec.Memory.Limit).To(equalBytes(need))
	w.Expect(injection.Spec.Memory.Request).To(gomega.BeNil(), "requests are kept")
	for _, pod := range w.pods() {
		w.Expect(pod.Generation).To(gomega.BeEquivalentTo(1), "pods that run without the plan are left alone")
	}

	w.restartInjected()
	for name, limit := range w.limits() {
		w.Expect(limit).To(gomega.Equal(need), name)
		pod := w.pod(name)
		w.Expect(pod.Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation))
		w.Expect(pod.Spec.Containers[0].Resources.Requests.Memory().String()).To(gomega.Equal("512Mi"))
	}
	w.condition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)
	w.Expect(w.condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)).To(
		gomega.Equal("1 of 3 pods may be lost, and every other one still fits"))
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.staysQuiet()
}

func TestTheSurvivorsOfALossAreRaisedBeforeTheLargerPlanIsPublished(t *testing.T) {
	w := newWorld(t, threeNodes()...)
	w.enforced()
	before := w.plan().Data
	w.kubelet.AnswerResizes("", fakekubelet.Delay)
	w.Expect(w.kubelet.LoseNode(t.Context(), w.pod("orders-2").Spec.NodeName)).To(gomega.Succeed())
	w.share("orders-0", "orders-1")
	w.delete("orders-2", &corev1.Pod{}) // as the node lifecycle controller does it; nobody is there to end it
	w.passes(1)

	need := needOfOne(12)
	w.Eventually(w.limits).Should(gomega.Equal(map[string]int64{"orders-0": need, "orders-1": need, "orders-2": needOfOne(6)}))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInProgress)
	w.passes(3)
	w.Expect(w.plan().Data).To(gomega.Equal(before), "the kubelet has not reported the raise")
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(2), "a resize is asked for once")

	w.kubelet.AnswerResizes("", fakekubelet.Apply)
	w.Eventually(w.plan).Should(gomega.HaveField("Data", gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(need)))))
	for _, name := range []string{"orders-0", "orders-1"} { // the kubelet looks at the plan again when a pod is touched
		w.Eventually(func() map[string]string { return w.kubelet.Mounted(name, "streamweir-plan-orders") }).Should(gomega.Equal(w.plan().Data))
		w.Expect(w.pod(name).Annotations).To(gomega.HaveKeyWithValue(v1alpha1.PublishedAnnotation, w.app().Status.PlanRevision))
	}
	w.Eventually(w.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(need)))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
	w.Expect(w.gate.sent(writeResize)).To(gomega.Equal(2))
	w.staysQuiet()
}

func TestAPodThatStaysAwayCountsAsLostAfterHalfAMinute(t *testing.T) {
	w := newWorld(t, threeNodes()...)
	w.enforced()
	limitsOfSurvivors := func() []int64 { return []int64{w.limits()["orders-0"], w.limits()["orders-1"]} }
	for _, node := range []string{"a", "b", "c"} { // nothing can be scheduled
		w.Expect(admin.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + node}},
			mergePatch(`{"spec":{"unschedulable":true}}`))).To(gomega.Succeed())
	}
	w.delete("orders-2", &corev1.Pod{})
	w.share("orders-0", "orders-1")
	w.Eventually(func() *int32 { return w.app().Status.UnavailablePods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(1)))
	w.later(29 * time.Second)
	w.Expect(limitsOfSurvivors()).To(gomega.HaveEach(needOfOne(6)), "the plan in force covers the gap")
	w.Expect(w.gate.sent(writeResize)).To(gomega.BeZero())

	w.later(2 * time.Second)
	w.Eventually(limitsOfSurvivors).Should(gomega.HaveEach(needOfOne(12)))
}

func TestScalingInIsALossAtOnce(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	w.patchSet(`{"spec":{"replicas":2}}`)
	w.Eventually(w.readyPods).Should(gomega.HaveLen(2))
	w.share("orders-0", "orders-1")
	w.passes(1)
	w.Eventually(w.limits).Should(gomega.Equal(map[string]int64{"orders-0": needOfOne(12), "orders-1": needOfOne(12)}))
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
}

func TestObserveWritesNothingButTheStatus(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	before := w.resourceVersions()
	w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = "" })

	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonObserveMode)).To(
		gomega.Equal("the mode is Observe: nothing is applied"))
	w.passes(3)
	w.Expect(w.app().Status).To(gomega.And(
		gomega.HaveField("Mode", v1alpha1.ModeObserve), gomega.HaveField("Tasks", gomega.HaveValue(gomega.BeEquivalentTo(tasksOfGroup))),
		gomega.HaveField("Limit", gomega.Not(gomega.BeNil())), gomega.HaveField("Lines", gomega.Not(gomega.BeEmpty()))))
	w.nothingWritten()
	after := w.resourceVersions()
	delete(after, "*v1alpha1.StreamApp orders")
	w.Expect(after).To(gomega.Equal(before))
	w.Expect(w.gate.all()).To(gomega.HaveEach(writeStatus))
}

func TestObserveSaysAllIsWellWhenItIs(t *testing.T) {
	w := newWorld(t)
	w.createSet(func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "8Gi") })
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve })
	w.Expect(w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonObserving)).To(
		gomega.Equal("all is well; the mode is Observe, so nothing is changed"))
}

func TestADeploymentIsEnforcedAsAStatefulSetIs(t *testing.T) {
	w := newWorld(t)
	pods := template()
	w.Expect(admin.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orders"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Template: pods, Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
	})).To(gomega.Succeed())
	w.Eventually(w.readyPods).Should(gomega.HaveLen(3))
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.TargetRef.Kind = v1alpha1.KindDeployment })
	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)).To(
		gomega.HaveSuffix("kubectl -n " + w.namespace + " rollout restart deployment/orders"))
	w.Expect(w.plan().OwnerReferences).To(gomega.ConsistOf(gomega.HaveField("Kind", "Deployment")))

	injected := func() []string {
		var names []string
		for _, name := range w.readyPods() {
			if w.pod(name).Annotations[v1alpha1.PlanAnnotation] != "" {
				names = append(names, name)
			}
		}
		return names
	}
	w.Eventually(func() []string { // a new template makes new pods; until the API server injects, these are not
		w.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orders"}},
			fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now()))
		w.Eventually(func() bool {
			d := &appsv1.Deployment{}
			w.get("orders", d)
			return d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == 3 && d.Status.UpdatedReplicas == 3 && d.Status.Replicas == 3
		}).Should(gomega.BeTrue())
		return injected()
	}).Should(gomega.HaveLen(3))
	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	for name, limit := range w.limits() {
		w.Expect(limit).To(gomega.Equal(needOfOne(6)), name)
		w.Expect(strings.HasPrefix(name, "orders-")).To(gomega.BeTrue())
	}

	w.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}, `{"spec":{"replicas":2}}`)
	w.Eventually(w.readyPods).Should(gomega.HaveLen(2))
	w.share(w.readyPods()...)
	w.passes(1)
	w.Eventually(w.limits).Should(gomega.And(gomega.HaveLen(2), gomega.HaveEach(needOfOne(12))))
}
