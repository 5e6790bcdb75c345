// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// ended makes the container one that has run for a while twice, and waits for another restart.
func ended(reason string, after time.Duration) testobjects.Change[corev1.Pod] {
	started := testobjects.Now.Add(-time.Hour)
	return func(p *corev1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.RestartCount = 1
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: reason, ExitCode: 1, StartedAt: metav1.NewTime(started), FinishedAt: metav1.NewTime(started.Add(after)),
		}}
	}
}

func TestImageStateOfOnePod(t *testing.T) {
	failed := func(reason string) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Reason = reason
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}
		}
	}
	both := func(first, second testobjects.Change[corev1.Pod]) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			first(p)
			second(p)
		}
	}
	endedAtOnce := ended("Error", time.Second)
	endedOnce := both(endedAtOnce, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 0 })
	runsAgain := both(endedAtOnce, func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State = runningSince(testobjects.Now.Add(-time.Minute))
	})
	withMessage := func(message string) testobjects.Change[corev1.Pod] {
		return both(ended("Error", time.Minute), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].RestartCount = 0
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message = message
		})
	}
	justStarted := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State = runningSince(testobjects.Now.Add(-time.Minute))
	}
	pulling := func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: testobjects.Container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
	}
	withoutAgent := testobjects.WithoutAgent
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(testobjects.Now)) }
	onLostNode := func(p *corev1.Pod) { p.Spec.NodeName = "lost" }
	bounded := func(state report.Boundedness, caches ...int64) report.PodReport {
		return reportWith(0, 4, func(r *report.Report) {
			r.Bounded = state
			r.Started = testobjects.Now.UnixMilli()
			for _, capacity := range caches {
				r.RocksDB.OwnCaches = append(r.RocksDB.OwnCaches, report.Cache{Capacity: capacity, Stores: 1})
			}
		})
	}
	fault := func(fault report.Fault) report.PodReport {
		return report.PodReport{Err: &report.Error{Fault: fault}, Since: testobjects.Now}
	}
	none := report.PodReport{}
	cases := map[string]struct {
		pod    testobjects.Change[corev1.Pod]
		report report.PodReport
		want   v1alpha1.ImageState
	}{
		"bounded: proven": {justStarted, bounded(report.BoundedActive), v1alpha1.ImageProven},
		"bounded, with an own cache of known size: proven":    {justStarted, bounded(report.BoundedActive, 1<<20), v1alpha1.ImageProven},
		"bounded, with an own cache of unknown size: started": {justStarted, bounded(report.BoundedActive, 0), v1alpha1.ImageStarted},
		"no store open yet: started":                          {justStarted, bounded(report.BoundedPending), v1alpha1.ImageStarted},
		"not bounded: started":                                {justStarted, bounded(report.BoundedOff), v1alpha1.ImageStarted},
		"report of an unknown version: started":               {justStarted, fault(report.SchemaUnknown), v1alpha1.ImageStarted},
		"unreachable: nothing":                                {justStarted, fault(report.Unreachable), ""},
		"unreachable for an hour: started":                    {func(*corev1.Pod) {}, fault(report.Unreachable), v1alpha1.ImageStarted},
		"ended at once: failed":                               {endedAtOnce, none, v1alpha1.ImageFailedToStart},
		"ended at once, and unreachable: failed":              {endedAtOnce, fault(report.Unreachable), v1alpha1.ImageFailedToStart},
		"ended at once with code 0: failed":                   {ended("Completed", time.Second), none, v1alpha1.ImageFailedToStart},
		"failed pod: nothing, since it started once":          {failed(""), none, ""},
		"ended at once for the first time: nothing":           {endedOnce, none, ""},
		"ended at once, and runs again: nothing":              {runsAgain, none, ""},
		"ended after 9 s: failed":                             {ended("Error", 9*time.Second), none, v1alpha1.ImageFailedToStart},
		"ended after 10 s: nothing":                           {ended("Error", 10*time.Second), none, ""},
		"brokers away, ended after 90 s: nothing":             {ended("Error", 90*time.Second), none, ""},
		"liveness probe failed after 40 s: nothing":           {ended("Error", 40*time.Second), none, ""},
		"the JVM does not know an option: failed": {
			withMessage("Unrecognized VM option 'UseFoo'\nError: Could not create the Java Virtual Machine.\n"), none, v1alpha1.ImageFailedToStart,
		},
		"the JVM cannot load the agent: failed": {
			withMessage("Error occurred during initialization of VM\nagent library failed to init: instrument\n"), none, v1alpha1.ImageFailedToStart,
		},
		"the JVM cannot read the agent: failed": {
			withMessage("Error opening zip file or JAR manifest missing : /etc/streamweir/agent/streamweir-agent.jar"), none, v1alpha1.ImageFailedToStart,
		},
		"an exception of the application: nothing":   {withMessage("java.net.ConnectException: Connection refused"), none, ""},
		"killed for memory: nothing":                 {ended("OOMKilled", time.Second), none, ""},
		"runtime of the node restarted: nothing":     {ended("Unknown", time.Second), none, ""},
		"container unknown to the node: nothing":     {ended("ContainerStatusUnknown", time.Second), none, ""},
		"evicted: nothing":                           {failed("Evicted"), none, ""},
		"node shut down: nothing":                    {failed("Terminated"), none, ""},
		"image cannot be pulled: nothing":            {pulling, none, ""},
		"ended at once without an agent: nothing":    {both(withoutAgent, endedAtOnce), none, ""},
		"ended at once while being deleted: nothing": {both(endedAtOnce, deleted), none, ""},
		"ended at once on a lost node: nothing":      {both(endedAtOnce, onLostNode), none, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fixture{
				agent: true, workload: testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi")), pods: []*corev1.Pod{testobjects.RunningPod(0, "1Gi", withAgent, c.pod)},
				nodes: []*corev1.Node{testobjects.Node("lost", corev1.ConditionUnknown)}, reports: map[string]report.PodReport{"orders-0": c.report},
			}
			var want Images
			if c.want != "" {
				want = Images{known(testImage, testDigest, c.want, 0)}
			}
			wantNoDiff(t, "images", want, f.facts(t).Images)
		})
	}
}

