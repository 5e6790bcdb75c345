// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func conditionsWith(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "why"}}
}

func TestAnnouncements(t *testing.T) {
	fits := v1alpha1.ConditionFits
	yes, no, open := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	cases := map[string]struct {
		before, after []metav1.Condition
		done          applied
		want          []string // type and reason
	}{
		"nothing":                             {},
		"it was never good":                   {nil, conditionsWith(fits, no, "InsufficientMemory"), applied{}, []string{"Warning Shortage"}},
		"it is good from the start":           {nil, conditionsWith(fits, yes, "Fits"), applied{}, nil},
		"it stays":                            {conditionsWith(fits, no, "InsufficientMemory"), conditionsWith(fits, no, "InsufficientMemory"), applied{}, nil},
		"it turns bad":                        {conditionsWith(fits, yes, "Fits"), conditionsWith(fits, no, "InsufficientMemory"), applied{}, []string{"Warning Shortage"}},
		"it turns good":                       {conditionsWith(fits, no, "InsufficientMemory"), conditionsWith(fits, yes, "Fits"), applied{}, []string{"Normal Fits"}},
		"it is bad for another reason":        {conditionsWith(fits, no, "InsufficientMemory"), conditionsWith(fits, no, "ColdStart"), applied{}, []string{"Warning ColdStart"}},
		"it is open":                          {conditionsWith(fits, yes, "Fits"), conditionsWith(fits, open, "AssignmentUnknown"), applied{}, []string{"Normal AssignmentUnknown"}},
		"Observe is no cause for warning":     {nil, conditionsWith(v1alpha1.ConditionApplied, no, v1alpha1.ReasonObserveMode), applied{}, []string{"Normal ObserveMode"}},
		"a resize on its way is none either":  {nil, conditionsWith(v1alpha1.ConditionApplied, no, v1alpha1.ReasonInProgress), applied{}, []string{"Normal InProgress"}},
		"Ready sums up what was told already": {nil, conditionsWith(v1alpha1.ConditionReady, no, "InsufficientMemory"), applied{}, nil},
		"what was done":                       {nil, nil, applied{published: true, resized: []string{"a", "b"}, removed: true}, []string{"Normal PlanPublished", "Normal LimitRaised", "Normal InjectionRemoved"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range announcements(c.before, c.after, &c.done) {
				got = append(got, e.kind+" "+e.reason)
				if e.note == "" || e.action == "" {
					t.Errorf("the event %+v says nothing", e)
				}
			}
			wantNoDiff(t, "events", c.want, got)
		})
	}
}

// TestAnnouncedOncePerTurn plays passes over the same world: only the first tells.
func TestAnnouncedOncePerTurn(t *testing.T) {
	g := given{group: groupOf(40, 40, 40), app: streamApp()}
	var before []metav1.Condition
	for round := range 3 {
		status := passOf(t, g).status(&applied{})
		if got := len(announcements(before, status.Conditions, &applied{})); round == 0 && got == 0 || round > 0 && got > 0 {
			t.Errorf("pass %d has %d events, want some in the first alone", round, got)
		}
		before = status.Conditions
		g.app.Status = status
	}
}

func TestNotesAreCutAtWholeCharacters(t *testing.T) {
	for name, note := range map[string]string{"short": "short", "long": strings.Repeat("x", 5000), "many bytes a character": strings.Repeat("…", 5000)} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			reconciler := &StreamAppReconciler{Recorder: recorder}
			reconciler.announce(streamApp(), []announcement{{corev1.EventTypeNormal, "LimitRaised", "Resize", note}})
			got := strings.TrimPrefix(<-recorder.Events, "Normal LimitRaised ")
			if len(got) > maxNote || !utf8.ValidString(got) || len(note) <= maxNote && got != note {
				t.Errorf("the note has %d bytes, valid %v", len(got), utf8.ValidString(got))
			}
		})
	}
}
