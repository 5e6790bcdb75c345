// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

func sizeOf(t *testing.T, status v1alpha1.StreamAppStatus) int {
	t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

// manyPods are pods with names as long as they can be (63: pkg names of the API server), of which each differs.
func manyPods(count int, message string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, runningPod(i, fmt.Sprintf("%d", 1_200_000_001+i), func(p *corev1.Pod) {
			p.Name = fmt.Sprintf("%s-%04d", strings.Repeat("n", 58), i)
			if message != "" {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
					Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: message,
				})
			}
		}))
	}
	return pods
}

func TestStatusStaysSmall(t *testing.T) {
	group := groupOf(4, 4, 4)
	for i := range 40 {
		group.Warnings = append(group.Warnings, fmt.Sprintf("%d: %s", i, strings.Repeat("w", 300)))
	}
	for name, message := range map[string]string{"all differ": "", "all are in trouble": strings.Repeat("m", 5000), "in many bytes a character": strings.Repeat("…", 5000)} {
		t.Run(name, func(t *testing.T) {
			p := passOf(t, given{workload: statefulSet(500, podTemplate("1Gi")), pods: manyPods(500, message), group: group})
			p.want.held = fault{v1alpha1.ReasonInvalidSettings, strings.Repeat("x", 100_000)}
			status := p.status(&applied{})
			if size := sizeOf(t, status); size >= maxStatus {
				t.Errorf("the status takes %d bytes, want less than %d", size, maxStatus)
			}
			listed, more := len(status.DivergentPods), status.DivergentPodsOmitted
			if listed == 0 || listed > v1alpha1.MaxDivergentPods || more == nil || listed+int(*more) != 500 {
				t.Errorf("%d pods are listed and %v counted, want 500 in all", listed, more)
			}
			wantLegal(t, status)
		})
	}
}

// wantLegal checks what the schema demands of a status.
func wantLegal(t *testing.T, status v1alpha1.StreamAppStatus) {
	t.Helper()
	lines, settings, pods := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, line := range status.Lines {
		key := string(line.Pool) + "/" + line.Name
		if lines[key] || line.Name == "" || len(line.Name) > 64 {
			t.Errorf("line %q stands twice or is badly named", key)
		}
		lines[key] = true
	}
	for _, setting := range status.Settings {
		if settings[setting.Name] || setting.Name == "" || len(setting.Name) > 128 || len(setting.Value) > 64 {
			t.Errorf("setting %+v stands twice or is too long", setting)
		}
		settings[setting.Name] = true
	}
	for _, pod := range status.DivergentPods {
		if pods[pod.Name] || utf8.RuneCountInString(pod.Message) > v1alpha1.MaxText || !utf8.ValidString(pod.Message) {
			t.Errorf("pod %s stands twice, or has too long a message: %q", pod.Name, pod.Message)
		}
		pods[pod.Name] = true
	}
	for i, warning := range status.Warnings {
		if warning == "" || utf8.RuneCountInString(warning) > v1alpha1.MaxText || i > 0 && warning == status.Warnings[i-1] {
			t.Errorf("warning %q is empty, too long or stands twice", warning)
		}
	}
	for _, c := range status.Conditions {
		if len(c.Message) > 32768 || c.Reason == "" {
			t.Errorf("condition %s has reason %q and a message of %d bytes", c.Type, c.Reason, len(c.Message))
		}
	}
	if len(status.Lines) > v1alpha1.MaxLines || len(status.Settings) > v1alpha1.MaxSettings || len(status.Warnings) > v1alpha1.MaxWarnings {
		t.Errorf("%d lines, %d settings, %d warnings: too many", len(status.Lines), len(status.Settings), len(status.Warnings))
	}
}

func TestFiftyPodsThenACount(t *testing.T) {
	for _, count := range []int{1, 50, 51, 500} {
		p := passOf(t, given{workload: statefulSet(int32(count), podTemplate("4Gi")), pods: manyPods(count, ""), group: groupOf(4, 4, 4), app: streamApp()})
		status := p.status(&applied{})
		if got := len(status.DivergentPods); got != min(count, 50) {
			t.Errorf("%d of %d pods are listed, want %d", got, count, min(count, 50))
		}
		if more := status.DivergentPodsOmitted; count <= 50 && more != nil || count > 50 && (more == nil || int(*more) != count-50) {
			t.Errorf("of %d pods %v are counted, want the rest", count, more)
		}
	}
}

func TestPodsInTroubleComeFirst(t *testing.T) {
	pods := manyPods(60, "")
	pods[59] = manyPods(60, "no room")[59]
	p := passOf(t, given{workload: statefulSet(60, podTemplate("4Gi")), pods: pods, group: groupOf(4, 4, 4), app: streamApp()})
	first := p.status(&applied{}).DivergentPods[0]
	if first.Resize != v1alpha1.ResizeInfeasible || first.Message != "no room" || !strings.HasSuffix(first.Name, "0059") {
		t.Errorf("the first is %+v, want the one whose resize cannot be done", first)
	}
	refused := p.status(&applied{refused: map[string]refusal{pods[58].Name: {limit: 2048 * mib, message: "quota"}}}).DivergentPods[0]
	if refused.Resize != v1alpha1.ResizeRefused || refused.Message != "2Gi refused: quota" {
		t.Errorf("the first is %+v, want the one whose resize was refused", refused)
	}
}

