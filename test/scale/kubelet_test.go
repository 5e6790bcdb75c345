// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

const (
	// kubeletWorkers is the number of concurrent status updates of all kubelets.
	kubeletWorkers = 6
	// projectionRetry is the pause until a kubelet looks again for a plan that its watch has not delivered.
	projectionRetry = 50 * time.Millisecond
)

// watch follows the objects until the test ends, and simulates the kubelets.
func (f *fleet) watch() {
	f.tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.tb.Context()))
	withoutJar := func(object any) (any, error) {
		if configMap, ok := object.(*corev1.ConfigMap); ok {
			configMap.BinaryData = nil
		}
		return object, nil
	}
	var err error
	f.cache, err = cache.New(f.config, cache.Options{Scheme: f.kinds, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:       {Label: labels.SelectorFromSet(labels.Set{partOfLabel: partOf})},
		&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "streamweir"}), Transform: withoutJar},
	}})
	f.check(err)
	f.kubelets = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[client.ObjectKey]())
	ended := make(chan error, 1)
	go func() { ended <- f.cache.Start(ctx) }()
	f.tb.Cleanup(func() {
		cancel()
		f.kubelets.ShutDown()
		if err := <-ended; err != nil {
			f.tb.Error(err)
		}
	})
	observe(ctx, f, f.observePod)
	observe(ctx, f, f.observePlan)
	observe(ctx, f, f.observeStatus)
	observe(ctx, f, f.observeInjection)
	if !f.cache.WaitForCacheSync(ctx) {
		f.tb.Fatal("the harness's caches were not filled")
	}
	for range kubeletWorkers {
		go f.runKubelets(ctx)
	}
}

// observe calls a function with each new version of the objects of one kind.
func observe[T any, Object interface {
	*T
	client.Object
}](ctx context.Context, f *fleet, see func(Object)) {
	f.tb.Helper()
	informer, err := f.cache.GetInformer(ctx, Object(new(T)))
	f.check(err)
	deliver := func(object any) {
		if typed, ok := object.(Object); ok {
			see(typed)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: deliver, UpdateFunc: func(_, object any) { deliver(object) }})
	f.check(err)
}

// agentOf returns the agent of a running pod; nil without one.
func (f *fleet) agentOf(pod *corev1.Pod) *agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byIP[pod.Status.PodIP]
}

func (f *fleet) observePod(pod *corev1.Pod) {
	g := f.agentOf(pod)
	if g == nil || len(pod.Status.ContainerStatuses) == 0 {
		return
	}
	g.app.mu.Lock()
	requested := pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	if requested != g.requested {
		g.app.lastResize = time.Now()
		if g.app.firstResize.IsZero() {
			g.app.firstResize = g.app.lastResize
		}
	}
	g.requested = requested
	g.active = pod.Status.ContainerStatuses[0].Resources.Limits.Memory().Value()
	g.app.noteSettled()
	g.app.mu.Unlock()
	f.kubelets.Add(client.ObjectKeyFromObject(pod))
}

func (f *fleet) observePlan(configMap *corev1.ConfigMap) {
	revision := configMap.Data[planfile.RevisionKey]
	a := f.byKey[client.ObjectKey{Namespace: configMap.Namespace, Name: configMap.Labels["streamweir.dev/streamapp"]}]
	if a == nil || revision == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision = revision
	a.noteSettled()
}

func (f *fleet) observeStatus(app *v1alpha1.StreamApp) {
	a := f.byKey[client.ObjectKeyFromObject(app)]
	if a == nil {
		return
	}
	a.mu.Lock()
	before := a.status
	a.status = app.Status
	a.noteSettled()
	a.mu.Unlock()
	for _, condition := range app.Status.Conditions {
		was := meta.FindStatusCondition(before.Conditions, condition.Type)
		if was != nil && (was.Status != condition.Status || was.Reason != condition.Reason) {
			f.mu.Lock()
			f.moved = append(f.moved, fmt.Sprintf("%s: %s from %s (%s) to %s (%s): %s", app.Name, condition.Type, was.Status, was.Reason,
				condition.Status, condition.Reason, condition.Message))
			f.mu.Unlock()
		}
	}
}

func (f *fleet) observeInjection(injection *v1alpha1.PodInjection) {
	a := f.byKey[client.ObjectKeyFromObject(injection)]
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.injected = injection.Spec.AgentConfigMap != ""
}

// runKubelets handles pods until the queue ends.
func (f *fleet) runKubelets(ctx context.Context) {
	for {
		key, ended := f.kubelets.Get()
		if ended {
			return
		}
		if err := f.runKubelet(ctx, key); err != nil && ctx.Err() == nil {
			f.kubelets.AddRateLimited(key)
		} else {
			f.kubelets.Forget(key)
		}
		f.kubelets.Done(key)
	}
}

// runKubelet carries out the resize of a pod at once, and updates the mounted plan of a pod whose annotations name another revision.
func (f *fleet) runKubelet(ctx context.Context, key client.ObjectKey) error {
	var pod corev1.Pod
	if err := f.cache.Get(ctx, key, &pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	g := f.agentOf(&pod)
	if g == nil {
		return nil
	}
	if err := f.project(ctx, g, &pod); err != nil {
		return err
	}
	changed := false
	for i := range pod.Status.ContainerStatuses {
		spec, status := &pod.Spec.Containers[i], &pod.Status.ContainerStatuses[i] // runningStatus keeps the order
		if !equality.Semantic.DeepEqual(*status.Resources, spec.Resources) {
			status.Resources = spec.Resources.DeepCopy()
			status.AllocatedResources = spec.Resources.Requests.DeepCopy()
			changed = true
		}
	}
	if !changed {
		return nil
	}
	pod.Status.ObservedGeneration = pod.Generation
	_, err := f.pods.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, &pod, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // the watch delivers the newer version
	}
	return err
}

// project updates the mounted plan.
func (f *fleet) project(ctx context.Context, g *agent, pod *corev1.Pod) error {
	published := pod.Annotations[v1alpha1.PublishedAnnotation]
	g.app.mu.Lock()
	known := g.onDisk
	g.app.mu.Unlock()
	if published == "" || published == known {
		return nil
	}
	var plan corev1.ConfigMap
	if err := f.cache.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: planConfigMap(g.app)}, &plan); err != nil {
		return client.IgnoreNotFound(err)
	}
	revision := plan.Data[planfile.RevisionKey]
	if revision != published {
		f.kubelets.AddAfter(client.ObjectKeyFromObject(pod), projectionRetry)
	}
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	if g.onDisk != revision {
		g.onDisk = revision
		g.change()
		g.app.noteSettled()
	}
	return nil
}