// remembering is a StreamApp whose status has the states of images.
func remembering(images ...v1alpha1.ImageStatus) *v1alpha1.StreamApp {
	app := testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
	app.Status.ObservedGeneration = app.Generation
	app.Status.Images = images
	return app
}

func TestImageStatesOnlyImprove(t *testing.T) {
	onePod := func(changes ...testobjects.Change[corev1.Pod]) []*corev1.Pod {
		return []*corev1.Pod{testobjects.RunningPod(0, "1Gi", append([]testobjects.Change[corev1.Pod]{withAgent}, changes...)...)}
	}
	crashed := ended("Error", time.Second)
	proven := known(testImage, testDigest, v1alpha1.ImageProven, time.Hour)
	failed := known(testImage, testDigest, v1alpha1.ImageFailedToStart, time.Hour)
	crashedOnce := func(p *corev1.Pod) {
		crashed(p)
		p.Status.ContainerStatuses[0].RestartCount = 0
	}
	twoPods := func(changes ...testobjects.Change[corev1.Pod]) []*corev1.Pod {
		return testobjects.RunningPods(2, "1Gi", append([]testobjects.Change[corev1.Pod]{withAgent}, changes...)...)
	}
	started := known(testImage, testDigest, v1alpha1.ImageStarted, time.Hour)
	failedBefore := known(testImage, testDigest, v1alpha1.ImageFailedToStart, time.Minute)
	provenNow := known(testImage, testDigest, v1alpha1.ImageProven, 0)
	failedNow := known(testImage, testDigest, v1alpha1.ImageFailedToStart, 0)
	edited := remembering(failed)
	edited.Generation++
	var many []v1alpha1.ImageStatus
	for i := range 9 {
		many = append(many, known("old", fmt.Sprintf("old@%d", i), v1alpha1.ImageProven, time.Duration(i+1)*time.Hour))
	}
	reports := map[string]report.PodReport{"orders-0": reportWith(0, 4)}
	cases := map[string]struct {
		app     *v1alpha1.StreamApp
		pods    []*corev1.Pod
		reports map[string]report.PodReport
		want    Images
	}{
		"proven image, and its pod crashes: proven":                {remembering(proven), onePod(crashed), nil, Images{proven}},
		"failed image, and its pod reports: proven since now":      {remembering(failed), onePod(), reports, Images{provenNow}},
		"failed image without a pod: failed":                       {remembering(failed), nil, nil, Images{failed}},
		"failed image, and the StreamApp is edited: unknown":       {edited, nil, nil, nil},
		"failed image with its pod, and the edit: failed anew":     {edited, onePod(crashed), nil, Images{failedNow}},
		"failed an hour ago, and a try fails once: failed anew":    {remembering(failed), onePod(crashedOnce), nil, Images{failedNow}},
		"failed a minute ago, and its pod still crashes: failed":   {remembering(failedBefore), onePod(crashed), nil, Images{failedBefore}},
		"started image, and its pod crashes: started":              {remembering(started), onePod(crashed), nil, Images{started}},
		"two pods whose first start failed: failed":                {remembering(), twoPods(crashedOnce), nil, Images{failedNow}},
		"one pod whose first start failed: unknown":                {remembering(), onePod(crashedOnce), nil, nil},
		"more images than the status accepts: the newest are kept": {remembering(many...), onePod(), reports, append(Images{provenNow}, many[:4]...)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fixture{agent: true, app: c.app, workload: testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi")), pods: c.pods, reports: c.reports}
			wantNoDiff(t, "images", c.want, f.facts(t).Images)
		})
	}
}

