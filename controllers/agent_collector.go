// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// agentCollector removes the ConfigMaps of agents, such as those of older operators, that are unneeded: no PodInjection names them and no pod
// mounts them. They have no owner, because all StreamApps of a namespace share them.
type agentCollector struct {
	*StreamAppReconciler
}

// newAgentGrace is the age from which a ConfigMap of the agent can be unneeded: the injection naming it is written after it.
const newAgentGrace = time.Minute

// setup registers the collector and its watches.
func (c *agentCollector) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("agent").
		For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(isAgent))).
		Watches(&v1alpha1.PodInjection{}, handler.EnqueueRequestsFromMapFunc(c.agentsOfInjection), builder.WithPredicates(agentChanged())).
		Complete(c)
}

// agentChanged passes PodInjections that begin or cease to name a ConfigMap.
func agentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, known := e.ObjectOld.(*v1alpha1.PodInjection)
		now, alsoKnown := e.ObjectNew.(*v1alpha1.PodInjection)
		return known && alsoKnown && before.Spec.AgentConfigMap != now.Spec.AgentConfigMap
	}}
}

// agentsOfInjection returns all agents of the namespace.
func (c *agentCollector) agentsOfInjection(ctx context.Context, injection client.Object) []reconcile.Request {
	var configMaps corev1.ConfigMapList
	if err := c.List(ctx, &configMaps, client.InNamespace(injection.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list ConfigMaps", "namespace", injection.GetNamespace())
	}
	var requests []reconcile.Request
	for i := range configMaps.Items {
		if isAgent(&configMaps.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&configMaps.Items[i])})
		}
	}
	return requests
}

// Reconcile removes one ConfigMap if it is unneeded.
func (c *agentCollector) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var configMap corev1.ConfigMap
	if err := c.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	named, err := named(ctx, c.Client, &configMap)
	if err != nil {
		return ctrl.Result{}, err
	}
	if named {
		if unneeded(&configMap) {
			return ctrl.Result{}, c.markNeeded(ctx, &configMap)
		}
		return ctrl.Result{}, nil
	}
	now := c.Clock.Now()
	if age := now.Sub(configMap.CreationTimestamp.Time); age < newAgentGrace {
		return ctrl.Result{RequeueAfter: newAgentGrace - age}, nil
	}
	again, err := c.removeUnused(ctx, &configMap, now)
	return ctrl.Result{RequeueAfter: again}, err
}

// named returns whether a PodInjection names a ConfigMap of the agent.
func named(ctx context.Context, reader client.Reader, configMap client.Object) (bool, error) {
	var injections v1alpha1.PodInjectionList
	if err := reader.List(ctx, &injections, client.InNamespace(configMap.GetNamespace())); err != nil {
		return false, fmt.Errorf("listing the PodInjections with ConfigMap %s: %w", configMap.GetName(), err)
	}
	return slices.ContainsFunc(injections.Items, func(i v1alpha1.PodInjection) bool {
		return i.Spec.AgentConfigMap == configMap.GetName()
	}), nil
}
