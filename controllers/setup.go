// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

const (
	// concurrentReconciles: passes are short, and only the API server's responses take time.
	concurrentReconciles = 4
	// reconciliationTimeout ends a pass that hangs on the API server.
	reconciliationTimeout = time.Minute
)

// SetupWithManager registers the reconciler, its indexes and its watches.
func (r *StreamAppReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := setupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("setting up the cache's indexes: %w", err)
	}
	changes := make(chan event.TypedGenericEvent[types.NamespacedName])
	if err := mgr.Add(&changeForwarder{from: r.Groups.Changes, to: changes}); err != nil {
		return fmt.Errorf("setting up the changes of Kafka groups: %w", err)
	}
	if r.Reports != nil {
		if err := mgr.Add(&changeForwarder{from: r.Reports.Changes, to: changes}); err != nil {
			return fmt.Errorf("setting up the changes of reports: %w", err)
		}
	}
	streamApps, err := ctrl.NewControllerManagedBy(mgr).
		Named("streamapp").
		For(&v1alpha1.StreamApp{}). // changes of the status, too: they correct a pass that compared with a stale status from the cache
		Owns(&v1alpha1.PodInjection{}).
		Watches(&v1alpha1.StreamApp{}, handler.EnqueueRequestsFromMapFunc(r.appsWithTarget), builder.WithPredicates(deleted())).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(appOfConfigMap)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.appsOfPod)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.appsOfNode), builder.WithPredicates(nodeLostOrBack())).
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(r.appsOf(v1alpha1.KindStatefulSet))).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.appsOf(v1alpha1.KindDeployment))).
		Watches(&corev1.LimitRange{}, handler.EnqueueRequestsFromMapFunc(r.appsOfNamespace)).
		Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(r.appsOfNamespace)).
		WatchesRawSource(source.Channel(changes, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, key types.NamespacedName) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: key}}
			}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentReconciles,
			ReconciliationTimeout:   reconciliationTimeout,
			EnableWarmup:            new(true), // a standby replica has its caches filled when it takes over
		}).
		Build(r)
	if err != nil {
		return err
	}
	return r.setupAutoscalers(ctx, mgr, streamApps)
}

// setupAutoscalers has the autoscalers watched: those that the API server serves now before the first pass, others from when it does.
func (r *StreamAppReconciler) setupAutoscalers(ctx context.Context, mgr ctrl.Manager, streamApps controller.Controller) error {
	toApps := handler.EnqueueRequestsFromMapFunc(r.appsOfAutoscaler)
	r.autoscalers = &autoscalers{
		cache: mgr.GetCache(), mapper: mgr.GetRESTMapper(), interval: autoscalerLookup,
		watch: func(ctx context.Context, object *unstructured.Unstructured) error {
			if err := mgr.GetFieldIndexer().IndexField(ctx, object, indexAutoscalerTarget, autoscalerTarget); err != nil {
				return err
			}
			return streamApps.Watch(source.Kind(mgr.GetCache(), client.Object(object), toApps, specChanged()))
		},
	}
	if _, err := r.autoscalers.watchServed(ctx); err != nil {
		return fmt.Errorf("setting up the autoscalers: %w", err)
	}
	return mgr.Add(r.autoscalers)
}

// autoscalerTarget returns the kind and name of the workload on whose memory an autoscaler acts.
func autoscalerTarget(object client.Object) []string {
	autoscaler, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	target, acts := decision.AutoscalerTarget(autoscaler)
	if !acts {
		return nil
	}
	return []string{target.String()}
}

// appsOfAutoscaler returns the StreamApps of the workload on whose memory an autoscaler acts.
func (r *StreamAppReconciler) appsOfAutoscaler(ctx context.Context, object client.Object) []reconcile.Request {
	autoscaler, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	target, acts := decision.AutoscalerTarget(autoscaler)
	if !acts {
		return nil
	}
	return requestsFor(r.appsOfTarget(ctx, object.GetNamespace(), target))
}

// specChanged passes only changes of the spec. Autoscalers write their status every few seconds.
func specChanged() predicate.Predicate {
	spec := func(object client.Object) any {
		if o, ok := object.(*unstructured.Unstructured); ok {
			return o.Object["spec"]
		}
		return nil
	}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(spec(e.ObjectOld), spec(e.ObjectNew))
		},
	}
}

