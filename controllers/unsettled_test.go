// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// TestStatusOfAChangeIsWrittenOnce checks the passes of a change: limits are requested, the plan is published, and pods have loaded it.
func TestStatusOfAChangeIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "shop/orders"
		var u unsettled
		status := func(tasks int32) *v1alpha1.StreamAppStatus {
			return &v1alpha1.StreamAppStatus{Tasks: new(tasks), Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFits, Status: metav1.ConditionFalse}}}
		}
		if _, wait := u.add(key, true, status(6), &decision.Outcome{Resized: []string{"a"}}); wait != settleTime {
			t.Errorf("the first pass waits %v, want %v", wait, settleTime)
		}
		fits := []metav1.Condition{{Type: v1alpha1.ConditionFits, Status: metav1.ConditionTrue}}
		app := &v1alpha1.StreamApp{Status: v1alpha1.StreamAppStatus{Tasks: new(int32(3)), Conditions: fits}}
		u.recall(key, app)
		if *app.Status.Tasks != 6 || app.Status.Conditions[0].Status != metav1.ConditionTrue {
			t.Errorf("the next pass has the status %+v, want the tasks of the last pass and the stored conditions", app.Status)
		}
		<-time.After(settleTime / 2)
		if _, wait := u.add(key, true, status(6), &decision.Outcome{Published: true, Resized: []string{"b"}}); wait != settleTime/2 {
			t.Errorf("the second pass waits %v, want %v", wait, settleTime/2)
		}
		all, wait := u.add(key, false, status(6), &decision.Outcome{})
		wantNoDiff(t, "outcome of the change", decision.Outcome{Published: true, Resized: []string{"a", "b"}}, all)
		if wait != 0 {
			t.Errorf("the last pass waits %v", wait)
		}
		app.Status.Tasks = new(int32(9))
		if u.recall(key, app); *app.Status.Tasks != 9 {
			t.Errorf("after the change the status has %d tasks", *app.Status.Tasks)
		}
	})
}

func TestStatusOfALongChangeIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u unsettled
		for range 3 {
			if _, wait := u.add("shop/orders", true, &v1alpha1.StreamAppStatus{}, &decision.Outcome{}); wait != settleTime {
				t.Errorf("a pass waits %v, want %v", wait, settleTime)
			}
			<-time.After(settleTime)
			if _, wait := u.add("shop/orders", true, &v1alpha1.StreamAppStatus{}, &decision.Outcome{}); wait != 0 {
				t.Errorf("a pass after %v waits %v", settleTime, wait)
			}
		}
	})
}
