// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakekubelet simulates the components that a bare API server lacks, for the tests and the demo: the StatefulSet,
// Deployment and ReplicaSet controllers, the scheduler, and the kubelets of a few nodes. It starts no container; it makes
// the API writes of the real components, so that admission, resizes and status behave as in a cluster.
//
// Like a controller it is level-triggered: on every change it lists its namespace and takes the next step for each
// object. It follows Kubernetes 1.37:
//
//   - pods are created through the API with the workload's controller ownerReference, so that admission runs; refused
//     creates become FailedCreate events (and the ReplicaFailure condition of a ReplicaSet);
//   - a pod is bound to the node with the fewest pods and enough memory for its request, else it stays Unschedulable;
//   - a pod with a missing ConfigMap stays in ContainerCreating; else it runs, with status.containerStatuses[].resources,
//     which the API server requires before it accepts a resize;
//   - a raise of the limit is applied; a lower limit is refused until the container restarts, as on a real node, where
//     the page cache fills the rest of the limit;
//   - a mounted ConfigMap is read again only when its pod changes: without a change, a real kubelet takes 18 to 85 s.
//
// It does not simulate StatefulSet partitions, ControllerRevisions and claims, garbage collection of anything but pods
// and ReplicaSets, preemption, or probes.
package fakekubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// retryAfter is the pause after a pass with an error, for instance a conflict with another writer.
const retryAfter = 100 * time.Millisecond

// Node is a simulated node.
type Node struct {
	// Name of the Node object. Nodes are not namespaced: use other names for each Cluster.
	Name string
	// Memory is the node's allocatable memory.
	Memory resource.Quantity
}

// Options configure a Cluster.
type Options struct {
	// Namespace contains the simulated workloads and pods.
	Namespace string
	// Nodes to create and simulate. None: one node "<namespace>-node" with 64Gi.
	Nodes []Node
	// PodIP returns the address of a pod by its name. Nil, or an empty result: the next free address of 10.88.0.0/16.
	PodIP func(pod string) string
	// Log receives the errors of a pass. The zero value discards them.
	Log logr.Logger
}

// Cluster simulates controllers, scheduler and kubelets for one namespace. Create it with New and run it with Start.
type Cluster struct {
	client  kubernetes.Interface
	options Options
	dirty   chan struct{}

	mu      sync.Mutex
	answers map[string]Answer
	unready map[string]bool
	mounts  map[string]mount
	crashes func(corev1.Container) bool
	stale   map[string]bool
	nextIP  int
}

// New returns a Cluster that uses client, which needs the permissions of an administrator.
func New(client kubernetes.Interface, options Options) *Cluster {
	if len(options.Nodes) == 0 {
		options.Nodes = []Node{{Name: options.Namespace + "-node", Memory: resource.MustParse("64Gi")}}
	}
	return &Cluster{
		client:  client,
		options: options,
		dirty:   make(chan struct{}, 1),
		answers: map[string]Answer{},
		unready: map[string]bool{},
		mounts:  map[string]mount{},
		stale:   map[string]bool{},
		crashes: func(corev1.Container) bool { return false },
	}
}

// Start creates the nodes and runs the simulation until ctx is done. It returns an error only if it cannot begin. A
// manager can run it.
func (c *Cluster) Start(ctx context.Context) error {
	for _, node := range c.options.Nodes {
		if err := c.createNode(ctx, node); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	if err := c.watch(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.dirty:
		}
		if err := c.pass(ctx); err != nil && ctx.Err() == nil {
			c.options.Log.V(1).Info("Pass incomplete, trying again", "reason", err.Error())
			time.AfterFunc(retryAfter, c.wake)
		}
	}
}

// watch wakes the Cluster on every change of a simulated object.
func (c *Cluster) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.options.Namespace))
	wake := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.wake() },
		UpdateFunc: func(any, any) { c.wake() },
		DeleteFunc: func(any) { c.wake() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(),
		factory.Core().V1().ConfigMaps().Informer(),
		factory.Core().V1().Nodes().Informer(),
		factory.Apps().V1().StatefulSets().Informer(),
		factory.Apps().V1().Deployments().Informer(),
		factory.Apps().V1().ReplicaSets().Informer(),
	} {
		if _, err := informer.AddEventHandler(wake); err != nil {
			return fmt.Errorf("watching %s: %w", c.options.Namespace, err)
		}
	}
	factory.Start(ctx.Done())
	c.wake()
	return nil
}

// wake requests a pass; a pending request serves both.
func (c *Cluster) wake() {
	select {
	case c.dirty <- struct{}{}:
	default:
	}
}

// SetReady sets the result of the readiness probe of a pod. Pods are ready by default.
func (c *Cluster) SetReady(pod string, ready bool) {
	c.mu.Lock()
	c.unready[pod] = !ready
	c.mu.Unlock()
	c.wake()
}

// Crash selects the containers that exit right after their start and wait for a restart. It applies to pods that start after the call.
func (c *Cluster) Crash(which func(corev1.Container) bool) {
	c.mu.Lock()
	c.crashes = which
	c.mu.Unlock()
	c.wake()
}

// KeepMounts simulates a slow kubelet: while keep is set, it does not read the pod's ConfigMaps again when the pod changes.
func (c *Cluster) KeepMounts(pod string, keep bool) {
	c.mu.Lock()
	c.stale[pod] = keep
	c.mu.Unlock()
	c.wake()
}

// address returns the IP of a pod: its present one, the one from the options, or the next free one.
func (c *Cluster) address(pod *corev1.Pod) string {
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP
	}
	if c.options.PodIP != nil {
		if ip := c.options.PodIP(pod.Name); ip != "" {
			return ip
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextIP++
	return fmt.Sprintf("10.88.%d.%d", c.nextIP/250, c.nextIP%250+2)
}
