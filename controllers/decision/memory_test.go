// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// storedStatus returns a status as the API server stores it.
func storedStatus(t *testing.T, status v1alpha1.StreamAppStatus) v1alpha1.StreamAppStatus {
	t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.StreamAppStatus
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// store returns the World after the writes of a decision, except for resizes: status, plan, injection and annotations of pods. No object of
// the given World changes.
func store(t *testing.T, w World, d *Decision, o *Outcome) World {
	t.Helper()
	w.App = w.App.DeepCopy()
	w.App.Status = storedStatus(t, StatusOf(d, o))
	switch {
	case d.Injection != nil:
		w.Injection = &v1alpha1.PodInjection{
			ObjectMeta: metav1.ObjectMeta{Namespace: testobjects.Namespace, Name: testobjects.App, CreationTimestamp: metav1.NewTime(testobjects.Now)},
			Spec:       *d.Injection.DeepCopy(),
		}
		if withdrawal := d.Memory.Withdrawal; withdrawal != nil {
			w.Injection.Annotations = map[string]string{AnnotationWithdrawal: withdrawal.String()}
		}
	case !d.Frozen.Found():
		w.Injection = nil
		w.PlanConfigMap = nil
	}
	if d.Files != nil {
		w.PlanConfigMap = &corev1.ConfigMap{Data: d.Files}
		w.PlanConfigMap.Annotations = map[string]string{AnnotationMemory: d.MemoryText()}
	}
	pods := make([]corev1.Pod, 0, len(w.Pods))
	for i := range w.Pods {
		pod := w.Pods[i].DeepCopy()
		for _, refresh := range d.Refreshes {
			if refresh.Pod == pod.Name {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1alpha1.PublishedAnnotation, d.Revision)
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationRefresh, refresh.String())
			}
		}
		pods = append(pods, *pod)
	}
	w.Pods = pods
	return w
}

// TestMemoryIsRestored: status and annotations hold all of a decision's memory, except for the volatile part.
func TestMemoryIsRestored(t *testing.T) {
	failing := fixture{group: groupOf(12, 12, 12)}.after(t)
	failing.workload = testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), creationFails)
	failing.pods = testobjects.RunningPods(3, failing.injection.Spec.Memory.Limit.String())
	unavailable := fixture{group: groupOf(4, 4, 4)}.after(t)
	unavailable.pods = testobjects.RunningPods(2, "1Gi")
	refreshed := reported(func(r *report.Report) { r.Plan.OnDisk = "older" }).after(t)
	for i := range refreshed.pods {
		refreshed.pods[i].Annotations[v1alpha1.PublishedAnnotation] = refreshed.plan.Data[planfile.RevisionKey]
		refreshed.pods[i].Annotations[AnnotationRefresh] = Refresh{Count: 3, At: testobjects.Now.Add(-time.Hour)}.String()
	}
	measured := reported(func(r *report.Report) {
		r.JVM.Metaspace = 130 * mib
		r.JVM.HeapLive = 90 * mib
		r.Clients[0].Records.AverageSize = 300
	})
	failedImage := reported()
	failedImage.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
	failedImage.app.Status.Images = []v1alpha1.ImageStatus{known("registry.example/orders:0", "registry.example/orders@sha256:0", v1alpha1.ImageFailedToStart, time.Hour)}
	tasksUnknown := reported().after(t)
	tasksUnknown.reports = map[string]report.PodReport{}
	cases := map[string]struct {
		input fixture
		holds func(m *Memory) bool // the subject of the case
	}{
		"tasks and images":       {reported(), func(m *Memory) bool { return *m.Tasks == 12 && m.Images[0].State == v1alpha1.ImageProven }},
		"measured figures":       {measured, func(m *Memory) bool { return m.Measured.Metaspace != nil && m.Measured.AverageRecord != nil }},
		"image failed to start":  {failedImage, func(m *Memory) bool { return len(m.Images) == 2 }},
		"unavailable pods":       {unavailable, func(m *Memory) bool { return m.PodsUnavailableSince.Equal(testobjects.Now) }},
		"withdrawal":             {failing, func(m *Memory) bool { return m.Withdrawal != nil }},
		"refreshes":              {refreshed, func(m *Memory) bool { return len(m.Refreshes) == 3 && m.Refreshes["orders-0"].Count == 4 }},
		"tasks of a frozen plan": {tasksUnknown, func(m *Memory) bool { return *m.Tasks == 12 }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, m := c.input.world(t)
			d := Decide(w, m)
			if !c.holds(&d.Memory) {
				t.Fatalf("the memory lacks the subject of the case: %+v", d.Memory)
			}
			next := store(t, w, &d, d.outcome())
			wantNoDiff(t, "memory", d.Memory, Recall(next.App, next.PlanConfigMap, next.Injection, next.Pods, d.Memory.Volatile))
		})
	}
}

