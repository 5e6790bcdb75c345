// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// died gives the application's container an end that lies behind it; it is down now.
func died(reason string, after time.Duration) change[corev1.Pod] {
	return func(p *corev1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: reason, ExitCode: 1, StartedAt: metav1.NewTime(testNow.Add(-time.Hour)), FinishedAt: metav1.NewTime(testNow.Add(after - time.Hour)),
		}}
	}
}

func TestWhatAPodTellsOfItsImage(t *testing.T) {
	failed := func(reason string) change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}
		}
	}
	young := func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = runningSince(testNow.Add(-time.Minute)) }
	pulling := func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: testContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
	}
	without := func(p *corev1.Pod) { p.Spec.Volumes = nil }
	bounded := func(state report.Boundedness, caches ...int64) report.PodReport {
		return reportWith(0, 4, func(r *report.Report) {
			r.Bounded, r.Started = state, testNow.UnixMilli()
			for _, capacity := range caches {
				r.RocksDB.OwnCaches = append(r.RocksDB.OwnCaches, report.Cache{Capacity: capacity, Stores: 1})
			}
		})
	}
	none := report.PodReport{}
	fault := func(fault report.Fault) report.PodReport {
		return report.PodReport{Err: &report.Error{Fault: fault}, Since: testNow}
	}
	cases := map[string]struct {
		pod      change[corev1.Pod]
		reported report.PodReport
		want     v1alpha1.ImageState
	}{
		"it says that it is bounded":                         {young, bounded(report.BoundedActive), v1alpha1.ImageProven},
		"bounded, beside a cache of its own of a known size": {young, bounded(report.BoundedActive, 1<<20), v1alpha1.ImageProven},
		"a cache of its own of unknown size bounds nothing":  {young, bounded(report.BoundedActive, 0), v1alpha1.ImageStarted},
		"no store is open yet":                               {young, bounded(report.BoundedPending), v1alpha1.ImageStarted},
		"it could not be bounded":                            {young, bounded(report.BoundedOff), v1alpha1.ImageStarted},
		"it answers in another version":                      {young, fault(report.SchemaUnknown), v1alpha1.ImageStarted},
		"it cannot be reached yet":                           {young, fault(report.Unreachable), ""},
		"it cannot be reached, but has run for an hour":      {func(*corev1.Pod) {}, fault(report.Unreachable), v1alpha1.ImageStarted},
		"it ended at once":                                   {died("Error", time.Second), none, v1alpha1.ImageFailedToStart},
		"it ended at once, and was not to be reached":        {died("Error", time.Second), fault(report.Unreachable), v1alpha1.ImageFailedToStart},
		"it ended with code 0":                               {died("Completed", time.Second), none, v1alpha1.ImageFailedToStart},
		"the pod has failed":                                 {failed(""), none, v1alpha1.ImageFailedToStart},
		"it ended after a while":                             {died("Error", 3*time.Minute), none, ""},
		"it was killed for memory":                           {died("OOMKilled", time.Second), none, ""},
		"its node was restarted":                             {died("Unknown", time.Second), none, ""},
		"its node has lost it":                               {died("ContainerStatusUnknown", time.Second), none, ""},
		"it was evicted":                                     {failed("Evicted"), none, ""},
		"its node was shut down":                             {failed("Terminated"), none, ""},
		"its image cannot be pulled":                         {pulling, none, ""},
		"it ended, but without an agent":                     {func(p *corev1.Pod) { without(p); died("Error", time.Second)(p) }, none, ""},
		"it is being deleted": {func(p *corev1.Pod) {
			died("Error", time.Second)(p)
			p.DeletionTimestamp = new(metav1.NewTime(testNow))
		}, none, ""},
		"its node is lost": {func(p *corev1.Pod) { died("Error", time.Second)(p); p.Spec.NodeName = "lost" }, none, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obs := observed(t, given{
				agent: true, workload: statefulSet(1, podTemplate("1Gi")), pods: []*corev1.Pod{runningPod(0, "1Gi", withAgent, c.pod)},
				nodes: []*corev1.Node{node("lost", corev1.ConditionUnknown)}, reports: map[string]report.PodReport{"orders-0": c.reported},
			})
			want := []v1alpha1.ImageStatus(nil)
			if c.want != "" {
				want = []v1alpha1.ImageStatus{{ImageID: testDigest, Image: testImage, State: c.want, SinceTime: new(metav1.NewTime(testNow).Rfc3339Copy())}}
			}
			wantNoDiff(t, "images", want, obs.images)
		})
	}
}

func known(image, digest string, state v1alpha1.ImageState, ago time.Duration) v1alpha1.ImageStatus {
	return v1alpha1.ImageStatus{ImageID: digest, Image: image, State: state, SinceTime: new(metav1.NewTime(testNow.Add(-ago)))}
}

