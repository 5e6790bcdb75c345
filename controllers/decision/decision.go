// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Decision is the result of one pass: the changes to make, and the memory for the next pass.
type Decision struct {
	Facts Facts
	Plan  Plan

	// Frozen is the reason for which everything published stays as it is; not found if the pass may change it.
	Frozen Problem

	// Files are the content of the plan ConfigMap, Revision is their revision; nil and empty without a plan to publish.
	Files    map[string]string
	Revision string
	// ReplacedSoon is set if the stored plan stays until the limits are raised, 5 s at most: its successor is written with the memory.
	ReplacedSoon bool
	// Injection is the injection for new pods; nil without one.
	Injection *v1alpha1.PodInjectionSpec
	// InjectionStays: there is no container to plan for, but the stored injection stays until it is unneeded.
	InjectionStays bool
	// Resizes are limits to raise in place. Restarts are limits that only a restart of the pod may raise. Refused are resizes that the API
	// server refused recently.
	Resizes, Restarts []Resize
	Refused           []RefusedResize
	// Refreshes are pods to notify of the revision. NotAcknowledged are pods that were notified more than once and have not loaded it.
	Refreshes       []PodRefresh
	NotAcknowledged []string

	// Memory is the memory for the next pass.
	Memory Memory
	// RecheckAfter is the time after which the decision may change without an event; 0 if it does not.
	RecheckAfter time.Duration
}

// MemoryText returns the memory as text for [AnnotationMemory] of the plan's ConfigMap.
func (d *Decision) MemoryText() string {
	return memoryText(d.Facts.App, &d.Memory, d.Facts.PlanConfigMap)
}

// Request returns the memory request for the plan's limit; 0 if a new pod keeps that of the template.
func (d *Decision) Request() int64 {
	return requestFor(d.Facts.Container, d.Facts.App.Spec.Memory.Requests, d.Plan.Limit, d.Plan.Representative.Expected)
}
