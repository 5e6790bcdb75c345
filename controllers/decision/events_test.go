// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestEventsOf(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: conditionType, Status: status, Reason: reason, Message: "why"}}
	}
	fits := condition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)
	tooSmall := condition(v1alpha1.ConditionFits, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)
	otherReason := condition(v1alpha1.ConditionFits, metav1.ConditionFalse, "ColdStart")
	unknown := condition(v1alpha1.ConditionFits, metav1.ConditionUnknown, v1alpha1.ReasonAssignmentUnknown)
	unknownTooSmall := condition(v1alpha1.ConditionFits, metav1.ConditionUnknown, v1alpha1.ReasonInsufficientMemory)
	notReady := condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)
	notApplied := func(reason string) []metav1.Condition {
		return condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, reason)
	}
	writes := Outcome{Published: true, Resized: []string{"a", "b"}, Removed: true}
	cases := map[string]struct {
		before, after []metav1.Condition
		outcome       Outcome
		want          []string // type, reason and action
	}{
		"no condition: none":                                   {},
		"new and False: a warning":                             {nil, tooSmall, Outcome{}, []string{"Warning InsufficientMemory JudgeFits"}},
		"new and True: none":                                   {nil, fits, Outcome{}, nil},
		"unchanged: none":                                      {tooSmall, tooSmall, Outcome{}, nil},
		"from True to False: a warning":                        {fits, tooSmall, Outcome{}, []string{"Warning InsufficientMemory JudgeFits"}},
		"from False to True: a normal event":                   {tooSmall, fits, Outcome{}, []string{"Normal Fits JudgeFits"}},
		"False for another reason: a warning":                  {tooSmall, otherReason, Outcome{}, []string{"Warning ColdStart JudgeFits"}},
		"from Unknown to False for the same reason: a warning": {unknownTooSmall, tooSmall, Outcome{}, []string{"Warning InsufficientMemory JudgeFits"}},
		"from True to Unknown: a normal event":                 {fits, unknown, Outcome{}, []string{"Normal AssignmentUnknown JudgeFits"}},
		"not applied in Observe: a normal event":               {nil, notApplied(v1alpha1.ReasonObserveMode), Outcome{}, []string{"Normal ObserveMode JudgeApplied"}},
		"resize in progress: a normal event":                   {nil, notApplied(v1alpha1.ReasonInProgress), Outcome{}, []string{"Normal InProgress JudgeApplied"}},
		"Ready: none, because it repeats another one":          {nil, notReady, Outcome{}, nil},
		"writes: one normal event for each kind": {
			nil, nil, writes, []string{"Normal PlanPublished Publish", "Normal LimitRaised Resize", "Normal InjectionRemoved Remove"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range EventsOf(c.before, c.after, &c.outcome) {
				got = append(got, e.Type+" "+e.Reason+" "+e.Action)
				if e.Note == "" {
					t.Errorf("the event %+v has no note", e)
				}
			}
			wantNoDiff(t, "events", c.want, got)
		})
	}
}

func TestConditionIsAnEventOnce(t *testing.T) {
	f := fixture{group: groupOf(40, 40, 40), app: testobjects.StreamApp()}
	var before []metav1.Condition
	for pass := range 3 {
		status := f.decide(t).status()
		events := EventsOf(before, status.Conditions, &Outcome{})
		if first := pass == 0; first != (len(events) > 0) {
			t.Errorf("pass %d has %d events, want some in the first pass alone", pass, len(events))
		}
		before = status.Conditions
		f.app.Status = status
	}
}

func TestNotesAreShortenedAtWholeCharacters(t *testing.T) {
	const prefix = "raised the memory limit of "
	cases := map[string]struct{ text, want string }{
		"short text: unchanged":   {"short", prefix + "short"},
		"text that just fits":     {strings.Repeat("x", maxNote-len(prefix)), prefix + strings.Repeat("x", maxNote-len(prefix))},
		"long text: shortened":    {strings.Repeat("x", 5000), prefix + strings.Repeat("x", maxNote-len(prefix)-3) + "..."},
		"three bytes a character": {strings.Repeat("…", 5000), prefix + strings.Repeat("…", (maxNote-len(prefix)-3)/3) + "..."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := EventsOf(nil, nil, &Outcome{Resized: []string{c.text}})[0].Note
			if len(got) > maxNote || !utf8.ValidString(got) {
				t.Errorf("the note has %d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			wantNoDiff(t, "note", c.want, got)
		})
	}
}