func TestExcludedImages(t *testing.T) {
	failed := func(image, digest string) v1alpha1.ImageStatus {
		return known(image, digest, v1alpha1.ImageFailedToStart, 0)
	}
	images := Images{failed("b", "b@1"), failed("a", "a@2"), known("c", "c@1", v1alpha1.ImageProven, 0), failed("a", "a@1")}
	wantNoDiff(t, "excluded images", []string{"a", "b"}, images.excluded(nil, testobjects.Now))
	wantNoDiff(t, "images excluded for 59 minutes", []string{"a", "b"}, images.excluded(nil, testobjects.Now.Add(59*time.Minute)))
	wantNoDiff(t, "images excluded after an hour", []string(nil), images.excluded(nil, testobjects.Now.Add(time.Hour)))
}

func TestTrustInAnImage(t *testing.T) {
	proven := known(testImage, testDigest, v1alpha1.ImageProven, time.Hour)
	failed := known(testImage, testDigest, v1alpha1.ImageFailedToStart, time.Minute)
	other := func(state v1alpha1.ImageState) v1alpha1.ImageStatus {
		return known("other", "other@1", state, time.Hour)
	}
	pods := func(changes ...testobjects.Change[corev1.Pod]) []*corev1.Pod {
		return testobjects.RunningPods(2, "1Gi", changes...)
	}
	moved := ofImage(testImage, "registry.example/orders@sha256:2")
	withoutAgent := ofImage(testImage, testDigest)
	notBounded := func(pod string) map[string]report.PodReport {
		return map[string]report.PodReport{pod: reportWith(0, 4, func(r *report.Report) { r.Bounded = report.BoundedOff })}
	}
	type trust struct {
		Proven   bool
		Bounded  bool // the first pod counts as bounded
		Excluded bool
	}
	cases := map[string]struct {
		app     *v1alpha1.StreamApp
		pods    []*corev1.Pod
		reports map[string]report.PodReport
		want    trust
	}{
		"unknown image":                                {remembering(), pods(withAgent), nil, trust{}},
		"proven image":                                 {remembering(proven), pods(withAgent), nil, trust{Proven: true, Bounded: true}},
		"proven image without a pod":                   {remembering(proven), nil, nil, trust{Proven: true}},
		"another image is proven":                      {remembering(other(v1alpha1.ImageProven)), pods(withAgent), nil, trust{}},
		"proven image whose tag has moved":             {remembering(proven), pods(withAgent, moved), nil, trust{}},
		"proven image, and the first pod is unbounded": {remembering(proven), pods(withAgent), notBounded("orders-0"), trust{}},
		"proven image, and another pod is unbounded":   {remembering(proven), pods(withAgent), notBounded("orders-1"), trust{Bounded: true}},
		"failed image without a pod":                   {remembering(failed), nil, nil, trust{Excluded: true}},
		"failed image whose pods have no plan":         {remembering(failed), pods(withoutAgent), nil, trust{Excluded: true}},
		"failed image whose tag has moved":             {remembering(failed), pods(moved), nil, trust{}},
		"proven image, and a pod without agent":        {remembering(proven), pods(withoutAgent), nil, trust{Proven: true}},
		"another image has failed":                     {remembering(other(v1alpha1.ImageFailedToStart)), pods(withAgent), nil, trust{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := fixture{agent: true, app: c.app, workload: testobjects.StatefulSet(2, testobjects.PodTemplate("1Gi")), pods: c.pods, reports: c.reports}
			f := g.facts(t)
			got := trust{Proven: f.Proven, Excluded: slices.Contains(f.Images.excluded(f.Pods, f.Now), testImage)}
			if len(f.Pods) > 0 {
				got.Bounded = f.Images.boundedPod(&f.Pods[0])
			}
			wantNoDiff(t, "trust", c.want, got)
			if f.excludedImage() != c.want.Excluded {
				t.Errorf("excludedImage() = %v, want %v", f.excludedImage(), c.want.Excluded)
			}
		})
	}
}

// TestSmallerLimitIsInjectedForOneImage: pods with a new image may be created before the next pass.
func TestSmallerLimitIsInjectedForOneImage(t *testing.T) {
	smaller := reported()
	smaller.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi"))
	memory := smaller.decide(t).Injection.Memory
	if memory.Limit == nil || memory.Limit.Cmp(*memory.ForLimit) >= 0 || memory.ForImage != testImage {
		t.Errorf("memory = %+v, want less than the template's, for %s", memory, testImage)
	}
	larger := fixture{group: groupOf(20, 20, 20)}.decide(t).Injection.Memory
	if larger.Limit == nil || larger.Limit.Cmp(*larger.ForLimit) <= 0 || larger.ForImage != "" {
		t.Errorf("memory = %+v, want more than the template's, for any image", larger)
	}
}