// index is an index of the cache: the values of a field of an object.
type index struct {
	object client.Object
	field  string
	values func(client.Object) []string
}

// indexes are all indexes.
var indexes = []index{
	{&corev1.Pod{}, indexPodWorkload, func(object client.Object) []string {
		owner, found := decision.OwnerOf(object.(*corev1.Pod))
		if !found {
			return nil
		}
		return []string{owner.String()}
	}},
	{&corev1.Pod{}, indexPodNode, func(object client.Object) []string { return nonEmpty(object.(*corev1.Pod).Spec.NodeName) }},
	{&v1alpha1.StreamApp{}, indexStreamAppTarget, func(object client.Object) []string {
		return []string{decision.TargetOf(object.(*v1alpha1.StreamApp)).String()}
	}},
}

func setupIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range indexes {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return err
		}
	}
	return nil
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// changeForwarder forwards the changes of groups or reports to the controller's queue.
type changeForwarder struct {
	from func() <-chan string
	to   chan<- event.TypedGenericEvent[types.NamespacedName]
}

// Start forwards until the context ends.
func (f *changeForwarder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case key := <-f.from():
			namespace, name, _ := strings.Cut(key, "/")
			select {
			case <-ctx.Done():
				return nil
			case f.to <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Namespace: namespace, Name: name}}:
			}
		}
	}
}

// appOfConfigMap returns the StreamApp of a plan, even if it is gone.
func appOfConfigMap(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[labelStreamApp]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// appsOfTarget lists the StreamApps with a target. More than one is a mistake of the user.
func (r *StreamAppReconciler) appsOfTarget(ctx context.Context, namespace string, target decision.Target) []v1alpha1.StreamApp {
	var apps v1alpha1.StreamAppList
	if err := r.List(ctx, &apps, client.InNamespace(namespace), client.MatchingFields{indexStreamAppTarget: target.String()}); err != nil {
		log.FromContext(ctx).Error(err, "Could not list StreamApps", "namespace", namespace, "target", target)
	}
	return apps.Items
}

func requestsFor(apps []v1alpha1.StreamApp) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(apps))
	for i := range apps {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps[i])})
	}
	return requests
}

// appsOfPod returns the StreamApp of a pod. A change of a pod is followed by a rebalance, so its group is polled more often.
func (r *StreamAppReconciler) appsOfPod(ctx context.Context, object client.Object) []reconcile.Request {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil
	}
	target, found := decision.OwnerOf(pod)
	if !found {
		return nil
	}
	apps := r.appsOfTarget(ctx, pod.Namespace, target)
	for i := range apps {
		r.Groups.Hurry(client.ObjectKeyFromObject(&apps[i]).String())
	}
	return requestsFor(apps)
}

func (r *StreamAppReconciler) appsOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.MatchingFields{indexPodNode: object.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "Could not list pods", "node", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		requests = append(requests, r.appsOfPod(ctx, &pods.Items[i])...)
	}
	return requests
}

// nodeLostOrBack passes only the changes that make a node lost, or bring it back.
func nodeLostOrBack() predicate.Predicate {
	lost := func(object client.Object) bool {
		node, ok := object.(*corev1.Node)
		return ok && decision.NodeLost(node)
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return lost(e.ObjectOld) != lost(e.ObjectNew) },
	}
}

// appsWithTarget returns the StreamApps with the target of a deleted one, which conflicted with them.
func (r *StreamAppReconciler) appsWithTarget(ctx context.Context, object client.Object) []reconcile.Request {
	app, ok := object.(*v1alpha1.StreamApp)
	if !ok {
		return nil
	}
	return requestsFor(r.appsOfTarget(ctx, app.Namespace, decision.TargetOf(app)))
}

// deleted passes only the deletion of an object.
func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

func (r *StreamAppReconciler) appsOf(kind v1alpha1.WorkloadKind) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		return requestsFor(r.appsOfTarget(ctx, object.GetNamespace(), decision.Target{Kind: kind, Name: object.GetName()}))
	}
}

func (r *StreamAppReconciler) appsOfNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	var apps v1alpha1.StreamAppList
	if err := r.List(ctx, &apps, client.InNamespace(object.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "Could not list StreamApps", "namespace", object.GetNamespace())
	}
	return requestsFor(apps.Items)
}
