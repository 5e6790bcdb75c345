// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// settledFixture has pods that were notified of the plan and have loaded it.
func settledFixture(t *testing.T, changes ...testobjects.Change[report.Report]) fixture {
	t.Helper()
	return settle(t, reported(), changes...)
}

// settle returns a fixture whose pods have loaded the plan of its first pass. Their limit is 4Gi.
func settle(t *testing.T, f fixture, changes ...testobjects.Change[report.Report]) fixture {
	t.Helper()
	f = f.after(t)
	revision := f.plan.Data[planfile.RevisionKey]
	loaded := func(r *report.Report) { r.Plan = report.Plan{OnDisk: revision, Active: revision} }
	f.reports = reported(append([]testobjects.Change[report.Report]{loaded}, changes...)...).reports
	f.pods = testobjects.RunningPods(3, "4Gi", withAgent, notified(revision, 1, time.Hour))
	return f
}

// clamped is the report of a process with less memory than its plan assumes.
func clamped(r *report.Report) {
	r.Plan.Source = report.PlanClamped
	r.Findings = []report.Finding{{Reason: "Other", Message: "another"}, {Reason: "PlanClamped", Message: "the plan assumes a limit of 2"}}
}

// notified gives a pod the annotations of its last refresh.
func notified(revision string, count int, ago time.Duration) testobjects.Change[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Annotations[v1alpha1.PublishedAnnotation] = revision
		p.Annotations[AnnotationRefresh] = Refresh{Count: count, At: testobjects.Now.Add(-ago)}.String()
	}
}

// failedFixture has a plan and two pods: orders-0 has no agent, and the container of orders-1 ended before its agent reported. Another image
// is proven.
func failedFixture(t *testing.T) fixture {
	t.Helper()
	f := settledFixture(t)
	f.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
	f.app.Status.ObservedGeneration = f.app.Generation
	f.app.Status.Tasks = new(int32(12))
	f.app.Status.Images = []v1alpha1.ImageStatus{known("earlier", "earlier@1", v1alpha1.ImageProven, time.Hour)}
	f.pods = []*corev1.Pod{
		testobjects.RunningPod(0, "1Gi", ofImage(testImage, testDigest)), testobjects.RunningPod(1, "1Gi", withAgent, ended("Error", time.Second)),
	}
	f.reports = nil
	return f
}

// unreachable makes the reports of pods fail since an hour ago.
func unreachable(f fixture, pods ...string) fixture {
	for _, pod := range pods {
		f.reports[pod] = report.PodReport{Err: &report.Error{Fault: report.Unreachable}, Since: testobjects.Now.Add(-time.Hour)}
	}
	return f
}

