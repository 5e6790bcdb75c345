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

// requiredLimit returns the planner's smallest limit that holds this number of the group's tasks in one pod.
func requiredLimit(tasks int) int64 { return requiredLimitFor(tasks, templateLimit) }

// requiredLimitFor is requiredLimit for another limit of the template: the application keeps the heap that it has under that limit.
func requiredLimitFor(tasks int, templateLimit int64) int64 {
	workload := memplan.NewWorkload(memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.Assumed))
	workload.Protocol = memplan.Known(memplan.Streams, memplan.Measured)
	workload.Threads = memplan.Known(1, memplan.Measured)
	workload.Brokers = memplan.Known(3, memplan.Measured)
	workload.Standbys = memplan.Known(0, memplan.Measured)
	workload.WarmUps = memplan.Known(0, memplan.Default)
	workload.JVM.LeastHeap = workload.JVM.HeapUnder(memplan.Bytes(templateLimit))
	workload.JVM.HeapMode = memplan.HeapPlanned
	workload.Allocator = memplan.Known(memplan.GlibcArenas, memplan.Derived)
	workload.Subtopologies = []memplan.Subtopology{{ID: "0", Tasks: tasksOfGroup, InputPartitions: 1, Stores: []memplan.Store{
		{Name: "accounts", Kind: memplan.TimestampedKeyValue, Caching: true},
		{Name: "totals", Kind: memplan.TimestampedKeyValue, Caching: true},
	}}}
	load := memplan.Load{Threads: 1, Active: tasks, Total: tasks, Caps: []memplan.Cap{{Active: tasks, Total: tasks}}}
	return int64(memplan.RequiredLimit(workload, load, memplan.DefaultPolicy()))
}

func threeNodes() []fakekubelet.Node {
	var nodes []fakekubelet.Node
	for _, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, fakekubelet.Node{Name: name, Memory: resource.MustParse("64Gi")})
	}
	return nodes
}

// maxRAM returns the line of the plan with the limit that it is made for.
func maxRAM(limit int64) string { return fmt.Sprintf("-XX:MaxRAM=%d\n", limit) }

func TestPlanIsPublishedThenInjectedIntoNewPods(t *testing.T) {
	f := newFixture(t, threeNodes()...)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()

	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)).To(gomega.Equal(fmt.Sprintf(
		"3 pods were created before the plan and run without the plan; restart to apply it: kubectl -n %s rollout restart statefulset/orders", f.namespace)))
	f.Expect(f.writes.all()[:2]).To(gomega.Equal([]string{writePlan, writeInjection}), "no pod may mount a missing ConfigMap")
	f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
	required := requiredLimit(6) // 12 tasks on the two survivors, with one stream thread each
	f.Expect(f.app().Status.RequiredLimit).To(equalBytes(required))

	set := &appsv1.StatefulSet{}
	f.get("orders", set)
	app := f.app()
	plan := f.plan()
	injection := f.injection()
	f.Expect(plan.Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(required))))
	f.Expect(plan.OwnerReferences).To(gomega.ConsistOf(gomega.HaveField("UID", set.UID), gomega.HaveField("UID", app.UID)),
		"the plan must exist as long as the workload or the StreamApp")
	f.Expect(injection.OwnerReferences).To(gomega.ConsistOf(gomega.HaveField("UID", app.UID)), "the injection must be deleted with the StreamApp")
	f.Expect(injection.Spec.Memory.ForLimit).To(equalBytes(templateLimit))
	f.Expect(injection.Spec.Memory.Limit).To(equalBytes(required))
	f.Expect(injection.Spec.Memory.Request).To(gomega.BeNil(), "requests are kept")
	for _, pod := range f.pods() {
		f.Expect(pod.Generation).To(gomega.BeEquivalentTo(1), "pods without the plan must not change")
	}

	f.restartWithPlan()
	for name, limit := range f.limits() {
		f.Expect(limit).To(gomega.Equal(required), name)
		pod := f.pod(name)
		f.Expect(pod.Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation))
		f.Expect(pod.Spec.Containers[0].Resources.Requests.Memory().String()).To(gomega.Equal("512Mi"))
	}
	f.expectCondition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)
	f.Expect(f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)).To(
		gomega.Equal("1 of 3 pods can fail, and every survivor stays within its limit"))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectQuiet()
}

func TestLimitsOfSurvivorsAreRaisedBeforeLargerPlanIsPublished(t *testing.T) {
	f := newFixture(t, threeNodes()...)
	f.enforce()
	before := f.plan().Data
	f.kubelet.AnswerResizes("", fakekubelet.Delay)
	f.Expect(f.kubelet.LoseNode(t.Context(), f.pod("orders-2").Spec.NodeName)).To(gomega.Succeed())
	f.spreadTasks("orders-0", "orders-1")
	f.delete("orders-2", &corev1.Pod{}) // as the node lifecycle controller does; no kubelet ends it
	f.passes(1)

	required := requiredLimit(12)
	f.Eventually(f.limits).Should(gomega.Equal(map[string]int64{"orders-0": required, "orders-1": required, "orders-2": requiredLimit(6)}))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInProgress)
	f.passes(3)
	f.Expect(f.plan().Data).To(gomega.Equal(before), "the kubelet has not reported the raised limit")
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(2), "a resize is requested once")

	f.kubelet.AnswerResizes("", fakekubelet.Apply)
	f.Eventually(f.plan).Should(gomega.HaveField("Data", gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(required)))))
	for _, name := range []string{"orders-0", "orders-1"} { // the kubelet reads the plan again when a pod is refreshed
		f.Eventually(func() map[string]string { return f.kubelet.Mounted(name, "streamweir-plan-orders") }).Should(gomega.Equal(f.plan().Data))
		f.Expect(f.pod(name).Annotations).To(gomega.HaveKeyWithValue(v1alpha1.PublishedAnnotation, f.app().Status.PlanRevision))
	}
	f.Eventually(f.injection).Should(gomega.HaveField("Spec.Memory.Limit", equalBytes(required)))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
	f.Expect(f.writes.count(writeResize)).To(gomega.Equal(2))
	f.expectQuiet()
}

