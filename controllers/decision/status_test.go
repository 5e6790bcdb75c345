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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
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
	cases := map[string]struct {
		message string
		full    bool // all of MaxDivergentPods are listed
	}{
		"500 divergent pods":                  {"", true},
		"500 infeasible resizes":              {strings.Repeat("m", 5000), true},
		"messages of three bytes a character": {strings.Repeat("…", 5000), true},
		"messages of six bytes a character":   {strings.Repeat("<", 5000), false}, // JSON escapes it
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := fixture{workload: testobjects.StatefulSet(500, testobjects.PodTemplate("1Gi")), pods: manyPods(500, c.message), group: group}.decide(t)
			d.Frozen = Problem{v1alpha1.ReasonInvalidSettings, strings.Repeat("x", 100_000)}
			status := d.status()
			data, err := json.Marshal(status)
			if err != nil || len(data) >= maxStatus {
				t.Errorf("the status has %d bytes, want less than %d (error %v)", len(data), maxStatus, err)
			}
			listed, omitted := len(status.DivergentPods), deref(status.DivergentPodsOmitted)
			if listed == 0 || listed > v1alpha1.MaxDivergentPods || listed+int(omitted) != 500 || c.full != (listed == v1alpha1.MaxDivergentPods) {
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
		wholePrefix := strings.HasPrefix(text, shortened) && utf8.ValidString(shortened)
		return !utf8.ValidString(text) || (len(got) <= most && wholePrefix)
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
	wantNoDiff(t, "limits", []string{"4Gi", bytesText(d.Plan.Required)}, []string{status.Limit.String(), status.RequiredLimit.String()})
	if status.Heap.Sign() <= 0 || status.Expected.Sign() <= 0 {
		t.Errorf("heap %v, expected %v; want amounts", status.Heap, status.Expected)
	}
	if status.PlanRevision == "" || status.PlanRevision != d.Revision {
		t.Errorf("revision %q, want %q", status.PlanRevision, d.Revision)
	}
	if status.Mode != v1alpha1.ModeEnforce || status.ObservedGeneration != 1 {
		t.Errorf("mode %q, observed generation %d", status.Mode, status.ObservedGeneration)
	}
	if status.UnavailablePods != nil || status.PodsUnavailableSinceTime != nil || len(status.DivergentPods) > 0 {
		t.Errorf("%v unavailable since %v, %d divergent; want none", status.UnavailablePods, status.PodsUnavailableSinceTime, len(status.DivergentPods))
	}
	wantValidStatus(t, status)
	if !slices.IsSortedFunc(status.Lines, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) }) {
		t.Errorf("the lines are not sorted from the largest bound to the smallest: %+v", status.Lines)
	}
}

func TestStatusHasTheKnownFiguresOnly(t *testing.T) {
	addProxy := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"})
	}
	hugeHeap := container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: "-XX:MaxRAMPercentage=95"}}
	})
	observing := func(template *corev1.PodTemplateSpec) fixture {
		f := roomy()
		f.app.Spec.Mode = v1alpha1.ModeObserve
		f.workload = testobjects.StatefulSet(3, template)
		return f
	}
	conflicting := roomy()
	conflicting.conflicting = "older"
	withoutTasks := roomy()
	withoutTasks.group = nil
	small := observing(testobjects.PodTemplate("512Mi"))
	small.pods = testobjects.RunningPods(3, "512Mi")
	noLimitFits := observing(testobjects.PodTemplate("4Gi", hugeHeap))
	noLimitFits.pods = testobjects.RunningPods(3, "3Gi")
	type figures struct{ Pods, Limit, Tasks, Required, Tolerated bool }
	cases := map[string]struct {
		fixture fixture
		want    figures
	}{
		"older StreamApp with the same target": {conflicting, figures{}},
		"missing workload":                     {fixture{workload: missing{}, group: groupOf(4, 4, 4)}, figures{}},
		"ambiguous container":                  {observing(testobjects.PodTemplate("4Gi", addProxy)), figures{}},
		"no memory limit":                      {observing(testobjects.PodTemplate("")), figures{Pods: true}},
		"unknown tasks":                        {withoutTasks, figures{Pods: true, Limit: true}},
		"no limit holds the load":              {noLimitFits, figures{Pods: true, Limit: true, Tasks: true, Tolerated: true}},
		"limits that are too small":            {small, figures{Pods: true, Limit: true, Tasks: true, Required: true, Tolerated: true}},
		"large limits":                         {roomy(), figures{Pods: true, Limit: true, Tasks: true, Required: true, Tolerated: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status := c.fixture.decide(t).status()
			wantNoDiff(t, "figures", c.want, figures{
				status.Pods != nil, status.Limit != nil, status.Tasks != nil, status.RequiredLimit != nil, status.PodFailuresTolerated != nil,
			})
			if tolerated := deref(status.PodFailuresTolerated); tolerated < 0 {
				t.Errorf("%d pod failures tolerated, want 0 or more", tolerated)
			}
			for _, p := range status.DivergentPods {
				if known := p.RequiredLimit != nil; known != c.want.Required {
					t.Errorf("pod %s has the required limit %v", p.Name, p.RequiredLimit)
				}
			}
		})
	}
}