// TestVolatileMemory: topology and refusals are kept by the process, and the decision returns them.
func TestVolatileMemory(t *testing.T) {
	d := reported().decide(t)
	want := []assignment.Subtopology{{ID: "0", Tasks: 12, Stateful: true, Stores: []assignment.OpenStore{{Name: "totals", Kind: assignment.KeyValue}}}}
	wantNoDiff(t, "topology", KnownTopology{Subtopologies: want}, d.Memory.Assignment.Topology)

	g := reported()
	g.known = want
	delete(g.reports, "orders-2")
	wantNoDiff(t, "topology while a report is missing", KnownTopology{Subtopologies: want}, g.decide(t).Memory.Assignment.Topology)

	app := testobjects.StreamApp()
	volatile := Volatile{
		Assignment:     &KnownAssignment{Topology: KnownTopology{Hash: topologyHash("text"), Subtopologies: want}},
		RefusedResizes: map[types.UID]RefusedResize{"orders-0-uid": {Pod: "orders-0", Limit: 1, Message: "quota", At: testobjects.Now}},
	}
	wantNoDiff(t, "recalled", volatile, Recall(app, nil, nil, nil, volatile).Volatile)
}

func TestRecallBeforeTheFirstPass(t *testing.T) {
	pods := []corev1.Pod{*testobjects.RunningPod(0, "1Gi")}
	got := Recall(testobjects.StreamApp(), nil, &v1alpha1.PodInjection{}, pods, Volatile{})
	wantNoDiff(t, "memory", Memory{Refreshes: map[string]Refresh{}}, got)
}

func TestUnreadableAnnotationsCountAsAbsent(t *testing.T) {
	for _, text := range []string{
		"", "x", "1", "{}", "null", "[]", `"1"`, `{"count":1,"time":"yesterday"}`, `{"count":"1","time":"2026-03-14T09:26:53Z"}`,
		`{"count":0,"time":"2026-03-14T09:26:53Z"}`, `{"count":-1,"time":"2026-03-14T09:26:53Z"}`, `{"count":1,"time":"2026-03-14T09:26:53Z"`,
		"1 2026-03-14T09:26:53Z",
	} {
		pod := testobjects.RunningPod(0, "1Gi", func(p *corev1.Pod) { p.Annotations[AnnotationRefresh] = text })
		m := Recall(testobjects.StreamApp(), nil, nil, []corev1.Pod{*pod}, Volatile{})
		wantNoDiff(t, "refreshes of "+text, map[string]Refresh{}, m.Refreshes)
	}
	for _, text := range []string{
		"", "x", "1", "{}", "null", "[]", `{"limit":1,"forLimit":1}`, `{"limit":1,"forLimit":1,"since":"noon"}`,
		`{"limit":"1Gi","forLimit":1,"since":"2026-03-14T09:26:53Z"}`, `{"limit":1.5,"forLimit":1,"since":"2026-03-14T09:26:53Z","failures":2}`,
		"2147483648 for 1073741824 since 2026-03-14T09:26:53Z",
	} {
		injection := &v1alpha1.PodInjection{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationWithdrawal: text}}}
		if m := Recall(testobjects.StreamApp(), nil, injection, nil, Volatile{}); m.Withdrawal != nil {
			t.Errorf("%q is read as %+v", text, m.Withdrawal)
		}
	}
}

func TestAnnotationsAreRead(t *testing.T) {
	refresh := Refresh{Count: 3, At: testobjects.Now}
	withdrawal := Withdrawal{Limit: 2 << 30, ForLimit: 1 << 30, Since: testobjects.Now, Failures: 2}
	for text, want := range map[string]string{
		refresh.String():    `{"count":3,"time":"2026-03-14T09:26:53Z"}`,
		withdrawal.String(): `{"limit":2147483648,"forLimit":1073741824,"since":"2026-03-14T09:26:53Z","failures":2}`,
	} {
		if text != want {
			t.Errorf("annotation %s, want %s", text, want)
		}
	}
	pod := testobjects.RunningPod(0, "1Gi", func(p *corev1.Pod) { p.Annotations[AnnotationRefresh] = refresh.String() })
	injection := &v1alpha1.PodInjection{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationWithdrawal: withdrawal.String()}}}
	m := Recall(testobjects.StreamApp(), nil, injection, []corev1.Pod{*pod}, Volatile{})
	wantNoDiff(t, "refreshes", map[string]Refresh{"orders-0": refresh}, m.Refreshes)
	wantNoDiff(t, "withdrawal", &withdrawal, m.Withdrawal)
}
