// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/controllers/decision"
)

// autoscalerLookup is the interval between two discoveries of kinds of autoscalers that the API server did not serve before.
const autoscalerLookup = 5 * time.Minute

// autoscalers watches the autoscalers. Their kinds are optional: a kind is watched once the API server serves it.
type autoscalers struct {
	cache  client.Reader
	mapper meta.RESTMapper
	// watch has a kind watched and indexed by target.
	watch    func(ctx context.Context, object *unstructured.Unstructured) error
	interval time.Duration

	mu      sync.Mutex
	watched []schema.GroupVersionKind
}

// watchServed has the kinds watched that the API server serves by now. It returns whether these are all.
func (a *autoscalers) watchServed(ctx context.Context) (all bool, err error) {
	all = true
	for _, kind := range decision.AutoscalerKinds {
		if slices.Contains(a.kinds(), kind) {
			continue
		}
		_, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			all = false
			continue
		}
		if err != nil {
			return false, fmt.Errorf("finding the kind %s: %w", kind.Kind, err)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if err := a.watch(ctx, object); err != nil {
			return false, fmt.Errorf("watching the kind %s: %w", kind.Kind, err)
		}
		a.mu.Lock()
		a.watched = append(a.watched, kind)
		a.mu.Unlock()
	}
	return all, nil
}

// Start looks for the missing kinds until all are watched. A CRD may be installed while the operator runs.
func (a *autoscalers) Start(ctx context.Context) error {
	ticker := time.NewTicker(a.interval)
	defer ticker.Stop()
	for {
		all, err := a.watchServed(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Could not look for autoscalers")
		}
		if all {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *autoscalers) kinds() []schema.GroupVersionKind {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.watched)
}

// autoscalers reads the autoscalers that act on the target by memory.
func (r *reader) autoscalers() []unstructured.Unstructured {
	var found []unstructured.Unstructured
	if r.StreamAppReconciler.autoscalers == nil {
		return nil
	}
	for _, kind := range r.StreamAppReconciler.autoscalers.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if r.err != nil {
			return nil
		}
		err := r.StreamAppReconciler.autoscalers.cache.List(r.ctx, list, client.InNamespace(r.app.Namespace),
			client.MatchingFields{indexAutoscalerTarget: decision.TargetOf(r.app).String()})
		if err != nil {
			r.err = fmt.Errorf("reading the kind %s: %w", kind.Kind, err)
		}
		found = append(found, list.Items...)
	}
	return found
}
