// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Event is an event to be sent after the status was written.
type Event struct {
	Type, Reason, Action, Note string
}

const (
	// actionJudge is the action of an event that only describes conditions.
	actionJudge = "Judge"
	// maxNote is the largest size of a note in bytes (events.k8s.io/v1, Event.note).
	maxNote = 1024
	// maxResizedNote leaves room for conditions after a long list of pods.
	maxResizedNote = maxNote / 2
)

// EventOf returns the one event of a pass: its writes, and the conditions that have changed; nil if there are none. Each event is a write to
// the API server, so conditions share it, and a condition that only follows another one, or a write of this pass, is left out.
func EventOf(before, after []metav1.Condition, o *Outcome) *Event {
	event := writesEvent(o)
	notes := nonEmpty(event.Note)
	for _, conditionType := range ConditionOrder {
		was := meta.FindStatusCondition(before, conditionType)
		is := meta.FindStatusCondition(after, conditionType)
		if is == nil || !changed(was, is) {
			continue
		}
		recovered := is.Status == metav1.ConditionTrue && follows(before, was, nil)
		if recovered || follows(after, is, o) {
			continue
		}
		notes = append(notes, conditionType+": "+is.Message)
		switch {
		case isWarning(is) && event.Type != corev1.EventTypeWarning: // a warning names the event
			event = Event{Type: corev1.EventTypeWarning, Reason: is.Reason, Action: actionJudge}
		case event.Reason == "":
			event = Event{Type: corev1.EventTypeNormal, Reason: is.Reason, Action: actionJudge}
		}
	}
	if len(notes) == 0 {
		return nil
	}
	event.Note = Shorten(strings.Join(notes, ". "), maxNote)
	return &event
}

// writesEvent returns the event of the writes alone; empty without one.
func writesEvent(o *Outcome) Event {
	var notes []string
	var event Event
	note := func(reason, action, text string) {
		event.Type = corev1.EventTypeNormal
		event.Reason = cmp.Or(event.Reason, reason)
		event.Action = cmp.Or(event.Action, action)
		notes = append(notes, text)
	}
	if len(o.Resized) > 0 {
		note("LimitRaised", "Resize", Shorten("raised the memory limit of "+strings.Join(o.Resized, "; "), maxResizedNote))
	}
	if o.Published {
		note("PlanPublished", "Publish", "published a new plan for the pods")
	}
	if o.Removed {
		note("InjectionRemoved", "Remove", "new pods are no longer injected")
	}
	event.Note = strings.Join(notes, ". ")
	return event
}

// changed returns whether a condition has a new status or reason. A new condition that is True is not an event.
func changed(was, is *metav1.Condition) bool {
	if was == nil {
		return is.Status != metav1.ConditionTrue
	}
	return was.Status != is.Status || was.Reason != is.Reason
}

// follows returns whether a condition that is not True only follows an earlier one in ConditionOrder, or a resize. o is the outcome of the
// pass; nil if it is not known.
func follows(conditions []metav1.Condition, c *metav1.Condition, o *Outcome) bool {
	if c == nil || c.Status == metav1.ConditionTrue {
		return false
	}
	raised := o != nil && len(o.Resized) > 0
	switch c.Reason {
	case v1alpha1.ReasonInProgress:
		return true // the event of the resize came first
	case v1alpha1.ReasonInsufficientMemory, v1alpha1.ReasonWouldCascade:
		if raised { // it judges the limits before they were raised
			return true
		}
	}
	for _, conditionType := range ConditionOrder {
		earlier := meta.FindStatusCondition(conditions, conditionType)
		if conditionType == c.Type {
			return false
		}
		if earlier == nil || earlier.Status == metav1.ConditionTrue {
			continue
		}
		tasksUnknown := conditionType == v1alpha1.ConditionAssignmentKnown && c.Reason == v1alpha1.ReasonAssignmentUnknown
		notPlannable := conditionType == v1alpha1.ConditionCompatible && c.Reason == v1alpha1.ReasonNotObserved
		if tasksUnknown || notPlannable || earlier.Reason == c.Reason {
			return true
		}
	}
	return false
}

func isWarning(c *metav1.Condition) bool {
	return c.Status == metav1.ConditionFalse && c.Reason != v1alpha1.ReasonObserveMode && c.Reason != v1alpha1.ReasonInProgress
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