func TestTruncate(t *testing.T) {
	for name, text := range map[string]string{
		"short": "short", "exact": strings.Repeat("x", 256), "long": strings.Repeat("x", 257),
		"two bytes a character": strings.Repeat("é", 300), "four bytes a character": "x" + strings.Repeat("𐍈", 300),
	} {
		t.Run(name, func(t *testing.T) {
			got := truncate(text)
			if len(got) > v1alpha1.MaxText || !utf8.ValidString(got) {
				t.Errorf("truncate gives %d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			if len(text) <= v1alpha1.MaxText && got != text || len(text) > v1alpha1.MaxText && !strings.HasSuffix(got, "...") {
				t.Errorf("truncate(%q) = %q", text, got)
			}
		})
	}
	whole := func(text string) bool {
		got := strings.TrimSuffix(truncate(text), "...")
		return !utf8.ValidString(text) || strings.HasPrefix(text, got) && utf8.ValidString(got)
	}
	if err := quick.Check(whole, nil); err != nil {
		t.Error(err)
	}
}

func TestStatusFigures(t *testing.T) {
	p := passOf(t, given{group: groupOf(4, 4, 4), app: streamApp(), workload: statefulSet(3, podTemplate("4Gi")), pods: runningPodsOf(3, "4Gi")})
	status := p.status(&applied{})
	wantNoDiff(t, "counts", []int32{3, 12, int32(p.planned.survives)}, []int32{*status.Pods, *status.Tasks, *status.PodFailuresTolerated})
	if status.Limit.String() != "4Gi" || status.RequiredLimit.Value() != p.planned.need || status.Heap.Sign() <= 0 || status.Expected.Sign() <= 0 {
		t.Errorf("limit %v, need %v, heap %v, expected %v", status.Limit, status.RequiredLimit, status.Heap, status.Expected)
	}
	if status.PlanRevision != p.want.generation || status.Mode != v1alpha1.ModeEnforce || status.ObservedGeneration != 1 {
		t.Errorf("generation %q, mode %q, observed %d", status.PlanRevision, status.Mode, status.ObservedGeneration)
	}
	if status.UnavailablePods != nil || status.PodsUnavailableSinceTime != nil || len(status.DivergentPods) > 0 {
		t.Errorf("missing %v since %v, %d differ; want none", status.UnavailablePods, status.PodsUnavailableSinceTime, len(status.DivergentPods))
	}
	wantLegal(t, status)
	for i := 1; i < len(status.Lines); i++ {
		if status.Lines[i].Bound.Cmp(*status.Lines[i-1].Bound) > 0 {
			t.Errorf("line %s is larger than the one before it", status.Lines[i].Name)
		}
	}
}

func TestStatusTellsWhoIsMissing(t *testing.T) {
	since := metav1.NewTime(testNow.Add(-10 * time.Second))
	app := streamApp(limitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) { app.Status.PodsUnavailableSinceTime = &since })
	status := passOf(t, given{app: app, group: groupOf(4, 4, 4), workload: statefulSet(3, podTemplate("1Gi")), pods: runningPodsOf(2, "1Gi")}).status(&applied{})
	if status.UnavailablePods == nil || *status.UnavailablePods != 1 || !status.PodsUnavailableSinceTime.Equal(&since) {
		t.Errorf("missing %v since %v, want 1 since %v", status.UnavailablePods, status.PodsUnavailableSinceTime, since)
	}
}

func TestStatusKeepsThePlanInForceWhileHeld(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4)})
	g.group, g.groupErr = nil, &assignment.Error{Class: assignment.ClassUnreachable}
	if got := passOf(t, g).status(&applied{}).PlanRevision; got != g.injection.Spec.PlanRevision {
		t.Errorf("generation = %q, want that of the plan in force, %q", got, g.injection.Spec.PlanRevision)
	}
}

// TestStatusIsQuiet: the same world gives the same status, and a later time alone changes nothing.
func TestStatusIsQuiet(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4), app: streamApp(), workload: statefulSet(3, podTemplate("4Gi")), pods: runningPodsOf(3, "4Gi")})
	first := passOf(t, g).status(&applied{})
	g.app.Status, g.now = first, testNow.Add(time.Hour)
	wantNoDiff(t, "status an hour later", first, passOf(t, g).status(&applied{}))
}

func TestConditionsKeepTheirTime(t *testing.T) {
	g := given{group: groupOf(4, 4, 4), app: streamApp(), workload: statefulSet(3, podTemplate("4Gi")), pods: runningPodsOf(3, "4Gi")}
	g.app.Status = passOf(t, g).status(&applied{})
	g.now, g.group = testNow.Add(time.Hour), groupOf(40, 40, 40)
	for _, c := range passOf(t, g).status(&applied{}).Conditions {
		was := testNow
		if c.Type == v1alpha1.ConditionFits || c.Type == v1alpha1.ConditionCascadeSafe || c.Type == v1alpha1.ConditionReady {
			was = g.now // it has turned
		}
		if c.Type != v1alpha1.ConditionApplied && !c.LastTransitionTime.Time.Equal(was) {
			t.Errorf("%s turned at %v, want %v", c.Type, c.LastTransitionTime, was)
		}
	}
}
