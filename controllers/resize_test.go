// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

// tasksGroup returns a group whose three processes run this number of tasks each, in the pods of [testobjects.RunningPods].
func tasksGroup(tasks int32) *assignment.Group {
	group := &assignment.Group{
		ApplicationID: testobjects.App, Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true, Brokers: 3, VersionHint: "4.4",
		Subtopologies: []assignment.Subtopology{{
			ID: "0", Tasks: 3 * tasks, Changelogs: []assignment.Changelog{{Store: "totals", Partitions: 3 * tasks, Kind: assignment.KeyValue}},
		}},
	}
	for i := range int32(3) {
		process := assignment.Process{ID: fmt.Sprintf("process-%d", i), Host: fmt.Sprintf("10.0.0.%d", i+1), Threads: 1}
		for task := range tasks {
			process.Tasks.Active = append(process.Tasks.Active, assignment.Task{Subtopology: "0", Partition: i*tasks + task})
		}
		group.Processes = append(group.Processes, process)
	}
	return group
}

// worldWithSmallLimits returns a World whose three pods have limits of 1Gi and require more.
func worldWithSmallLimits() decision.World {
	world := decision.World{
		Now: testobjects.Now, App: testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "64Gi")),
		StatefulSet: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi")),
		Group: decision.GroupSource{
			Ref:    assignment.Ref{Cluster: "prod", ApplicationID: testobjects.App},
			Latest: assignment.Observation{Group: tasksGroup(8), At: testobjects.Now},
		},
	}
	for _, pod := range testobjects.RunningPods(3, "1Gi") {
		world.Pods = append(world.Pods, *pod)
	}
	return world
}

// pass decides and applies as Reconcile does. It returns the pods whose resize was requested, and the outcome.
func pass(t *testing.T, r *StreamAppReconciler, world decision.World) (requested []string, outcome *decision.Outcome) {
	t.Helper()
	d := decision.Decide(world, decision.Recall(world.App, world.PlanConfigMap, world.Injection, world.Pods, r.volatile.get(testobjects.App)))
	for _, resize := range d.Resizes {
		requested = append(requested, resize.Pod)
	}
	if d.Injection != nil {
		markWritten(&d)
	}
	outcome, err := r.apply(t.Context(), &d)
	if err != nil {
		t.Fatal(err)
	}
	r.volatile.set(testobjects.App, d.Memory.Volatile)
	return requested, outcome
}

