// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// writers is the number of concurrent writes of the harness.
const writers = 12

// startedAgo is the age of the pods: the startup window is over.
const startedAgo = 5 * time.Minute

// inParallel calls do for each index below n, and ends the test after the first error.
func (c *cluster) inParallel(n int, do func(i int) error) {
	c.tb.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for range writers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		c.tb.Fatal(*err)
	}
}

func (f *fleet) createNodes() {
	nodes := f.pods.CoreV1().Nodes()
	f.inParallel(f.nodes, func(i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{corev1.LabelHostname: nodeName(i)}}}
		created, err := nodes.Create(f.tb.Context(), node, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Status = nodeStatus()
		_, err = nodes.UpdateStatus(f.tb.Context(), created, metav1.UpdateOptions{})
		return err
	})
}

// createNamespace creates a namespace.
func (c *cluster) createNamespace(name string) {
	c.tb.Helper()
	c.check(c.admin.Create(c.tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// createApplications creates StatefulSets, as settled ones, and StreamApps.
func (f *fleet) createApplications() {
	for i := 0; i < len(f.applications); i += appsPerNamespace {
		f.createNamespace(f.applications[i].namespace)
	}
	f.inParallel(len(f.applications), func(i int) error {
		a := f.applications[i]
		sets := f.pods.AppsV1().StatefulSets(a.namespace)
		set, err := sets.Create(f.tb.Context(), statefulSet(a), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		set.Status = settledStatus(set)
		if _, err := sets.UpdateStatus(f.tb.Context(), set, metav1.UpdateOptions{}); err != nil {
			return err
		}
		return f.admin.Create(f.tb.Context(), streamApp(a))
	})
}

// createPods creates the pods of all applications as the StatefulSet controller does, with a node, and has them run. Each must be injected.
func (f *fleet) createPods() {
	f.tb.Helper()
	var agents []*agent
	for _, a := range f.applications {
		for ordinal := range a.pods {
			agents = append(agents, &agent{app: a, ordinal: ordinal})
		}
	}
	f.inParallel(len(agents), func(i int) error { return f.createPod(agents[i], i) })
}

// createPod creates a pod. Its number gives its address and its node.
func (f *fleet) createPod(g *agent, number int) error {
	a := g.app
	var set appsv1.StatefulSet
	if err := f.admin.Get(f.tb.Context(), a.key(), &set); err != nil {
		return err
	}
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = a.namespace
	pod.Name = fmt.Sprintf("%s-%d", a.name, g.ordinal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = set.Status.UpdateRevision
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.NodeName = nodeName(number * 7919 % f.nodes)
	pods := f.pods.CoreV1().Pods(a.namespace)
	created, err := pods.Create(f.tb.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if created.Annotations[v1alpha1.PlanAnnotation] == "" {
		return fmt.Errorf("pod %s was not injected", pod.Name)
	}
	if err := f.startAgent(g, created, number); err != nil {
		return err
	}
	created.Status = runningStatus(created, podIP(number), g.started)
	created.ResourceVersion = "" // like a kubelet's patch: the operator may have written meanwhile
	_, err = pods.UpdateStatus(f.tb.Context(), created, metav1.UpdateOptions{})
	return err
}

// startAgent has the agent of a pod respond, with the plan as it is mounted now.
func (f *fleet) startAgent(g *agent, pod *corev1.Pod, number int) error {
	files, err := f.mountedPlan(g.app)
	if err != nil {
		return err
	}
	plan, err := planfile.Parse(files)
	if err != nil {
		return err
	}
	g.uid = pod.UID
	g.started = time.Now().Add(-startedAgo).Truncate(time.Second)
	g.seq = g.started.UnixMilli()
	g.changes = make(chan struct{})
	g.onDisk = files[planfile.RevisionKey]
	g.token = planfile.Token(files)
	g.heap = plan.Heap
	g.requested = pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	g.active = g.requested
	g.app.mu.Lock()
	g.app.agents = append(g.app.agents, g)
	g.app.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byIP[podIP(number)] = g
	return nil
}

// mountedPlan returns the files of the plan ConfigMap.
func (f *fleet) mountedPlan(a *application) (map[string]string, error) {
	var plan corev1.ConfigMap
	err := f.admin.Get(f.tb.Context(), client.ObjectKey{Namespace: a.namespace, Name: planConfigMap(a)}, &plan)
	return plan.Data, err
}

func planConfigMap(a *application) string { return v1alpha1.PlanConfigMapPrefix + a.name }

// podIP returns the address of a pod in 127.0.0.0/8.
func podIP(number int) string {
	return fmt.Sprintf("127.%d.%d.%d", 10+number/50000, number/200%250+1, number%200+1)
}

// createForeignPods creates running pods that no StreamApp is for.
func (f *fleet) createForeignPods(n int) {
	f.tb.Helper()
	const namespaces = 10
	for i := range namespaces {
		f.createNamespace(fmt.Sprintf("other-%d", i))
	}
	f.inParallel(n, func(i int) error {
		workload := fmt.Sprintf("web-%d-5d4f8c7b9", i/5)
		template := podTemplate(workload, "other")
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Namespace = fmt.Sprintf("other-%d", i%namespaces)
		pod.Name = fmt.Sprintf("%s-%d", workload, i)
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "5d4f8c7b9"
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload, UID: "11111111-2222-3333-4444-555555555555", Controller: new(true),
		}}
		pod.Spec.NodeName = nodeName(i % f.nodes)
		pods := f.pods.CoreV1().Pods(pod.Namespace)
		created, err := pods.Create(f.tb.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		ip := fmt.Sprintf("10.99.%d.%d", i/250, i%250+1)
		created.Status = runningStatus(created, ip, time.Now().Add(-startedAgo).Truncate(time.Second))
		_, err = pods.UpdateStatus(f.tb.Context(), created, metav1.UpdateOptions{})
		return err
	})
}
