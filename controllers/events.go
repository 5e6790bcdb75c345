// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// announcement is an event that waits for the status to be written.
type announcement struct {
	kind, reason, action, note string
}

// announcements are the events of a pass: what was done, and which conditions have turned. They are sent after the write, so that nobody
// is told of what was not stored.
func announcements(before, after []metav1.Condition, done *applied) []announcement {
	var events []announcement
	if done.published {
		events = append(events, announcement{corev1.EventTypeNormal, "PlanPublished", "Publish", "wrote a new plan for the pods' containers to read"})
	}
	if len(done.resized) > 0 {
		events = append(events, announcement{corev1.EventTypeNormal, "LimitRaised", "Resize", "raised the memory limit of " + strings.Join(done.resized, "; ")})
	}
	if done.removed {
		events = append(events, announcement{corev1.EventTypeNormal, "InjectionRemoved", "Remove", "new pods are no longer changed"})
	}
	for _, conditionType := range conditionOrder {
		was, is := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(after, conditionType)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason || was == nil && is.Status == metav1.ConditionTrue {
			continue
		}
		event := announcement{corev1.EventTypeNormal, is.Reason, "Judge" + conditionType, is.Message}
		if is.Status == metav1.ConditionFalse && is.Reason != v1alpha1.ReasonObserveMode && is.Reason != v1alpha1.ReasonInProgress {
			event.kind = corev1.EventTypeWarning
		}
		events = append(events, event)
	}
	return events
}

// maxNote is the most bytes of a note that the API server takes (events.k8s.io/v1, Event.note).
const maxNote = 1024

func (r *StreamAppReconciler) announce(app *v1alpha1.StreamApp, events []announcement) {
	for _, e := range events {
		r.Recorder.Eventf(app, nil, e.kind, e.reason, e.action, "%s", shorten(e.note, maxNote))
	}
}