func TestWhatIsKnownOfImagesOnlyGetsBetter(t *testing.T) {
	crashed := died("Error", time.Second)
	remember := func(states ...v1alpha1.ImageStatus) *v1alpha1.StreamApp {
		app := streamApp(limitsBetween("512Mi", "4Gi"))
		app.Status.ObservedGeneration, app.Status.Images = app.Generation, states
		return app
	}
	states := func(obs *observation) []string {
		var all []string
		for _, i := range obs.images {
			all = append(all, fmt.Sprintf("%s %s", i.ImageID, i.State))
		}
		return all
	}
	pods := func(changes ...change[corev1.Pod]) []*corev1.Pod {
		return []*corev1.Pod{runningPod(0, "1Gi", append([]change[corev1.Pod]{withAgent}, changes...)...)}
	}
	see := func(app *v1alpha1.StreamApp, pods []*corev1.Pod, reports map[string]report.PodReport) *observation {
		return observed(t, given{agent: true, app: app, workload: statefulSet(1, podTemplate("1Gi")), pods: pods, reports: reports})
	}
	proven := known(testImage, testDigest, v1alpha1.ImageProven, time.Hour)
	stopped := known(testImage, testDigest, v1alpha1.ImageFailedToStart, time.Hour)

	wantNoDiff(t, "a crash of a proven image", []string{testDigest + " Proven"}, states(see(remember(proven), pods(crashed), nil)))
	wantNoDiff(t, "a report of a stopped image", []string{testDigest + " Proven"},
		states(see(remember(stopped), pods(), map[string]report.PodReport{"orders-0": reportWith(0, 4)})))
	wantNoDiff(t, "a stopped image without a pod", []string{testDigest + " Stopped"}, states(see(remember(stopped), nil, nil)))

	edited := remember(stopped)
	edited.Generation++
	wantNoDiff(t, "a stopped image, and the StreamApp was changed", []string(nil), states(see(edited, nil, nil)))
	wantNoDiff(t, "it was changed, but the pod is still there", []string{testDigest + " Stopped"}, states(see(edited, pods(crashed), nil)))

	var many []v1alpha1.ImageStatus
	for i := range 9 {
		many = append(many, known("old", fmt.Sprintf("old@%d", i), v1alpha1.ImageProven, time.Duration(i+1)*time.Hour))
	}
	got := states(see(remember(many...), pods(), map[string]report.PodReport{"orders-0": reportWith(0, 4)}))
	wantNoDiff(t, "the newest are kept", []string{testDigest + " Proven", "old@0 Proven", "old@1 Proven", "old@2 Proven", "old@3 Proven"}, got)
}

func TestTrust(t *testing.T) {
	app := func(states ...v1alpha1.ImageStatus) *v1alpha1.StreamApp {
		a := streamApp(limitsBetween("512Mi", "4Gi"))
		a.Status.ObservedGeneration, a.Status.Images = a.Generation, states
		return a
	}
	proven, stopped := known(testImage, testDigest, v1alpha1.ImageProven, time.Hour), known(testImage, testDigest, v1alpha1.ImageFailedToStart, time.Hour)
	pods := func(changes ...change[corev1.Pod]) []*corev1.Pod {
		return runningPodsOf(2, "1Gi", append([]change[corev1.Pod]{withAgent}, changes...)...)
	}
	moved := ofImage(testImage, "registry.example/orders@sha256:2")
	off := map[string]report.PodReport{"orders-1": reportWith(0, 4, func(r *report.Report) { r.Bounded = report.BoundedOff })}
	type answer struct {
		Proven   bool
		Bounded  bool // the first pod counts as bounded
		Excepted bool
	}
	cases := map[string]struct {
		app     *v1alpha1.StreamApp
		pods    []*corev1.Pod
		reports map[string]report.PodReport
		want    answer
	}{
		"nothing is known":                           {app(), pods(), nil, answer{}},
		"proven before":                              {app(proven), pods(), nil, answer{Proven: true, Bounded: true}},
		"proven before, and no pod runs":             {app(proven), nil, nil, answer{Proven: true}},
		"another image was proven":                   {app(known("other", "other@1", v1alpha1.ImageProven, time.Hour)), pods(), nil, answer{}},
		"the name has moved to another digest":       {app(proven), pods(moved), nil, answer{}},
		"a pod says that it is not bounded":          {app(proven), pods(), off, answer{Bounded: true}},
		"stopped before":                             {app(stopped), nil, nil, answer{Excepted: true}},
		"stopped, and its pods run without a plan":   {app(stopped), runningPodsOf(2, "1Gi", ofImage(testImage, testDigest)), nil, answer{Excepted: true}},
		"stopped, but the name has moved":            {app(stopped), runningPodsOf(2, "1Gi", moved), nil, answer{}},
		"a pod without the agent is never bounded":   {app(proven), runningPodsOf(2, "1Gi", ofImage(testImage, testDigest)), nil, answer{Proven: true}},
		"an image that is stopped is not the others": {app(known("other", "other@1", v1alpha1.ImageFailedToStart, time.Hour)), pods(), nil, answer{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obs := observed(t, given{agent: true, app: c.app, workload: statefulSet(2, podTemplate("1Gi")), pods: c.pods, reports: c.reports})
			got := answer{Proven: obs.proven(), Excepted: slices.Contains(obs.exceptedImages(), testImage)}
			if len(obs.pods) > 0 {
				got.Bounded = obs.boundedPod(&obs.pods[0])
			}
			wantNoDiff(t, "trust", c.want, got)
			if obs.stopped().found() != c.want.Excepted {
				t.Errorf("stopped = %+v", obs.stopped())
			}
		})
	}
}

// TestASmallerLimitIsOnlyForItsImage: a new image may come before the operator has looked.
func TestASmallerLimitIsOnlyForItsImage(t *testing.T) {
	g := reported()
	g.workload = statefulSet(3, podTemplate("4Gi"))
	p := passOf(t, g)
	memory := p.want.injection.Memory
	if memory.Limit == nil || memory.Limit.Cmp(*memory.ForLimit) >= 0 || memory.ForImage != testImage {
		t.Errorf("memory = %+v, want less than the template's, for %s", memory, testImage)
	}
	raised := passOf(t, given{group: groupOf(20, 20, 20)}).want.injection.Memory
	if raised.Limit == nil || raised.Limit.Cmp(*raised.ForLimit) <= 0 || raised.ForImage != "" {
		t.Errorf("memory = %+v, want more than the template's, for any image", raised)
	}
}
