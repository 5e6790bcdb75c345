// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestSettling(t *testing.T) {
	active := reported().after(t)
	revision := active.plan.Data[planfile.RevisionKey]
	refreshed := func(count int, ago time.Duration) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Annotations[v1alpha1.PublishedAnnotation] = revision
			p.Annotations[AnnotationRefresh] = Refresh{Count: count, At: testobjects.Now.Add(-ago)}.String()
		}
	}
	resizing := func(reason string) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			refreshed(1, time.Hour)(p)
			conditionType := corev1.PodResizePending
			if reason == "" {
				conditionType = corev1.PodResizeInProgress
			}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason})
		}
	}
	loaded := refreshed(1, time.Hour)
	cases := map[string]struct {
		pod     testobjects.Change[corev1.Pod]
		onDisk  string
		outcome Outcome
		want    bool
	}{
		"loaded":                              {loaded, revision, Outcome{}, false},
		"published, nothing to be loaded":     {loaded, revision, Outcome{Published: true}, false},
		"resize requested":                    {loaded, revision, Outcome{Resized: []string{"orders-0"}}, true},
		"resize requested, another refused":   {loaded, revision, Outcome{Resized: []string{"orders-0"}, Refused: map[string]RefusedResize{"orders-1": {}}}, false},
		"resize requested, and a write error": {loaded, revision, Outcome{Resized: []string{"orders-0"}, WriteError: errors.New("refused")}, false},
		"resize in progress":                  {resizing(""), revision, Outcome{}, true},
		"resize deferred":                     {resizing(corev1.PodReasonDeferred), revision, Outcome{}, false},
		"resize infeasible":                   {resizing(corev1.PodReasonInfeasible), revision, Outcome{}, false},
		"refreshed now":                       {func(*corev1.Pod) {}, "older", Outcome{}, true},
		"refreshed 9 s ago":                   {refreshed(1, 9*time.Second), "older", Outcome{}, true},
		"refreshed twice":                     {refreshed(2, time.Second), "older", Outcome{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := active
			g.pods = testobjects.RunningPods(3, "1Gi", withAgent, c.pod)
			g.reports = reported(func(r *report.Report) { r.Plan.OnDisk = c.onDisk }).reports
			if got := Settling(g.decide(t), &c.outcome); got != c.want {
				t.Errorf("Settling is %v, want %v", got, c.want)
			}
		})
	}
}
