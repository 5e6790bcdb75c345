// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// TestHoldChangesNothing: only the status moves.
func TestHoldChangesNothing(t *testing.T) {
	active := reported().after(t)
	inMode := func(mode v1alpha1.Mode) func(*World) {
		return func(w *World) {
			w.App = w.App.DeepCopy()
			w.App.Spec.Mode = mode
		}
	}
	byOperator := func(w *World) { w.Hold = "all applications are held" }
	moreTasks := active
	moreTasks.reports = manyReports(100)
	withoutTarget := active
	withoutTarget.workload = missing{}
	failed := failedFixture(t)
	cases := map[string]struct {
		input fixture
		world []func(*World)
		held  bool
	}{
		"mode Hold":                              {active, []func(*World){inMode(v1alpha1.ModeHold)}, true},
		"mode Hold, a larger limit required":     {moreTasks, []func(*World){inMode(v1alpha1.ModeHold)}, true},
		"mode Hold, no target":                   {withoutTarget, []func(*World){inMode(v1alpha1.ModeHold)}, true},
		"mode Hold, an image failed to start":    {failed, []func(*World){inMode(v1alpha1.ModeHold)}, true},
		"mode Hold, nothing was ever applied":    {reported(), []func(*World){inMode(v1alpha1.ModeHold)}, true},
		"held by the operator":                   {moreTasks, []func(*World){byOperator}, true},
		"held by the operator, no target":        {withoutTarget, []func(*World){byOperator}, true},
		"held by the operator, Observe applied":  {active, []func(*World){byOperator, inMode(v1alpha1.ModeObserve)}, true},
		"held by the operator, Observe from now": {reported(), []func(*World){byOperator, inMode(v1alpha1.ModeObserve)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, m := c.input.world(t)
			for _, change := range c.world {
				change(&w)
			}
			d := Decide(w, m)
			wantNoChanges(t, &d)
			if held := d.Frozen.Reason == v1alpha1.ReasonHeld; held != c.held {
				t.Errorf("frozen = %+v", d.Frozen)
			}
			if c.input.workload != (missing{}) && d.status().Limit == nil {
				t.Error("the status has no figures")
			}
		})
	}
}

// TestInjectionAwaitsMissingTarget: the pods of a workload created again find the injection of the one before.
func TestInjectionAwaitsMissingTarget(t *testing.T) {
	cases := map[string]struct {
		change func(*World)
		stays  bool
	}{
		"the target is missing":                           {func(*World) {}, true},
		"nothing was injected":                            {func(w *World) { w.Injection = nil }, false},
		"mode Observe":                                    {func(w *World) { w.App.Spec.Mode = v1alpha1.ModeObserve }, false},
		"an older StreamApp with the same target":         {func(w *World) { w.ConflictingApp = "older" }, false},
		"a StreamApp of the same name for another target": {func(w *World) { w.App.Spec.TargetRef.Name = "payments" }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			active := reported().after(t)
			active.workload = missing{}
			w, m := active.world(t)
			w.App = w.App.DeepCopy()
			c.change(&w)
			d := Decide(w, m)
			if d.InjectionStays != c.stays || d.Injection != nil {
				t.Errorf("stays = %t, want %t; injection %v", d.InjectionStays, c.stays, d.Injection)
			}
		})
	}
}

// TestGrowthTakesTwoPasses: no plan is published that is too large for a pod created with the stored injection.
func TestGrowthTakesTwoPasses(t *testing.T) {
	g := reported()
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("", "8Gi"))
	g.reports = manyReports(100)
	g = g.after(t)
	before := g.injection.Spec.Memory.Limit.Value()
	g.pods = testobjects.RunningPods(3, "4Gi", withAgent) // were raised long ago
	g.reports = manyReports(200)

	first := g.decide(t)
	if first.Plan.Limit <= before {
		t.Fatalf("the limit is %s, want more than %s", bytesText(first.Plan.Limit), bytesText(before))
	}
	if first.Injection.Memory.Limit.Value() != first.Plan.Limit {
		t.Errorf("%v is injected, want %s", first.Injection.Memory.Limit, bytesText(first.Plan.Limit))
	}
	if limit := first.publishedLimit(); limit > before {
		t.Errorf("the first pass publishes a plan for %s, and the stored injection has %s", bytesText(limit), bytesText(before))
	}
	if first.RecheckAfter == 0 || first.RecheckAfter > growthRecheck {
		t.Errorf("rechecked after %s, want a second pass within %s", first.RecheckAfter, growthRecheck)
	}
	g = g.after(t)
	second := g.decide(t)
	if limit := second.publishedLimit(); limit != second.Plan.Limit {
		t.Errorf("the second pass publishes a plan for %s, want %s", bytesText(limit), bytesText(second.Plan.Limit))
	}
	third := g.after(t).decide(t)
	wantNoDiff(t, "files of the third pass", second.Files, third.Files)
}

// TestPassesAwaitSources: an application that has been planned before is not judged before its sources have answered.
func TestPassesAwaitSources(t *testing.T) {
	planned := settledFixture(t)
	planned.app.Status.ObservedGeneration = planned.app.Generation
	notRequested := planned
	notRequested.reports = nil
	failing := unreachable(settledFixture(t), "orders-1")
	withGroup := planned
	withGroup.group = groupOf(4, 4, 4)
	statusOnly := notRequested
	statusOnly.injection, statusOnly.plan = nil, nil
	later := notRequested
	later.pods = testobjects.RunningPods(3, "4Gi", withAgent, inState(runningFor(time.Millisecond)))
	unknownGroup := func(w *World) { w.Group.Latest.Group, w.Group.Latest.At = nil, time.Time{} }
	same := func(*World) {}
	cases := map[string]struct {
		input   fixture
		world   func(*World)
		tracked time.Duration
		want    time.Duration
	}{
		"all have reported":                         {planned, same, 0, 0},
		"no pod was requested":                      {notRequested, same, 0, sourcesGrace},
		"no pod was requested for a minute":         {notRequested, same, time.Minute, time.Minute},
		"no pod was requested for two minutes":      {notRequested, same, sourcesGrace, 0},
		"a pod is unreachable":                      {failing, same, time.Second, failedSourceGrace - time.Second},
		"a pod has been unreachable":                {failing, same, failedSourceGrace, 0},
		"the pods started later":                    {later, same, time.Second, 0},
		"the group was not read":                    {withGroup, unknownGroup, time.Second, sourcesGrace - time.Second},
		"the group was read":                        {withGroup, same, time.Second, 0},
		"a status of this generation, no objects":   {statusOnly, same, 0, sourcesGrace},
		"a new StreamApp":                           {reported(), func(w *World) { w.Reports = nil }, 0, 0},
		"a new StreamApp, no pod was requested yet": {reported(), func(w *World) { clear(w.Reports) }, 0, 0},
		"outside of the operator":                   {notRequested, func(w *World) { w.TrackedSince = time.Time{} }, 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := c.input.world(t)
			w.TrackedSince = w.Now.Add(-c.tracked)
			c.world(&w)
			if got := AwaitSources(w); got != c.want {
				t.Errorf("waits %s, want %s", got, c.want)
			}
		})
	}
}
