// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// publishStatus writes the status, then the metrics and an event, unless it waits for the result of a change. It returns the time after which to
// look again then. app is the StreamApp as it is stored.
func (r *StreamAppReconciler) publishStatus(ctx context.Context, app *v1alpha1.StreamApp, d *decision.Decision, o *decision.Outcome) (time.Duration, error) {
	status := decision.StatusOf(d, o)
	sameGeneration := app.Status.ObservedGeneration == app.Generation
	all, wait := r.unsettled.add(client.ObjectKeyFromObject(app).String(), sameGeneration && decision.Settling(d, o), &status, o)
	if wait > 0 {
		return wait, nil
	}
	before := app.Status.Conditions
	changed, err := r.writeStatus(ctx, app, status)
	if err != nil {
		return 0, err
	}
	recordMetrics(app, d.Plan.Tolerated)
	wrote := all.Published || all.Removed || len(all.Resized) > 0
	if changed || wrote {
		r.sendEvent(app, decision.EventOf(before, status.Conditions, &all))
	}
	return 0, nil
}

// statusTimeout bounds the write of a status.
const statusTimeout = 10 * time.Second

// forStatus returns the context for the status of a pass. A pass that ran out of time still reports. One that was ended with the operator does
// not write: another operator may lead.
func forStatus(pass context.Context) (context.Context, context.CancelFunc) {
	if errors.Is(pass.Err(), context.Canceled) {
		return context.WithCancel(pass)
	}
	return context.WithTimeout(context.WithoutCancel(pass), statusTimeout)
}

// writeStatus writes the status if it differs.
func (r *StreamAppReconciler) writeStatus(ctx context.Context, app *v1alpha1.StreamApp, status v1alpha1.StreamAppStatus) (changed bool, err error) {
	if equality.Semantic.DeepEqual(app.Status, status) {
		return false, nil
	}
	ctx, cancel := forStatus(ctx)
	defer cancel()
	updated := app.DeepCopy()
	updated.Status = status
	if err := r.Status().Patch(ctx, updated, client.MergeFrom(app), client.FieldOwner(FieldOwner)); err != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	app.Status = status
	return true, nil
}

// sendEvent sends the event of a pass, if there is one. It follows the status, so that it only describes a stored status.
func (r *StreamAppReconciler) sendEvent(app *v1alpha1.StreamApp, e *decision.Event) {
	if e != nil {
		r.Recorder.Eventf(app, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
}
