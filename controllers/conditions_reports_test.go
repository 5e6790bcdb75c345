// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// settledWorld is a world whose pods have been told of the plan and see it.
func settledWorld(t *testing.T, changes ...change[report.Report]) given {
	t.Helper()
	g := after(t, reported())
	generation := g.plan.Data[planfile.RevisionKey]
	sees := func(r *report.Report) { r.Plan.OnDisk, r.Plan.Active = generation, generation }
	g.reports = reported(append([]change[report.Report]{sees}, changes...)...).reports
	g.pods = runningPodsOf(3, "4Gi", withAgent, func(p *corev1.Pod) {
		p.Annotations[v1alpha1.PublishedAnnotation] = generation
		p.Annotations[annotationTouched] = touched{1, testNow.Add(-time.Hour)}.String()
	})
	return g
}

func TestWhatTheReportsSayOfThePlan(t *testing.T) {
	unreachable := func(g given, names ...string) given {
		for _, name := range names {
			g.reports[name] = report.PodReport{Err: &report.Error{Fault: report.Unreachable}, Since: testNow.Add(-time.Hour)}
		}
		return g
	}
	withGroup := func(g given) given {
		g.group = groupOf(4, 4, 4)
		return g
	}
	older := settledWorld(t)
	for _, p := range older.pods {
		p.Spec.Volumes = nil
	}
	older.group, older.reports = groupOf(4, 4, 4), nil
	crashed := settledWorld(t)
	crashed.app, crashed.pods, crashed.reports = nil, []*corev1.Pod{runningPod(0, "1Gi", withAgent, died("Error", time.Second))}, nil
	off := func(r *report.Report) {
		r.Bounded = report.BoundedOff
		r.Findings = []report.Finding{{Reason: "TableFormat", Message: "the setter of the application uses a table that is not block-based"}}
	}
	cases := map[string]struct {
		given             given
		assigned, applied said
	}{
		"all is well": {
			settledWorld(t), isYes(v1alpha1.ReasonFromReports, ""), isYes(v1alpha1.ReasonApplied, ""),
		},
		"one pod cannot be reached": {
			unreachable(settledWorld(t), "orders-1"),
			isNo(v1alpha1.ReasonReportsUnreachable, "one pod with the agent cannot be asked for a report, the first is orders-1: the agent in the pod cannot be reached. "+
				"Network policies and service meshes must let the operator in at port 7907"),
			isNo(v1alpha1.ReasonAssignmentUnknown, "the last plan stays in force"),
		},
		"no pod can be reached, and there is a group": {
			unreachable(withGroup(settledWorld(t)), "orders-0", "orders-1", "orders-2"),
			isYes(v1alpha1.ReasonFromKafka, ""), isNo(v1alpha1.ReasonReportsUnreachable, "the Kafka group is asked instead"),
		},
		"the pods have the plan of an older operator, without the agent": {
			older, isYes(v1alpha1.ReasonFromKafka, ""), isNo(v1alpha1.ReasonRestartNeeded, "3 pods run without the plan or the agent"),
		},
		"the first pod ended before it reported": {
			crashed, isOpen(v1alpha1.ReasonNotObserved, ""),
			isNo(v1alpha1.ReasonInjectedPodFailedToStart, "the first pod with image registry.example/orders:1 ended before its agent reported"),
		},
		"it could not be bounded": {
			settledWorld(t, off), isYes(v1alpha1.ReasonFromReports, ""),
			isNo(v1alpha1.ReasonNotBounded, "RocksDB is not bounded in 3 pods, so it counts as Kafka Streams ships it; the first is orders-0: the setter of"),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.given.app == nil {
				c.given.app = streamApp(limitsBetween("512Mi", "4Gi"))
				c.given.app.Status.Tasks = new(int32(12))
				c.given.app.Status.Images = []v1alpha1.ImageStatus{known("earlier", "earlier@1", v1alpha1.ImageProven, time.Hour)}
			}
			verdicts := judged(t, passOf(t, c.given), &applied{})
			c.assigned.check(t, verdicts[v1alpha1.ConditionAssignmentKnown])
			c.applied.check(t, verdicts[v1alpha1.ConditionApplied])
		})
	}
}

// TestAnImageIsStoppedEvenWhereEverythingElseIsHeld: whoever creates the next pod must know.
func TestAnImageIsStoppedEvenWhereEverythingElseIsHeld(t *testing.T) {
	g := settledWorld(t)
	g.app = streamApp(limitsBetween("512Mi", "4Gi"))
	g.app.Status.Tasks = new(int32(12))
	g.app.Status.Images = []v1alpha1.ImageStatus{known("earlier", "earlier@1", v1alpha1.ImageProven, time.Hour)}
	g.pods, g.reports = []*corev1.Pod{runningPod(0, "1Gi", withAgent, died("Error", time.Second))}, nil
	p := passOf(t, g)
	if !p.want.held.found() || p.want.planData != nil || len(p.want.resizes) > 0 {
		t.Fatalf("held = %+v: the case is none", p.want.held)
	}
	want := g.injection.Spec.DeepCopy()
	want.ExcludedImages = []string{testImage}
	wantNoDiff(t, "injection", want, p.want.injection)

	g.injection.Spec.ExcludedImages = []string{testImage}
	if p := passOf(t, g); p.want.injection != nil {
		t.Errorf("it is written again: %+v", p.want.injection)
	}
}
