// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// StreamAppReconciler keeps the limits and the configuration of the pods of StreamApps as planned.
type StreamAppReconciler struct {
	client.Client
	// APIReader reads past the cache: written objects are read back, and deleted ones are looked up, at the source.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Groups    Groups
	// Reports is nil if no agent is polled.
	Reports Reports
	// AgentJar is the agent for new pods; empty if they get none.
	AgentJar []byte
	Clock    clock.PassiveClock
	// Config is the configuration of the operator; nil without one.
	Config Configuration
	// AllowBootstrapServers permits StreamApps to name brokers that are not in the operator's configuration.
	AllowBootstrapServers bool

	injectionPolicy injectionCheck
	volatile        volatileMemory
	podWrites       podWriteBudget
	unsettled       unsettled
	autoscalers     *autoscalers // nil before SetupWithManager
}

// The rights of the operator, verb by verb. The files using a right give its reason.
// +kubebuilder:rbac:groups=streamweir.dev,resources=streamapps,verbs=get;list;watch
// +kubebuilder:rbac:groups=streamweir.dev,resources=streamapps/status,verbs=get;patch
// +kubebuilder:rbac:groups=streamweir.dev,resources=podinjections,verbs=get;list;watch;create;patch;delete;write-plans
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes;limitranges;resourcequotas,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicies;mutatingadmissionpolicybindings,verbs=list
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list;watch
// +kubebuilder:rbac:groups=autoscaling.k8s.io,resources=verticalpodautoscalers,verbs=list;watch
// +kubebuilder:rbac:groups=keda.sh,resources=scaledobjects,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile gathers, decides and acts for one StreamApp.
func (r *StreamAppReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var app v1alpha1.StreamApp
	if err := r.Get(ctx, request.NamespacedName, &app); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		return r.reconcileGone(ctx, request)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // owned objects are deleted with it; the rest follows when it is gone
	}

	stored := app
	r.unsettled.recall(request.String(), &app)

	// Gather.
	world, err := r.gather(ctx, &app)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := decision.AwaitSources(world); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // a response of a source causes a pass earlier
	}
	memory := decision.Recall(&app, world.PlanConfigMap, world.Injection, world.Pods, r.volatile.get(request.String()))

	// Decide.
	decided := decision.Decide(world, memory)

	// Act: write the differences, then the status once, also after failed writes, then send an event.
	outcome, applyErr := r.apply(ctx, &decided)
	outcome.WriteError = utilerrors.FilterOut(applyErr, apierrors.IsConflict)
	r.volatile.set(request.String(), decided.Memory.Volatile)
	settled, statusErr := r.publishStatus(ctx, &stored, &decided, outcome)
	if err := errors.Join(applyErr, statusErr); err != nil {
		return ctrl.Result{}, err // the next pass follows with back-off and finds its own time to look again
	}
	again := decision.Earliest(decided.RecheckAfter, outcome.RecheckAfter)
	return ctrl.Result{RequeueAfter: decision.Earliest(again, settled)}, nil
}

// reconcileGone cleans up after a deleted StreamApp.
func (r *StreamAppReconciler) reconcileGone(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.Groups.Forget(request.String())
	if r.Reports != nil {
		r.Reports.Forget(request.String())
	}
	r.volatile.delete(request.String())
	r.unsettled.delete(request.String())
	deleteMetrics(request.Namespace, request.Name)
	again, err := r.removeOrphan(ctx, request.NamespacedName)
	return ctrl.Result{RequeueAfter: again}, err
}