func TestPodWithoutANodeCountsAsLostAfter15Minutes(t *testing.T) {
	f := newFixture(t, threeNodes()...)
	f.enforce()
	limitsOfSurvivors := func() []int64 { return []int64{f.limits()["orders-0"], f.limits()["orders-1"]} }
	for _, node := range []string{"a", "b", "c"} { // no pod can be scheduled
		f.Expect(admin.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + node}},
			mergePatch(`{"spec":{"unschedulable":true}}`))).To(gomega.Succeed())
	}
	f.delete("orders-2", &corev1.Pod{})
	f.spreadTasks("orders-0", "orders-1")
	f.Eventually(func() *int32 { return f.app().Status.UnavailablePods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(1)))
	f.Eventually(func() string { return f.scheduled("orders-2") }).Should(gomega.Equal("False"))
	f.advance(3 * time.Minute)
	f.Expect(limitsOfSurvivors()).To(gomega.HaveEach(requiredLimit(6)), "the active plan covers the time that an autoscaler needs")
	f.Expect(f.writes.count(writeResize)).To(gomega.BeZero())

	f.advance(13 * time.Minute)
	f.advance(31 * time.Second) // the replacement is not expected any more
	f.Eventually(limitsOfSurvivors).Should(gomega.HaveEach(requiredLimit(12)))
}

func TestScaleInCountsAsLossAtOnce(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	f.patchStatefulSet(`{"spec":{"replicas":2}}`)
	f.Eventually(f.readyPods).Should(gomega.HaveLen(2))
	f.spreadTasks("orders-0", "orders-1")
	f.passes(1)
	f.Eventually(f.limits).Should(gomega.Equal(map[string]int64{"orders-0": requiredLimit(12), "orders-1": requiredLimit(12)}))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
}

func TestObserveModeWritesOnlyStatus(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	before := f.resourceVersions()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = "" })

	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonObserveMode)).To(
		gomega.Equal("nothing is applied in mode Observe"))
	f.passes(3)
	f.Expect(f.app().Status).To(gomega.And(
		gomega.HaveField("Mode", v1alpha1.ModeObserve), gomega.HaveField("Tasks", gomega.HaveValue(gomega.BeEquivalentTo(tasksOfGroup))),
		gomega.HaveField("Limit", gomega.Not(gomega.BeNil())), gomega.HaveField("Lines", gomega.Not(gomega.BeEmpty()))))
	f.expectNothingWritten()
	after := f.resourceVersions()
	delete(after, "*v1alpha1.StreamApp orders")
	f.Expect(after).To(gomega.Equal(before))
	f.Expect(f.writes.all()).To(gomega.HaveEach(writeStatus))
}

func TestObserveModeWithoutProblemsIsReady(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "8Gi") })
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve })
	f.Expect(f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonObserving)).To(
		gomega.Equal("no problems found; nothing is changed in mode Observe"))
}

func TestDeploymentIsEnforcedLikeStatefulSet(t *testing.T) {
	f := newFixture(t)
	pods := template()
	f.Expect(admin.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "orders"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Template: pods, Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
	})).To(gomega.Succeed())
	f.Eventually(f.readyPods).Should(gomega.HaveLen(3))
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.TargetRef.Kind = v1alpha1.KindDeployment })
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)).To(
		gomega.HaveSuffix("kubectl -n " + f.namespace + " rollout restart deployment/orders"))
	f.Expect(f.plan().OwnerReferences).To(gomega.ConsistOf(gomega.HaveField("Kind", "Deployment"), gomega.HaveField("Kind", "StreamApp")))

	injected := func() []string {
		var names []string
		for _, name := range f.readyPods() {
			if f.pod(name).Annotations[v1alpha1.PlanAnnotation] != "" {
				names = append(names, name)
			}
		}
		return names
	}
	f.Eventually(func() []string { // a new template causes new pods; they are injected once the API server has read the PodInjection
		f.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orders"}},
			fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now()))
		f.Eventually(func() bool {
			d := &appsv1.Deployment{}
			f.get("orders", d)
			return d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == 3 && d.Status.UpdatedReplicas == 3 && d.Status.Replicas == 3
		}).Should(gomega.BeTrue())
		return injected()
	}).Should(gomega.HaveLen(3))
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	for name, limit := range f.limits() {
		f.Expect(limit).To(gomega.Equal(requiredLimit(6)), name)
		f.Expect(strings.HasPrefix(name, "orders-")).To(gomega.BeTrue())
	}

	f.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}, `{"spec":{"replicas":2}}`)
	f.Eventually(f.readyPods).Should(gomega.HaveLen(2))
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.Eventually(f.limits).Should(gomega.And(gomega.HaveLen(2), gomega.HaveEach(requiredLimit(12))))
}
