// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// manyPods are pods with names of the greatest length, 63 characters, and each with a limit of its own. With a message, their resize is
// infeasible.
func manyPods(count int, message string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range count {
		pod := testobjects.RunningPod(i, fmt.Sprint(1_200_000_001+i))
		pod.Name = fmt.Sprintf("%s-%04d", strings.Repeat("n", 58), i)
		if message != "" {
			withCondition(corev1.PodResizePending, corev1.ConditionTrue, corev1.PodReasonInfeasible, message)(pod)
		}
		pods = append(pods, pod)
	}
	return pods
}

func TestStatusStaysSmall(t *testing.T) {
	group := groupOf(4, 4, 4)
	for i := range 40 {
		group.Warnings = append(group.Warnings, fmt.Sprintf("%d: %s", i, strings.Repeat("w", 300)))
	}
	for name, message := range map[string]string{
		"500 divergent pods": "", "500 infeasible resizes": strings.Repeat("m", 5000), "messages of three bytes a character": strings.Repeat("…", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			d := fixture{workload: testobjects.StatefulSet(500, testobjects.PodTemplate("1Gi")), pods: manyPods(500, message), group: group}.decide(t)
			d.Frozen = Problem{v1alpha1.ReasonInvalidSettings, strings.Repeat("x", 100_000)}
			status := d.status()
			data, err := json.Marshal(status)
			if err != nil || len(data) >= maxStatus {
				t.Errorf("the status has %d bytes, want less than %d (error %v)", len(data), maxStatus, err)
			}
			listed, omitted := len(status.DivergentPods), deref(status.DivergentPodsOmitted)
			if listed == 0 || listed > v1alpha1.MaxDivergentPods || listed+int(omitted) != 500 {
				t.Errorf("%d pods are listed and %d omitted, want 500 in all", listed, omitted)
			}
			wantValidStatus(t, status)
		})
	}
}

