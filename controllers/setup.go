// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
	// concurrentReconciles: passes mostly await the API server. A pass that writes to thousands of pods takes up to a minute, and several of
	// them must leave workers to the other applications. More workers add no load: the writes to pods share one budget.
	concurrentReconciles = 16
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
	if err := mgr.Add(&injectionWatch{reconciler: r, to: changes}); err != nil {
		return fmt.Errorf("setting up the check of the injection policy: %w", err)
	}
	if r.Config != nil {
		if err := mgr.Add(&configForwarder{r, changes}); err != nil {
			return fmt.Errorf("setting up the changes of the configuration: %w", err)
		}
	}
	collector := agentCollector{r}
	if err := collector.setup(mgr); err != nil {
		return fmt.Errorf("setting up the removal of agents: %w", err)
	}
	streamApps, err := ctrl.NewControllerManagedBy(mgr).
		Named("streamapp").
		For(&v1alpha1.StreamApp{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})). // the operator's own status needs no pass
		Owns(&v1alpha1.PodInjection{}).
		Watches(&v1alpha1.StreamApp{}, handler.EnqueueRequestsFromMapFunc(r.appsWithTarget), builder.WithPredicates(deleted())).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.appsOfConfigMap)).
		Watches(&corev1.Pod{}, r.podHandler()).
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
	{&corev1.Pod{}, indexPodConfigMap, func(object client.Object) []string { return mountedConfigMaps(object.(*corev1.Pod)) }},
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

// configForwarder requests a pass of every StreamApp after a change of the operator's configuration.
type configForwarder struct {
	*StreamAppReconciler
	to chan<- event.TypedGenericEvent[types.NamespacedName]
}

// Start forwards until the context ends.
func (f *configForwarder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.Config.Changes():
		}
		var apps v1alpha1.StreamAppList
		if err := f.List(ctx, &apps); err != nil {
			return fmt.Errorf("listing the StreamApps: %w", err)
		}
		for _, request := range requestsFor(apps.Items) {
			select {
			case <-ctx.Done():
				return nil
			case f.to <- event.TypedGenericEvent[types.NamespacedName]{Object: request.NamespacedName}:
			}
		}
	}
}

// appsOfConfigMap returns the StreamApp of a plan, even if it is gone, or those whose injections name an agent.
func (r *StreamAppReconciler) appsOfConfigMap(ctx context.Context, object client.Object) []reconcile.Request {
	namespace := object.GetNamespace()
	if !isAgent(object) {
		if name := object.GetLabels()[labelStreamApp]; name != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
		}
		return nil
	}
	var injections v1alpha1.PodInjectionList
	if err := r.List(ctx, &injections, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Could not list PodInjections", "namespace", namespace)
	}
	var requests []reconcile.Request
	for i := range injections.Items {
		if injections.Items[i].Spec.AgentConfigMap == object.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&injections.Items[i])})
		}
	}
	return requests
}

// appsOfTarget lists the StreamApps with a target. More than one is a mistake of the user.
func (r *StreamAppReconciler) appsOfTarget(ctx context.Context, namespace string, target decision.Target) []v1alpha1.StreamApp {
	var apps v1alpha1.StreamAppList
	if err := r.List(ctx, &apps, client.InNamespace(namespace), client.MatchingFields{indexStreamAppTarget: target.String()}, anyVersion); err != nil {
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

// gatherFor is the time in which the changes of the pods of one application gather before a pass: limits raised one after the other,
// annotations, new pods. Changes with which a pod may have failed do not wait.
const gatherFor = 200 * time.Millisecond

// podHandler enqueues the StreamApp of a changed pod.
func (r *StreamAppReconciler) podHandler() handler.EventHandler {
	enqueue := func(ctx context.Context, pod client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request], after time.Duration) {
		for _, request := range r.appsOfPod(ctx, pod) {
			queue.AddAfter(request, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, queue, gatherFor)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			after := gatherFor
			if mayHaveFailed(e.ObjectOld, e.ObjectNew) {
				after = 0
			}
			enqueue(ctx, e.ObjectNew, queue, after)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, queue, 0)
		},
	}
}

// mayHaveFailed returns whether a change of a pod concerns more than its resources and annotations.
func mayHaveFailed(before, after client.Object) bool {
	was, ok := before.(*corev1.Pod)
	is, also := after.(*corev1.Pod)
	if !ok || !also {
		return true
	}
	states := func(pod *corev1.Pod) (states []corev1.ContainerState) {
		for _, container := range pod.Status.ContainerStatuses {
			states = append(states, container.State)
		}
		return states
	}
	ready := func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}
	return was.Status.Phase != is.Status.Phase || ready(was) != ready(is) ||
		!equality.Semantic.DeepEqual(was.DeletionTimestamp, is.DeletionTimestamp) || !equality.Semantic.DeepEqual(states(was), states(is))
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
	if err := r.List(ctx, &pods, client.MatchingFields{indexPodNode: object.GetName()}, anyVersion); err != nil {
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
	if err := r.List(ctx, &apps, client.InNamespace(object.GetNamespace()), anyVersion); err != nil {
		log.FromContext(ctx).Error(err, "Could not list StreamApps", "namespace", object.GetNamespace())
	}
	return requestsFor(apps.Items)
}
