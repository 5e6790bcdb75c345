// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testcluster runs the operator for end-to-end tests: on a real API server with config/default applied, with exactly the
// permissions of config/default, and with simulated nodes and workload controllers. Each test has a namespace and an operator of its own.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers"
	"streamweir.dev/streamweir/internal/envtestutil"
	"streamweir.dev/streamweir/internal/fakekubelet"
)

// environment is the control plane that Main starts; all tests of a package share it.
var environment *envtestutil.Environment

// nodeMemory is the allocatable memory of each node.
var nodeMemory = resource.MustParse("64Gi")

// Main starts a control plane, applies config/default to it, runs the tests of a package and exits. Call it from TestMain.
func Main(m *testing.M) {
	log.SetLogger(logr.Discard()) // errors of the operator appear in the status
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if environment, err = envtestutil.StartShipped(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	return m.Run(), nil
}

// Options configure the operator of a Cluster.
type Options struct {
	// Clusters are the Kafka clusters of the operator's cluster file.
	Clusters []assignment.ClusterConfig
	// AgentJar is the agent that the operator injects. Without it, the operator neither injects an agent nor reads reports.
	AgentJar []byte
}

// Cluster is a namespace with an operator of its own.
type Cluster struct {
	// Namespace contains the objects of the test.
	Namespace string
	// Admin is a client with all permissions.
	Admin client.WithWatch
	// Kubelet simulates nodes and workload controllers; nil before StartNodes.
	Kubelet *fakekubelet.Cluster

	tb testing.TB
}

// New creates the namespace and runs an operator until the test ends.
func New(tb testing.TB, namespace string, options Options) *Cluster {
	tb.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		tb.Fatal(err)
	}
	admin, err := client.NewWithWatch(environment.Config, client.Options{Scheme: kinds})
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{Namespace: namespace, Admin: admin, tb: tb}
	c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	c.startOperator(kinds, options)
	return c
}

// startOperator runs the reconciler as main.go does.
func (c *Cluster) startOperator(kinds *runtime.Scheme, options Options) {
	c.tb.Helper()
	mgr, err := ctrl.NewManager(environment.Operator(), ctrl.Options{
		Scheme: kinds, Cache: controllers.CacheOptions(), Client: controllers.ClientOptions(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // each test of this process has its own operator
	})
	if err != nil {
		c.tb.Fatal(err)
	}
	monitor := assignment.NewMonitor(assignment.MonitorOptions{Clusters: options.Clusters})
	if err := mgr.Add(monitor); err != nil {
		c.tb.Fatal(err)
	}
	reconciler := &controllers.StreamAppReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("streamweir.dev/operator"),
		Groups: monitor, AgentJar: options.AgentJar, Clock: clock.RealClock{},
	}
	if options.AgentJar != nil {
		reports := reportclient.New(reportclient.Options{})
		if err := mgr.Add(reports); err != nil {
			c.tb.Fatal(err)
		}
		reconciler.Reports = reports
	}
	if err := reconciler.SetupWithManager(context.Background(), mgr); err != nil {
		c.tb.Fatal(err)
	}
	c.Background(mgr.Start)
}

// Background runs a function until the test ends, and waits for it to return.
func (c *Cluster) Background(start func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	c.tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.tb.Error(err)
		}
	})
}

// Create creates an object.
func (c *Cluster) Create(object client.Object) {
	c.tb.Helper()
	if err := c.Admin.Create(c.tb.Context(), object); err != nil {
		c.tb.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// Get reads an object of the namespace. It also works after the test's context is done.
func (c *Cluster) Get(object client.Object, name string) error {
	return c.Admin.Get(context.Background(), client.ObjectKey{Namespace: c.Namespace, Name: name}, object)
}

// StartNodes simulates nodes, the scheduler and the workload controllers until the test ends. podIP returns the address of a pod.
func (c *Cluster) StartNodes(count int, podIP func(pod string) string) {
	c.tb.Helper()
	var nodes []fakekubelet.Node
	for i := range count {
		nodes = append(nodes, fakekubelet.Node{Name: fmt.Sprintf("%s-node-%d", c.Namespace, i), Memory: nodeMemory})
	}
	clientset, err := kubernetes.NewForConfig(environment.Config)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.Kubelet = fakekubelet.New(clientset, fakekubelet.Options{Namespace: c.Namespace, Nodes: nodes, PodIP: podIP})
	c.Background(c.Kubelet.Start)
}

// LoseNodeOf makes the node of a pod unreachable.
func (c *Cluster) LoseNodeOf(pod string) {
	c.tb.Helper()
	found := &corev1.Pod{}
	if err := c.Get(found, pod); err != nil {
		c.tb.Fatal(err)
	}
	if err := c.Kubelet.LoseNode(c.tb.Context(), found.Spec.NodeName); err != nil {
		c.tb.Fatal(err)
	}
}
