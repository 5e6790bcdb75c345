// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakekubelet plays the parts of a cluster that a bare API server lacks, for the tests and the demo: the
// StatefulSet, Deployment and ReplicaSet controllers, the scheduler, and the kubelets of a few nodes. It starts no
// container; it writes to the API what the real ones would write, so that admission, resizes and status behave as in a
// cluster.
//
// Like a controller it is level-triggered: on every change it lists its namespace and does the next step for each
// object. What it plays follows Kubernetes 1.37:
//
//   - pods are created through the API with the workload's controller ownerReference, so that admission runs; refused
//     creates become FailedCreate events (and the ReplicaFailure condition of a ReplicaSet);
//   - a pod is bound to the node with the fewest pods that has the memory for its request, else it stays Unschedulable;
//   - a pod whose ConfigMap is missing stays in ContainerCreating; else it runs, with
//     status.containerStatuses[].resources, which the API server wants before it takes a resize;
//   - a raise of the limit is applied; a lower limit is refused until the container restarts, as on a real node, where
//     the page cache fills whatever the limit leaves;
//   - a mounted ConfigMap is read again only when its pod changes: a real kubelet takes 18 to 85 s without that.
//
// It does not play: StatefulSet partitions, ControllerRevisions and claims, garbage collection of anything but pods and
// ReplicaSets, preemption, probes.
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

// retryAfter is the pause after a pass that met an error, for instance a conflict with another writer.
const retryAfter = 100 * time.Millisecond

// Node is a node to play.
type Node struct {
	// Name of the Node object. Nodes are not namespaced: use other names for each Cluster.
	Name string
	// Memory is the node's allocatable memory.
	Memory resource.Quantity
}

// Options configure a Cluster.
type Options struct {
	// Namespace whose workloads and pods are played.
	Namespace string
	// Nodes to create and play. None: one node "<namespace>-node" with 64Gi.
	Nodes []Node
	// PodIP gives the address of a pod by its name. Nil, or an empty answer: the next free address of 10.88.0.0/16.
	PodIP func(pod string) string
	// Log receives what a pass could not do. The zero value discards it.
	Log logr.Logger
}

// Cluster plays controllers, scheduler and kubelets for one namespace. Create it with New and run it with Start.
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

// New returns a Cluster that uses client, which needs the rights of an administrator.
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

// Start creates the nodes and plays until ctx is done. It returns an error only if it cannot begin. A manager can run
// it.
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

// watch wakes the Cluster on every change of what it plays.
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

// wake asks for a pass; a request that is waiting already serves both.
func (c *Cluster) wake() {
	select {
	case c.dirty <- struct{}{}:
	default:
	}
}

// SetReady says what the readiness probe of a pod answers from now on. Pods are ready until told otherwise.
func (c *Cluster) SetReady(pod string, ready bool) {
	c.mu.Lock()
	c.unready[pod] = !ready
	c.mu.Unlock()
	c.wake()
}

// Crash says which containers end right after their start, and wait to be started again: those of pods that start from now on.
func (c *Cluster) Crash(which func(corev1.Container) bool) {
	c.mu.Lock()
	c.crashes = which
	c.mu.Unlock()
	c.wake()
}

// KeepMounts makes the kubelet of a pod slow: it does not read the pod's ConfigMaps again when the pod is touched, until told otherwise.
func (c *Cluster) KeepMounts(pod string, keep bool) {
	c.mu.Lock()
	c.stale[pod] = keep
	c.mu.Unlock()
	c.wake()
}

// address returns the IP of a pod: the one that it has, the one that the options give, or the next free one.
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
