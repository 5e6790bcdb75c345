// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
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

// maxNote is the largest size of a note in bytes (events.k8s.io/v1, Event.note).
const maxNote = 1024

// EventsOf returns the events of a pass: its writes, and the conditions that have changed.
func EventsOf(before, after []metav1.Condition, o *Outcome) []Event {
	var events []Event
	if o.Published {
		events = append(events, Event{corev1.EventTypeNormal, "PlanPublished", "Publish", "published a new plan for the pods"})
	}
	if len(o.Resized) > 0 {
		events = append(events, Event{corev1.EventTypeNormal, "LimitRaised", "Resize", "raised the memory limit of " + strings.Join(o.Resized, "; ")})
	}
	if o.Removed {
		events = append(events, Event{corev1.EventTypeNormal, "InjectionRemoved", "Remove", "new pods are no longer injected"})
	}
	for _, conditionType := range ConditionOrder {
		was := meta.FindStatusCondition(before, conditionType)
		is := meta.FindStatusCondition(after, conditionType)
		if is != nil && changed(was, is) {
			events = append(events, Event{eventType(is), is.Reason, "Judge" + conditionType, is.Message})
		}
	}
	for i := range events {
		events[i].Note = Shorten(events[i].Note, maxNote)
	}
	return events
}

// changed returns whether a condition has a new status or reason. A new condition that is True is not an event.
func changed(was, is *metav1.Condition) bool {
	if was == nil {
		return is.Status != metav1.ConditionTrue
	}
	return was.Status != is.Status || was.Reason != is.Reason
}

func eventType(c *metav1.Condition) string {
	expected := c.Reason == v1alpha1.ReasonObserveMode || c.Reason == v1alpha1.ReasonInProgress
	if c.Status == metav1.ConditionFalse && !expected {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
