// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/controllers/whatif"
)

// Resources of the API server.
var (
	streamApps     = v1alpha1.GroupVersion.WithResource("streamapps")
	podInjections  = v1alpha1.GroupVersion.WithResource("podinjections")
	statefulSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	pods           = corev1.SchemeGroupVersion.WithResource("pods")
	nodes          = corev1.SchemeGroupVersion.WithResource("nodes")
	configMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
	limitRanges    = corev1.SchemeGroupVersion.WithResource("limitranges")
	resourceQuotas = corev1.SchemeGroupVersion.WithResource("resourcequotas")
)

// cluster reads one namespace of a cluster for a user who may have fewer rights than the operator, and where the operator may not be
// installed.
type cluster struct {
	client    dynamic.Interface
	namespace string
}

// connect returns the cluster of the kubeconfig.
func (s *source) connect() (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.context}
	overrides.Context.Namespace = s.namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (or give manifests with -f): %w", err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (or give manifests with -f): %w", err)
	}
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &cluster{client: client, namespace: namespace}, nil
}

// streamApp reads one StreamApp.
func (c *cluster) streamApp(ctx context.Context, name string) (*v1alpha1.StreamApp, error) {
	found, err := c.client.Resource(streamApps).Namespace(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	object, err := typed(found)
	if err != nil {
		return nil, err
	}
	app, is := object.(*v1alpha1.StreamApp)
	if !is {
		return nil, fmt.Errorf("got a %T, want a StreamApp", object)
	}
	return app, nil
}

// streamAppsIn lists the StreamApps of the namespace, or of all namespaces if it is empty, by namespace and name.
func (c *cluster) streamAppsIn(ctx context.Context, namespace string) ([]*v1alpha1.StreamApp, error) {
	r := reader{cluster: &cluster{client: c.client, namespace: namespace}}
	r.list(ctx, streamApps, required)
	var apps []*v1alpha1.StreamApp
	for _, object := range r.objects {
		if app, is := object.(*v1alpha1.StreamApp); is {
			apps = append(apps, app)
		}
	}
	slices.SortFunc(apps, func(a, b *v1alpha1.StreamApp) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return apps, r.err
}

// streamAppNames lists the names of all StreamApps.
func (c *cluster) streamAppNames(ctx context.Context) ([]string, error) {
	list, err := c.client.Resource(streamApps).Namespace(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names, nil
}

// objects reads the objects of a StreamApp. An optional object only refines the answer: without the right to read it, it counts as absent.
func (c *cluster) objects(ctx context.Context, app *v1alpha1.StreamApp) (whatif.Objects, error) {
	r := reader{cluster: c}
	workloads := statefulSets
	if app.Spec.TargetRef.Kind == v1alpha1.KindDeployment {
		workloads = deployments
	}
	r.get(ctx, workloads, app.Spec.TargetRef.Name, required)
	r.list(ctx, pods, required)
	r.list(ctx, limitRanges, optional)
	r.list(ctx, resourceQuotas, optional)
	r.list(ctx, streamApps, optional)
	for _, kind := range decision.AutoscalerKinds {
		autoscalers, _ := meta.UnsafeGuessKindToResource(kind)
		r.list(ctx, autoscalers, optional)
	}
	r.get(ctx, podInjections, app.Name, optional)
	r.get(ctx, configMaps, decision.PlanConfigMapName(app.Name), required)
	for _, name := range r.objects.ConfigMapsToRead(app) {
		r.get(ctx, configMaps, name, required)
	}
	for _, name := range r.objects.NodesOf(app) {
		if r.get(ctx, nodes, name, optional) == absent {
			r.objects = append(r.objects, deletedNode(name))
		}
	}
	return r.objects, r.err
}

// deletedNode returns a node whose kubelet is silent. Without any node in the objects all nodes would count as healthy.
func deletedNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}},
	}
}

// requirement is whether an answer is possible without an object.
type requirement int

const (
	required requirement = iota
	optional
)

// presence is the result of reading an object.
type presence int

const (
	unknown presence = iota // not readable, or after an error
	absent
	present
)

// reader reads objects until the first error.
type reader struct {
	*cluster
	objects whatif.Objects
	err     error
}

// get reads an object. A missing object is not an error.
func (r *reader) get(ctx context.Context, resource schema.GroupVersionResource, name string, requires requirement) presence {
	if r.err != nil {
		return unknown
	}
	var client dynamic.ResourceInterface = r.client.Resource(resource)
	if resource != nodes {
		client = r.client.Resource(resource).Namespace(r.namespace)
	}
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return absent
	case requires == optional && apierrors.IsForbidden(err):
		return unknown
	case err != nil:
		r.err = fmt.Errorf("reading %s %s: %w", resource.Resource, name, err)
		return unknown
	}
	r.add(found)
	return present
}

// list reads all objects of a kind in the namespace.
func (r *reader) list(ctx context.Context, resource schema.GroupVersionResource, requires requirement) {
	if r.err != nil {
		return
	}
	list, err := r.client.Resource(resource).Namespace(r.namespace).List(ctx, metav1.ListOptions{})
	unavailable := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) // not found: the cluster does not have the kind
	switch {
	case requires == optional && unavailable:
	case err != nil:
		r.err = fmt.Errorf("reading %s: %w", resource.Resource, err)
	default:
		for i := range list.Items {
			r.add(&list.Items[i])
		}
	}
}

func (r *reader) add(found *unstructured.Unstructured) {
	object, err := typed(found)
	if err != nil {
		r.err = err
		return
	}
	r.objects = append(r.objects, object)
}

// typed converts an object to its Go type. Autoscalers have none.
func typed(found *unstructured.Unstructured) (whatif.Object, error) {
	if slices.Contains(decision.AutoscalerKinds, found.GroupVersionKind()) {
		return found, nil
	}
	object, err := scheme.New(found.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, object); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", found.GetKind(), found.GetName(), err)
	}
	converted, is := object.(whatif.Object)
	if !is {
		return nil, fmt.Errorf("%s %s is not an object", found.GetKind(), found.GetName())
	}
	return converted, nil
}