func TestRefusedResizeIsRequestedAgainOnlyWhenThatMayHelp(t *testing.T) {
	all := []string{"orders-0", "orders-1", "orders-2"}
	tests := map[string]struct {
		after  time.Duration
		change func(*StreamAppReconciler, *decision.World)
		// wantRequested are the pods whose resize is requested in the second pass, wantRefused those whose refusal is known after it.
		wantRequested, wantRefused []string
		wantRecheck                time.Duration
	}{
		"at once":                {wantRefused: all, wantRecheck: decision.RefusalRetry},
		"after a minute":         {after: time.Minute, wantRefused: all, wantRecheck: decision.RefusalRetry - time.Minute},
		"just before the retry":  {after: decision.RefusalRetry - time.Millisecond, wantRefused: all, wantRecheck: time.Second},
		"at the time of a retry": {after: decision.RefusalRetry, wantRequested: all},
		"with another limit": {
			change:        func(_ *StreamAppReconciler, w *decision.World) { w.Group.Latest.Group = tasksGroup(10) },
			wantRequested: all,
		},
		"for a new pod of the same name": {
			change:        func(_ *StreamAppReconciler, w *decision.World) { w.Pods[1].UID = "new" },
			wantRequested: []string{"orders-1"}, wantRefused: []string{"orders-0", "orders-2"}, wantRecheck: decision.RefusalRetry,
		},
		"after a restart of the operator": {
			change:        func(r *StreamAppReconciler, _ *decision.World) { r.volatile.delete(testobjects.App) },
			wantRequested: all,
		},
		"in a pass that changes nothing": {
			after: time.Minute,
			change: func(_ *StreamAppReconciler, w *decision.World) {
				w.Group.Latest = assignment.Observation{Err: &assignment.Error{Class: assignment.ClassTimeout}, At: testobjects.Now}
				w.Injection = &v1alpha1.PodInjection{}
			},
			wantRefused: all, wantRecheck: decision.RefusalRetry - time.Minute,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "orders", errors.New("exceeded quota: team"))
			writes := &podWrites{resizeErrors: map[string]error{"orders-0": quota, "orders-1": quota, "orders-2": quota}}
			r := writes.reconciler()
			world := worldWithSmallLimits()
			requested, outcome := pass(t, r, world)
			wantNoDiff(t, "requested resizes", all, requested)
			wantNoDiff(t, "refused resizes", all, refusedPods(outcome))
			if refused := outcome.Refused["orders-0"]; refused.Message != "exceeded quota: team" || refused.Limit <= 1<<30 || !refused.At.Equal(testobjects.Now) {
				t.Errorf("refused = %+v, want the quota's message, the requested limit and the time of the pass", refused)
			}

			writes.resizeErrors = nil
			world.Now = testobjects.Now.Add(test.after)
			if test.change != nil {
				test.change(r, &world)
			}
			requested, outcome = pass(t, r, world)
			wantNoDiff(t, "requested resizes of the second pass", test.wantRequested, requested)
			wantNoDiff(t, "refused resizes of the second pass", test.wantRefused, refusedPods(outcome))
			wantNoDiff(t, "resized pods", test.wantRequested, writes.resized)
			if outcome.RecheckAfter != test.wantRecheck {
				t.Errorf("RecheckAfter = %v, want %v", outcome.RecheckAfter, test.wantRecheck)
			}
		})
	}
}

func TestOldRefusalsAreForgotten(t *testing.T) {
	refusal := apierrors.NewBadRequest("refused")
	writes := &podWrites{resizeErrors: map[string]error{"orders-0": refusal, "orders-1": refusal}}
	r := writes.reconciler()
	world := worldWithSmallLimits()
	pass(t, r, world)
	writes.resizeErrors = map[string]error{"orders-0": refusal}
	world.Now = testobjects.Now.Add(decision.RefusalRetry)
	pass(t, r, world)
	remembered := slices.Collect(maps.Keys(r.volatile.get(testobjects.App).RefusedResizes))
	wantNoDiff(t, "remembered refusals", []types.UID{"orders-0-uid"}, remembered)
}

// refusedPods returns the pods whose refusal is in the outcome, sorted.
func refusedPods(outcome *decision.Outcome) []string {
	return slices.Sorted(maps.Keys(outcome.Refused))
}

// Several pods share a message, so it names no pod.
func TestRefusalMessageNamesNoPod(t *testing.T) {
	kind := schema.GroupKind{Kind: "Pod"}
	cause := field.Invalid(field.NewPath("spec"), "x", "Pod QOS Class may not change as a result of resizing")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "orders-0", errors.New("exceeded quota: team"))
	tests := map[string]struct {
		err  error
		want string
	}{
		"invalid":                     {apierrors.NewInvalid(kind, "orders-0", field.ErrorList{cause}), `Invalid value: "x": Pod QOS Class may not change as a result of resizing`},
		"bad request":                 {apierrors.NewBadRequest("no"), "no"},
		"error of another source":     {errors.New("no"), "no"},
		"forbidden":                   {forbidden, "exceeded quota: team"},
		"forbidden, in another error": {fmt.Errorf("resizing: %w", forbidden), "exceeded quota: team"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := refusalMessage(test.err); got != test.want {
				t.Errorf("refusalMessage = %q, want %q", got, test.want)
			}
		})
	}
}