// wantValidStatus checks the requirements of the schema.
func wantValidStatus(t *testing.T, status v1alpha1.StreamAppStatus) {
	t.Helper()
	names := map[string]bool{}
	wantUnique := func(kind, name string, most int) {
		key := kind + " " + name
		if names[key] || name == "" || len(name) > most {
			t.Errorf("%s is duplicate, empty or too long", key)
		}
		names[key] = true
	}
	wantText := func(kind, text string) {
		if utf8.RuneCountInString(text) > v1alpha1.MaxText || !utf8.ValidString(text) {
			t.Errorf("the text of %s is too long or invalid: %q", kind, text)
		}
	}
	for _, line := range status.Lines {
		wantUnique("line of "+string(line.Pool), line.Name, 64)
	}
	for _, setting := range status.Settings {
		wantUnique("setting", setting.Name, 128)
		if len(setting.Value) > 64 {
			t.Errorf("the value of setting %s is too long: %q", setting.Name, setting.Value)
		}
	}
	for _, pod := range status.DivergentPods {
		wantUnique("pod", pod.Name, 63)
		wantText("pod "+pod.Name, pod.Message)
	}
	for _, warning := range status.Warnings {
		wantUnique("warning", warning, 4*v1alpha1.MaxText)
		wantText("a warning", warning)
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

func TestDivergentPodsAreListedOrCounted(t *testing.T) {
	const most = v1alpha1.MaxDivergentPods
	for count, omitted := range map[int]*int32{1: nil, most: nil, most + 1: new(int32(1)), 500: new(int32(500 - most))} {
		t.Run(fmt.Sprint(count, " pods"), func(t *testing.T) {
			status := fixture{
				workload: testobjects.StatefulSet(int32(count), testobjects.PodTemplate("4Gi")), pods: manyPods(count, ""), group: groupOf(4, 4, 4),
				app: testobjects.StreamApp(),
			}.decide(t).status()
			if got := len(status.DivergentPods); got != min(count, most) {
				t.Errorf("%d pods are listed, want %d", got, min(count, most))
			}
			wantNoDiff(t, "omitted pods", omitted, status.DivergentPodsOmitted)
		})
	}
}

func TestFailedResizesAreListedFirst(t *testing.T) {
	pods := manyPods(60, "")
	pods[59] = manyPods(60, "no room")[59]
	d := fixture{
		workload: testobjects.StatefulSet(60, testobjects.PodTemplate("4Gi")), pods: pods, group: groupOf(4, 4, 4), app: testobjects.StreamApp(),
	}.decide(t)
	refused := Outcome{Refused: map[string]RefusedResize{pods[58].Name: {Limit: 2048 << 20, Message: "quota"}}}
	cases := map[string]struct {
		outcome           Outcome
		wantName, wantWhy string
		want              v1alpha1.ResizeOutcome
	}{
		"infeasible resize of the last pod": {Outcome{}, pods[59].Name, "no room", v1alpha1.ResizeInfeasible},
		"refused resize of the one before":  {refused, pods[58].Name, "2Gi refused: quota", v1alpha1.ResizeRefused},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			first := StatusOf(d, &c.outcome).DivergentPods[0]
			if first.Name != c.wantName || first.Resize != c.want || first.Message != c.wantWhy {
				t.Errorf("the first pod is %+v, want %s with %s and %q", first, c.wantName, c.want, c.wantWhy)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	most := v1alpha1.MaxText
	cases := map[string]struct{ text, want string }{
		"short":                  {"short", "short"},
		"as long as accepted":    {strings.Repeat("x", most), strings.Repeat("x", most)},
		"one byte longer":        {strings.Repeat("x", most+1), strings.Repeat("x", most-3) + "..."},
		"two bytes a character":  {strings.Repeat("é", 300), strings.Repeat("é", (most-3)/2) + "..."},
		"four bytes a character": {"x" + strings.Repeat("𐍈", 300), "x" + strings.Repeat("𐍈", (most-4)/4) + "..."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantNoDiff(t, "text", c.want, truncate(c.text))
		})
	}
	whole := func(text string) bool {
		got := truncate(text)
		shortened := strings.TrimSuffix(got, "...")
		return !utf8.ValidString(text) || len(got) <= most && strings.HasPrefix(text, shortened) && utf8.ValidString(shortened)
	}
	if err := quick.Check(whole, nil); err != nil {
		t.Error(err)
	}
}

// roomy is an application whose pods have as much memory as they require.
func roomy() fixture {
	return fixture{
		group: groupOf(4, 4, 4), app: testobjects.StreamApp(), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi")),
		pods: testobjects.RunningPods(3, "4Gi"),
	}
}

func TestStatusFigures(t *testing.T) {
	d := roomy().decide(t)
	status := d.status()
	wantNoDiff(t, "counts", []int32{3, 12, int32(d.Plan.Tolerated)}, []int32{*status.Pods, *status.Tasks, *status.PodFailuresTolerated})
	if status.Limit.String() != "4Gi" || status.RequiredLimit.Value() != d.Plan.Required || status.Heap.Sign() <= 0 || status.Expected.Sign() <= 0 {
		t.Errorf("limit %v, required limit %v, heap %v, expected %v", status.Limit, status.RequiredLimit, status.Heap, status.Expected)
	}
	if status.PlanRevision == "" || status.PlanRevision != d.Revision || status.Mode != v1alpha1.ModeEnforce || status.ObservedGeneration != 1 {
		t.Errorf("revision %q, mode %q, observed generation %d", status.PlanRevision, status.Mode, status.ObservedGeneration)
	}
	if status.UnavailablePods != nil || status.PodsUnavailableSinceTime != nil || len(status.DivergentPods) > 0 {
		t.Errorf("%v unavailable since %v, %d divergent; want none", status.UnavailablePods, status.PodsUnavailableSinceTime, len(status.DivergentPods))
	}
	wantValidStatus(t, status)
	if !slices.IsSortedFunc(status.Lines, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) }) {
		t.Errorf("the lines are not sorted from the largest bound to the smallest: %+v", status.Lines)
	}
}

func TestStatusCountsUnavailablePods(t *testing.T) {
	since := metav1.NewTime(testobjects.Now.Add(-10 * time.Second))
	app := testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"))
	app.Status.PodsUnavailableSinceTime = &since
	f := fixture{app: app, group: groupOf(4, 4, 4), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi")), pods: testobjects.RunningPods(2, "1Gi")}
	status := f.decide(t).status()
	if deref(status.UnavailablePods) != 1 || !status.PodsUnavailableSinceTime.Equal(&since) {
		t.Errorf("%v unavailable since %v, want 1 since %v", status.UnavailablePods, status.PodsUnavailableSinceTime, since)
	}
}

func TestStatusKeepsTheActiveRevisionWhileFrozen(t *testing.T) {
	f := fixture{group: groupOf(4, 4, 4)}.after(t)
	f.group = nil
	f.groupErr = &assignment.Error{Class: assignment.ClassUnreachable}
	d := f.decide(t)
	if got := d.status().PlanRevision; !d.Frozen.Found() || got != f.injection.Spec.PlanRevision {
		t.Errorf("frozen %v, revision %q; want a frozen pass and the active revision %q", d.Frozen, got, f.injection.Spec.PlanRevision)
	}
}

func TestStatusDoesNotChangeWithTimeAlone(t *testing.T) {
	f := roomy().after(t)
	first := f.decide(t).status()
	f.app.Status = first
	f.now = testobjects.Now.Add(time.Hour)
	wantNoDiff(t, "status an hour later", first, f.decide(t).status())
}

func TestConditionsKeepTheirTransitionTime(t *testing.T) {
	f := roomy()
	f.app.Status = f.decide(t).status()
	f.now = testobjects.Now.Add(time.Hour)
	f.group = groupOf(40, 40, 40)
	want := map[string]time.Time{
		v1alpha1.ConditionReady: f.now, v1alpha1.ConditionFits: f.now, v1alpha1.ConditionCascadeSafe: f.now,
		v1alpha1.ConditionCompatible: testobjects.Now, v1alpha1.ConditionAssignmentKnown: testobjects.Now,
	}
	got := map[string]time.Time{}
	for _, c := range f.decide(t).status().Conditions {
		if c.Type != v1alpha1.ConditionApplied {
			got[c.Type] = c.LastTransitionTime.Time
		}
	}
	wantNoDiff(t, "transition times", want, got)
}
