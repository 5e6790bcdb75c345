// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Without the injection policy, mode Enforce begins nothing and advises no restart. An application that is injected already stays protected.
func TestNothingBeginsWithoutTheInjectionPolicy(t *testing.T) {
	unavailable := func(g fixture) Decision {
		w, m := g.world(t)
		w.InjectionUnavailable = NoBindingText
		return Decide(w, m)
	}

	fresh := reported()
	d := unavailable(fresh)
	wantNoChanges(t, &d)
	status := d.status()
	for _, condition := range []string{v1alpha1.ConditionCompatible, v1alpha1.ConditionApplied, v1alpha1.ConditionReady} {
		wantReason(t, &status, condition, v1alpha1.ReasonInjectionUnavailable)
	}
	if status.Limit == nil {
		t.Error("the status has no figures")
	}

	active := fresh.after(t)
	active.reports = manyReports(100)
	d = unavailable(active)
	if d.Frozen.Found() || d.Injection == nil || d.Files == nil {
		t.Errorf("an injected application is not planned for: frozen = %+v", d.Frozen)
	}
	status = d.status()
	wantReason(t, &status, v1alpha1.ConditionCompatible, v1alpha1.ReasonInjectionUnavailable)
	wantReason(t, &status, v1alpha1.ConditionApplied, v1alpha1.ReasonInjectionUnavailable)

	w, m := fresh.world(t)
	w.InjectionUnavailable = NoBindingText
	w.App = w.App.DeepCopy()
	w.App.Spec.Mode = v1alpha1.ModeObserve
	d = Decide(w, m)
	status = d.status()
	wantReason(t, &status, v1alpha1.ConditionCompatible, v1alpha1.ReasonCompatible)
}

func wantReason(t *testing.T, status *v1alpha1.StreamAppStatus, condition, reason string) {
	t.Helper()
	found := meta.FindStatusCondition(status.Conditions, condition)
	if found == nil || found.Reason != reason {
		t.Errorf("%s is %+v, want the reason %s", condition, found, reason)
	}
}