func reportCases(t *testing.T) map[string]conditionCase {
	t.Helper()
	withGroup := settledFixture(t)
	withGroup.group = groupOf(4, 4, 4)
	withoutAgent := settledFixture(t)
	for _, p := range withoutAgent.pods {
		testobjects.WithoutAgent(p)
	}
	withoutAgent.group = groupOf(4, 4, 4)
	withoutAgent.reports = nil
	gone := failedFixture(t)
	gone.pods = nil
	gone.app.Status.Images = []v1alpha1.ImageStatus{known(testImage, testDigest, v1alpha1.ImageFailedToStart, time.Minute)}
	notBounded := func(r *report.Report) {
		r.Bounded = report.BoundedOff
		r.Findings = []report.Finding{{Reason: "TableFormat", Message: "the setter of the application uses a table that is not block-based"}}
	}
	forgotten := unreachable(settledFixture(t), "orders-1")
	forgotten.plan.Annotations = nil
	withOneBarePod := settledFixture(t)
	withOneBarePod.pods[2] = testobjects.RunningPod(2, "4Gi", testobjects.NotInjected, inState(runningFor(time.Hour)))
	delete(withOneBarePod.reports, "orders-2")
	notLoaded := settledFixture(t, func(r *report.Report) { r.Plan.OnDisk = "older" })
	notLoaded.pods = testobjects.RunningPods(3, "4Gi", withAgent, notified(notLoaded.plan.Data[planfile.RevisionKey], 2, 11*time.Second))
	reports := func(f fixture, assignment, applied *verdict) conditionCase {
		return conditionCase{fixture: f, want: conditions{v1alpha1.ConditionAssignmentKnown: assignment, v1alpha1.ConditionApplied: applied}}
	}
	return map[string]conditionCase{
		"all pods report the plan": reports(settledFixture(t), isTrue(v1alpha1.ReasonFromReports, ""), isTrue(v1alpha1.ReasonApplied, "")),
		"one unreachable pod": reports(unreachable(settledFixture(t), "orders-1"),
			isFalse(v1alpha1.ReasonReportsUnreachable, "no report from 1 pod with the agent (orders-1): the agent in the pod cannot be reached; "+
				"network policies and service meshes must admit the operator at port 7907; planned with their last known load"),
			isFalse(v1alpha1.ReasonReportsUnreachable, "planned with their last known load")),
		"one pod of an application without a known assignment": reports(forgotten,
			isFalse(v1alpha1.ReasonReportsUnreachable, "no report from 1 pod with the agent (orders-1)"),
			isFalse(v1alpha1.ReasonAssignmentUnknown, "the last plan stays active")),
		"one pod without the agent": reports(withOneBarePod, isUnknown(v1alpha1.ReasonNotObserved,
			"1 pod runs without a report (orders-2); planned with the heaviest known load"), isFalse(v1alpha1.ReasonPodsNotInjected, "")),
		"no reachable pod, but a Kafka group": reports(unreachable(withGroup, "orders-0", "orders-1", "orders-2"),
			isTrue(v1alpha1.ReasonFromKafka, ""), isFalse(v1alpha1.ReasonReportsUnreachable, "the Kafka group is used instead")),
		"pods with the plan of an older operator, without the agent": reports(withoutAgent,
			isTrue(v1alpha1.ReasonFromKafka, ""), isFalse(v1alpha1.ReasonRestartNeeded, "3 pods were created before the plan and run without the plan or the agent")),
		"first pod ended before it reported": reports(failedFixture(t), isUnknown(v1alpha1.ReasonNotObserved, ""),
			isFalse(v1alpha1.ReasonInjectedPodFailedToStart, "pods with image registry.example/orders:1 failed to start before their agent reported, so pods with this "+
				"image are not injected for an hour; a runtime image needs the module java.instrument. See kubectl -n shop logs -p orders-1; then delete the pod, "+
				"and deploy a new image or edit the StreamApp to retry")),
		"image that failed to start, and its pod is gone": reports(gone, isUnknown(v1alpha1.ReasonNotObserved, ""),
			isFalse(v1alpha1.ReasonInjectedPodFailedToStart, "the module java.instrument. Deploy a new image or edit the StreamApp to retry")),
		"stores without the bounds": reports(settledFixture(t, notBounded), isTrue(v1alpha1.ReasonFromReports, ""),
			isFalse(v1alpha1.ReasonNotBounded, "RocksDB is not bounded in 3 pods (orders-0), so default RocksDB memory counts: the setter of")),
		"less memory than the plan assumes": reports(settledFixture(t, clamped), isTrue(v1alpha1.ReasonFromReports, ""),
			isFalse(v1alpha1.ReasonPlanClamped, "3 pods started with less memory than the plan assumes (orders-0), so its cache is smaller: the plan assumes "+
				"a limit of 2; restart to apply the plan: kubectl -n shop rollout restart statefulset/orders")),
		"plan that no pod has loaded": reports(notLoaded, isTrue(v1alpha1.ReasonFromReports, ""),
			isFalse(v1alpha1.ReasonPublishing, "3 pods (orders-0) have not loaded it")),
	}
}

func TestFrozenInjectionStillExcludesImages(t *testing.T) {
	f := failedFixture(t)
	d := f.decide(t)
	if !d.Frozen.Found() || d.Files != nil || len(d.Resizes) > 0 {
		t.Fatalf("frozen = %+v, %d files, %d resizes; want a frozen pass", d.Frozen, len(d.Files), len(d.Resizes))
	}
	want := f.injection.Spec.DeepCopy()
	want.ExcludedImages = []string{testImage}
	wantNoDiff(t, "injection", want, d.Injection)

	f.injection.Spec.ExcludedImages = []string{testImage}
	if d := f.decide(t); d.Injection != nil {
		t.Errorf("the injection is written again: %+v", d.Injection)
	}
}
