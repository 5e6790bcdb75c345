// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestEventOf(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: conditionType, Status: status, Reason: reason, Message: "why"}}
	}
	fits := condition(v1alpha1.ConditionFits, metav1.ConditionTrue, v1alpha1.ReasonFits)
	tooSmall := condition(v1alpha1.ConditionFits, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)
	otherReason := condition(v1alpha1.ConditionFits, metav1.ConditionFalse, "ColdStart")
	unknown := condition(v1alpha1.ConditionFits, metav1.ConditionUnknown, v1alpha1.ReasonAssignmentUnknown)
	unknownAssignment := condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonReportsUnreachable)
	known := condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromReports)
	applied := condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	cascade := condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonWouldCascade)
	capped := condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonCapped)
	unknownTooSmall := condition(v1alpha1.ConditionFits, metav1.ConditionUnknown, v1alpha1.ReasonInsufficientMemory)
	notReady := condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInsufficientMemory)
	notApplied := func(reason string) []metav1.Condition {
		return condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, reason)
	}
	writes := Outcome{Published: true, Resized: []string{"a", "b"}, Removed: true}
	raised := Outcome{Resized: []string{"a"}}
	published := Outcome{Published: true}
	inProgress := notApplied(v1alpha1.ReasonInProgress)
	cases := map[string]struct {
		before, after []metav1.Condition
		outcome       Outcome
		want          string // type, reason, action and note
	}{
		"no condition: none":                                   {},
		"new and False: a warning":                             {nil, tooSmall, Outcome{}, "Warning InsufficientMemory Judge Fits: why"},
		"new and True: none":                                   {nil, fits, Outcome{}, ""},
		"unchanged: none":                                      {tooSmall, tooSmall, Outcome{}, ""},
		"from True to False: a warning":                        {fits, tooSmall, Outcome{}, "Warning InsufficientMemory Judge Fits: why"},
		"from False to True: a normal event":                   {tooSmall, fits, Outcome{}, "Normal Fits Judge Fits: why"},
		"False for another reason: a warning":                  {tooSmall, otherReason, Outcome{}, "Warning ColdStart Judge Fits: why"},
		"from Unknown to False for the same reason: a warning": {unknownTooSmall, tooSmall, Outcome{}, "Warning InsufficientMemory Judge Fits: why"},
		"from True to Unknown: a normal event":                 {fits, unknown, Outcome{}, "Normal AssignmentUnknown Judge Fits: why"},
		"not applied in Observe: a normal event":               {nil, notApplied(v1alpha1.ReasonObserveMode), Outcome{}, "Normal ObserveMode Judge Applied: why"},
		"resize in progress: none, the resize has one":         {applied, inProgress, Outcome{}, ""},
		"end of a resize: none":                                {inProgress, applied, Outcome{}, ""},
		"resize deferred: a warning":                           {inProgress, notApplied(v1alpha1.ReasonResizeDeferred), Outcome{}, "Warning ResizeDeferred Judge Applied: why"},
		"Ready: none, because it repeats another one":          {nil, notReady, Outcome{}, ""},
		"writes: one normal event": {
			nil, nil, writes, "Normal LimitRaised Resize raised the memory limit of a; b. published a new plan for the pods. new pods are no longer injected",
		},
		"tasks unknown: one warning": {
			slices.Concat(known, fits, applied), slices.Concat(unknownAssignment, unknown, notApplied(v1alpha1.ReasonAssignmentUnknown)), Outcome{},
			"Warning ReportsUnreachable Judge AssignmentKnown: why",
		},
		"tasks known again: one normal event": {
			slices.Concat(unknownAssignment, unknown, notApplied(v1alpha1.ReasonAssignmentUnknown)), slices.Concat(known, fits, applied), Outcome{},
			"Normal FromReports Judge AssignmentKnown: why",
		},
		"frozen for the reason of an earlier condition: one warning": {
			slices.Concat(fits, applied), slices.Concat(tooSmall, notApplied(v1alpha1.ReasonInsufficientMemory)), Outcome{},
			"Warning InsufficientMemory Judge Fits: why",
		},
		"two independent conditions: one warning with both": {
			slices.Concat(fits, applied), slices.Concat(tooSmall, notApplied(v1alpha1.ReasonRestartNeeded)), Outcome{},
			"Warning InsufficientMemory Judge Fits: why. Applied: why",
		},
		"limits that are being raised: one normal event": {
			slices.Concat(fits, applied), slices.Concat(tooSmall, cascade, inProgress), raised, "Normal LimitRaised Resize raised the memory limit of a",
		},
		"limits raised as far as allowed: a warning": {
			fits, slices.Concat(fits, capped), raised, "Warning Capped Judge raised the memory limit of a. CascadeSafe: why",
		},
		"published after a resize: one normal event": {
			slices.Concat(tooSmall, inProgress), slices.Concat(fits, applied), published,
			"Normal PlanPublished Publish published a new plan for the pods. Fits: why",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if e := EventOf(c.before, c.after, &c.outcome); e != nil {
				got = strings.Join([]string{e.Type, e.Reason, e.Action, e.Note}, " ")
			}
			wantNoDiff(t, "event", c.want, got)
		})
	}
}

func TestConditionIsAnEventOnce(t *testing.T) {
	f := fixture{group: groupOf(40, 40, 40), app: testobjects.StreamApp()}
	var before []metav1.Condition
	for pass := range 3 {
		status := f.decide(t).status()
		event := EventOf(before, status.Conditions, &Outcome{})
		if first := pass == 0; first != (event != nil) {
			t.Errorf("pass %d has the event %+v, want one in the first pass alone", pass, event)
		}
		before = status.Conditions
		f.app.Status = status
	}
}

func TestNotesAreShortenedAtWholeCharacters(t *testing.T) {
	const prefix = "raised the memory limit of "
	cases := map[string]struct{ text, want string }{
		"short text: unchanged":   {"short", prefix + "short"},
		"text that just fits":     {strings.Repeat("x", maxResizedNote-len(prefix)), prefix + strings.Repeat("x", maxResizedNote-len(prefix))},
		"long text: shortened":    {strings.Repeat("x", 5000), prefix + strings.Repeat("x", maxResizedNote-len(prefix)-3) + "..."},
		"three bytes a character": {strings.Repeat("…", 5000), prefix + strings.Repeat("…", (maxResizedNote-len(prefix)-3)/3) + "..."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := EventOf(nil, nil, &Outcome{Resized: []string{c.text}}).Note
			if len(got) > maxResizedNote || !utf8.ValidString(got) {
				t.Errorf("the note has %d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			wantNoDiff(t, "note", c.want, got)
		})
	}
	long := metav1.Condition{Type: v1alpha1.ConditionFits, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInsufficientMemory, Message: strings.Repeat("x", 5000)}
	if got := EventOf(nil, []metav1.Condition{long}, &Outcome{}).Note; len(got) != maxNote {
		t.Errorf("the note of a long message has %d bytes, want %d", len(got), maxNote)
	}
}
