// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// StreamAppReconciler keeps the limits and the configuration of the pods of StreamApps as the planner wants them.
type StreamAppReconciler struct {
	client.Client
	// APIReader reads past the cache: what is written is read back, and what is deleted is looked for, at the source.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Groups    Groups
	// Reports asks the agents in the pods; nil: nobody does.
	Reports Reports
	// AgentJar is the agent that new pods get; empty: they get none.
	AgentJar []byte
	Clock    clock.PassiveClock
	// AllowBootstrapServers permits StreamApps to name brokers that are not in the operator's configuration.
	AllowBootstrapServers bool

	refusals   refusals
	topologies knownTopologies
}

// What the operator may do, verb by verb; the reasons are in the files that use the rights.
// +kubebuilder:rbac:groups=streamweir.dev,resources=streamapps,verbs=get;list;watch
// +kubebuilder:rbac:groups=streamweir.dev,resources=streamapps/status,verbs=get;patch
// +kubebuilder:rbac:groups=streamweir.dev,resources=podinjections,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes;limitranges;resourcequotas,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile gathers, decides and acts for one StreamApp: see the package comment.
func (r *StreamAppReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var app v1alpha1.StreamApp
	if err := r.Get(ctx, request.NamespacedName, &app); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		return r.reconcileGone(ctx, request)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // what belongs to it goes with it; the rest is done when it is gone
	}

	// Gather: the whole world, into one value.
	obs, err := r.observe(ctx, &app)
	if err != nil {
		return ctrl.Result{}, err
	}

	// Decide: who is lost, what the planner says, what should be there.
	lost := countLossesOf(obs)
	planned := plan(obs, lost)
	want := decide(obs, lost, planned)

	// Act: write what differs; then the status, once, whatever came of the writes; then tell.
	done, applyErr := r.apply(ctx, obs, want)
	if applyErr != nil && !apierrors.IsConflict(applyErr) {
		done.failed = applyErr
	}
	before := app.Status.Conditions
	changed, statusErr := r.writeStatus(ctx, &app, statusOf(obs, lost, planned, want, done))
	if statusErr == nil {
		recordMetrics(&app, planned.survives)
		if changed || done.published || done.removed || len(done.resized) > 0 {
			r.announce(&app, announcements(before, app.Status.Conditions, done))
		}
	}
	if err := errors.Join(applyErr, statusErr); err != nil {
		return ctrl.Result{}, err // the next pass comes by back-off, and finds by itself when to look again
	}
	return ctrl.Result{RequeueAfter: earliest(lost.recheckAfter, obs.recheckAfter(), want.recheckAfter, done.recheckAfter)}, nil
}

// reconcileGone cleans up after a StreamApp that was deleted.
func (r *StreamAppReconciler) reconcileGone(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.Groups.Forget(request.String())
	if r.Reports != nil {
		r.Reports.Forget(request.String())
	}
	r.topologies.forget(request.String())
	forgetMetrics(request.Namespace, request.Name)
	again, err := r.removeOrphan(ctx, request.NamespacedName)
	return ctrl.Result{RequeueAfter: again}, err
}

// countLossesOf counts the losses of what was observed; none where there is no workload.
func countLossesOf(obs *observation) losses {
	if obs.workload == nil {
		return losses{tolerated: 1}
	}
	var since time.Time
	if t := obs.app.Status.PodsMissingSinceTime; t != nil {
		since = t.Time
	}
	lost := countLosses(obs.pods, obs.workload.replicas, obs.workload.rollingOut, obs.app.Spec.Memory.SurvivePodLosses, since, obs.now)
	lost.joining = obs.joiningPods()
	return lost
}

// earliest is the shortest of some waits, of which zero means never.
func earliest(waits ...time.Duration) time.Duration {
	waits = slices.DeleteFunc(waits, func(wait time.Duration) bool { return wait == 0 })
	if len(waits) == 0 {
		return 0
	}
	return slices.Min(waits)
}
