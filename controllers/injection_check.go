// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// A person installs or removes the injection policy, so the check need not be fast: passes use a result for up to half a minute, and a change
// without a pass is noticed within a minute.
const (
	injectionCheckInterval = time.Minute
	injectionResultAge     = injectionCheckInterval / 2
)

// injectionCheck checks that the API server has the injection policy and its binding. The zero value is ready to use.
type injectionCheck struct {
	mutex   sync.Mutex
	checked time.Time
	result  string
}

// missing returns the reason for which no plan can be injected, empty if it can. If a later check fails, the
// last result stays.
func (c *injectionCheck) missing(ctx context.Context, from client.Reader, now time.Time) (string, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.checked.IsZero() && now.Sub(c.checked) < injectionResultAge {
		return c.result, nil
	}
	result, err := missingInjection(ctx, from)
	if err != nil && c.checked.IsZero() {
		return "", err
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not check the injection policy; the last result stays")
	} else {
		c.result = result
	}
	c.checked = now
	return c.result, nil
}

// missingInjection reads the policy and its binding. A policy for PodInjections is recognized by its parameters: kustomize may rename it.
func missingInjection(ctx context.Context, from client.Reader) (string, error) {
	var policies admissionregistrationv1.MutatingAdmissionPolicyList
	err := from.List(ctx, &policies)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return decision.NoPolicyAPIText, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the injection policy: %w", err)
	}
	var names []string
	for i := range policies.Items {
		if injects(&policies.Items[i]) {
			names = append(names, policies.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return decision.NoPolicyText, nil
	}
	var bindings admissionregistrationv1.MutatingAdmissionPolicyBindingList
	if err := from.List(ctx, &bindings); err != nil {
		return "", fmt.Errorf("reading the binding of the injection policy: %w", err)
	}
	bound := slices.ContainsFunc(bindings.Items, func(binding admissionregistrationv1.MutatingAdmissionPolicyBinding) bool {
		return slices.Contains(names, binding.Spec.PolicyName)
	})
	if !bound {
		return decision.NoBindingText, nil
	}
	return "", nil
}

// injects returns whether the parameters of a policy are PodInjections.
func injects(policy *admissionregistrationv1.MutatingAdmissionPolicy) bool {
	kind := policy.Spec.ParamKind
	return kind != nil && kind.APIVersion == v1alpha1.GroupVersion.String() && kind.Kind == "PodInjection"
}

// injectionWatch causes a pass of every StreamApp when the result of the check changes.
type injectionWatch struct {
	reconciler *StreamAppReconciler
	to         chan<- event.TypedGenericEvent[types.NamespacedName]
}

// Start checks until the context ends.
func (w *injectionWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(injectionCheckInterval)
	defer ticker.Stop()
	last, known := "", false
	for {
		result, err := w.reconciler.injectionPolicy.missing(ctx, w.reconciler.APIReader, w.reconciler.Clock.Now())
		changed := err == nil && known && result != last
		if err == nil {
			last, known = result, true
		}
		if changed {
			w.wakeAll(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// wakeAll causes a pass of every StreamApp.
func (w *injectionWatch) wakeAll(ctx context.Context) {
	var apps v1alpha1.StreamAppList
	if err := w.reconciler.List(ctx, &apps); err != nil {
		log.FromContext(ctx).Error(err, "Could not list StreamApps")
		return
	}
	for i := range apps.Items {
		select {
		case <-ctx.Done():
			return
		case w.to <- event.TypedGenericEvent[types.NamespacedName]{Object: client.ObjectKeyFromObject(&apps.Items[i])}:
		}
	}
}
