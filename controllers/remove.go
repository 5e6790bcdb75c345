// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// remove removes the objects of a StreamApp that wants none: the injection at once, so that no new pod gets the plan; the plan after
// unneededFor. If the target is missing, the injection and everything that it names stay for unneededFor.
func (r *StreamAppReconciler) remove(ctx context.Context, d *decision.Decision, outcome *decision.Outcome) error {
	if injection := d.Facts.Injection; injection != nil {
		if d.InjectionStays {
			again, err := r.removeUnneededInjection(ctx, injection, d.Facts.Now)
			outcome.RecheckAfter = again
			return err
		}
		log.FromContext(ctx).V(1).Info("Removing injection", "podInjection", injection.Name)
		if err := r.Delete(ctx, injection); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing PodInjection %s: %w", injection.Name, err)
		}
		outcome.Removed = true
	}
	if d.Facts.PlanConfigMap == nil {
		return nil
	}
	again, err := r.removeUnused(ctx, d.Facts.PlanConfigMap, d.Facts.Now)
	outcome.RecheckAfter = again
	return err
}

// removeUnneededInjection deletes the injection of a missing target after unneededFor. It returns the time after which to look
// again; 0 for never.
func (r *StreamAppReconciler) removeUnneededInjection(ctx context.Context, injection *v1alpha1.PodInjection, now time.Time) (time.Duration, error) {
	wait, err := r.unneededLeft(ctx, injection, now)
	if wait > 0 || err != nil {
		return wait, err
	}
	log.FromContext(ctx).V(1).Info("Removing injection of a missing target", "podInjection", injection.Name)
	if err := r.Delete(ctx, injection, client.Preconditions{UID: &injection.UID}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("removing PodInjection %s: %w", injection.Name, err)
	}
	return 0, nil // its deletion causes the pass that finds the plan unneeded
}

// removeOrphan removes the objects of a StreamApp that is gone. The garbage collector removes the injection as well; this is for clusters in
// which it is late.
func (r *StreamAppReconciler) removeOrphan(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	var injection v1alpha1.PodInjection
	if err := r.Get(ctx, key, &injection); client.IgnoreNotFound(err) != nil {
		return 0, err
	} else if err == nil {
		if err := r.Delete(ctx, &injection, client.Preconditions{UID: &injection.UID}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("removing PodInjection %s of a deleted StreamApp: %w", key.Name, err)
		}
	}
	var plan corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: decision.PlanConfigMapName(key.Name)}, &plan); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	return r.removeUnused(ctx, &plan, r.Clock.Now())
}