func TestPodsDivergeByTheirReports(t *testing.T) {
	settled := func(changes ...testobjects.Change[report.Report]) fixture {
		f := reported()
		f.app = testobjects.StreamApp()
		f.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi"))
		f.pods = testobjects.RunningPods(3, "4Gi", withAgent)
		return settle(t, f, changes...)
	}
	failing := settled()
	answer := failing.reports["orders-0"]
	answer.Err = &report.Error{Fault: report.Unreachable}
	answer.Since = testobjects.Now.Add(-time.Minute)
	failing.reports["orders-0"] = answer
	type entry struct {
		Bounded           v1alpha1.Boundedness
		Revision, Message string
	}
	cases := map[string]struct {
		fixture fixture
		want    *entry // of the first pod; nil if it is not listed
		bounded int32
	}{
		"bounded by the published plan": {settled(), nil, 3},
		"bounded by an older plan":      {settled(func(r *report.Report) { r.Plan.Active = "older" }), &entry{Bounded: "Active", Revision: "older"}, 3},
		"no plan active yet":            {settled(func(r *report.Report) { r.Plan.Active = "" }), nil, 3},
		"no store open yet":             {settled(func(r *report.Report) { r.Bounded = report.BoundedPending }), &entry{Bounded: "Pending"}, 0},
		"not bounded":                   {settled(func(r *report.Report) { r.Bounded = report.BoundedOff }), &entry{Bounded: "Off"}, 0},
		"unreachable":                   {unreachable(settled(), "orders-0"), &entry{Message: "the agent in the pod cannot be reached"}, 2},
		"unreachable for a minute":      {failing, nil, 3},
		"frozen pass":                   {unreachable(settled(), "orders-1"), nil, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status := c.fixture.decide(t).status()
			var got *entry
			if i := slices.IndexFunc(status.DivergentPods, func(p v1alpha1.PodStatus) bool { return p.Name == "orders-0" }); i >= 0 {
				p := status.DivergentPods[i]
				got = &entry{p.Bounded, p.PlanRevision, p.Message}
			}
			wantNoDiff(t, "pod", c.want, got)
			wantNoDiff(t, "bounded pods", c.bounded, deref(status.BoundedPods))
		})
	}
}

func TestPodDivergesByItsRequiredLimit(t *testing.T) {
	f := roomy()
	f.agent = true
	f.app = remembering(known(testImage, testDigest, v1alpha1.ImageProven, time.Hour))
	f.app.Spec.Memory = v1alpha1.MemorySpec{}
	f.pods = append(testobjects.RunningPods(2, "4Gi", withAgent), testobjects.RunningPod(2, "4Gi"))
	var got []string
	for _, p := range f.decide(t).status().DivergentPods {
		got = append(got, p.Name)
	}
	wantNoDiff(t, "divergent pods", []string{"orders-2"}, got) // it has no agent, so default RocksDB memory counts
}

func TestWarnings(t *testing.T) {
	cold := fixture{group: groupOf(40, 40, 40), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"), func(s *appsv1.StatefulSet) {
		s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	})}
	cold.group.Warnings = []string{"b of the group", "a of the group", "b of the group"}
	unknownTasks := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("300Mi"))}
	cases := map[string]struct {
		fixture fixture
		want    []string // the beginning of each warning
	}{
		"group, stores, cold start and deficit: sorted, and each once": {cold, []string{
			"a of the group", "b of the group", "stores of unknown size", "the first pod of a cold start runs all 120 tasks", "the limit of 4 GiB is too small by",
		}},
		"deficit of a bootstrap plan: no warning": {unknownTasks, []string{"native memory may be too small"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			warnings := c.fixture.decide(t).status().Warnings
			if len(warnings) != len(c.want) {
				t.Fatalf("%d warnings, want %d: %q", len(warnings), len(c.want), warnings)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(warnings[i], want) {
					t.Errorf("warning %d is %q, want %q...", i, warnings[i], want)
				}
			}
		})
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

// TestThrottledPodIsNamed: memory.high is what MemoryQoS sets, and the JVM stalls above it.
func TestThrottledPodIsNamed(t *testing.T) {
	required := reported().decide(t).Plan.Pods["orders-0"].RequiredNow
	for high, want := range map[int64]bool{0: false, required - 1: true, required: false} {
		warnings := reported(func(r *report.Report) { r.Cgroup.High = high }).decide(t).status().Warnings
		named := slices.ContainsFunc(warnings, func(w string) bool {
			return strings.HasPrefix(w, "pod orders-0: the kernel throttles its memory above ")
		})
		if named != want {
			t.Errorf("with memory.high %d and a required limit of %d the warnings are %q", high, required, warnings)
		}
	}
}
