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

// sendEvents sends the events of a pass. They follow the status, so that an event only describes a stored status.
func (r *StreamAppReconciler) sendEvents(app *v1alpha1.StreamApp, events []decision.Event) {
	for _, e := range events {
		r.Recorder.Eventf(app, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
}
