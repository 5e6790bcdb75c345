// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
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

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers"
	"streamweir.dev/streamweir/internal/envtestutil"
	"streamweir.dev/streamweir/internal/fakekubelet"
	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

var (
	environment *envtestutil.Environment
	kinds       = runtime.NewScheme()
)

// TestMain starts a control plane and applies config/default to it.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard()) // what goes wrong shows in the status
	if err := errors.Join(scheme.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		return 1, err
	}
	if environment, err = envtestutil.StartShipped(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	return m.Run(), nil
}

// world is a namespace with an operator of its own for one test.
type world struct {
	admin     client.Client
	namespace string
	instances map[string]*kafkatest.Process
}

// newWorld makes the namespace and runs the operator in it, as the user that config/default gives its rights to.
func newWorld(t *testing.T, namespace, bootstrap string, instances map[string]*kafkatest.Process) *world {
	t.Helper()
	admin, err := client.New(environment.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{admin: admin, namespace: namespace, instances: maps.Clone(instances)}
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	mgr, err := ctrl.NewManager(environment.Operator(), ctrl.Options{
		Scheme: kinds, Cache: controllers.CacheOptions(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // one operator for each test of this process
	})
	if err != nil {
		t.Fatal(err)
	}
	monitor := assignment.NewMonitor(assignment.MonitorOptions{
		Clusters: []assignment.ClusterConfig{{Name: "test", BootstrapServers: []string{bootstrap}}},
	})
	reconciler := &controllers.StreamAppReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("streamweir.dev/operator"),
		Groups: monitor, Clock: clock.RealClock{},
	}
	if err := errors.Join(mgr.Add(monitor), reconciler.SetupWithManager(t.Context(), mgr)); err != nil {
		t.Fatal(err)
	}
	inBackground(t, mgr.Start)
	return w
}

// inBackground runs until the test ends, and waits for the end.
func inBackground(t *testing.T, start func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (w *world) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.admin.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// createWorkload creates the StatefulSet; its pods come with startPods.
func (w *world) createWorkload(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "shop"}
	w.create(t, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(len(w.instances))), ServiceName: "shop", PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "example.org/shop:1",
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(templateLimit)}},
				}}},
			},
		},
	})
}

func (w *world) createStreamApp(t *testing.T, applicationID string) {
	t.Helper()
	w.create(t, &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: "shop"},
			Mode:      v1alpha1.ModeEnforce,
			Memory:    v1alpha1.MemorySpec{MinLimit: new(resource.MustParse(minLimit)), MaxLimit: new(resource.MustParse(maxLimit))},
			Kafka:     v1alpha1.KafkaSpec{Cluster: "test", ApplicationID: applicationID},
			Streams:   v1alpha1.StreamsSpec{Version: kafkatest.KafkaVersion, Configs: configs()},
		},
	})
}

// startPods plays three nodes, with a pod on each that has its instance's address.
func (w *world) startPods(t *testing.T) {
	t.Helper()
	var nodes []fakekubelet.Node
	for i := range w.instances {
		nodes = append(nodes, fakekubelet.Node{Name: w.namespace + "-" + i, Memory: resource.MustParse("64Gi")})
	}
	clientset, err := kubernetes.NewForConfig(environment.Config)
	if err != nil {
		t.Fatal(err)
	}
	cluster := fakekubelet.New(clientset, fakekubelet.Options{
		Namespace: w.namespace, Nodes: nodes,
		PodIP: func(pod string) string { return w.instances[pod].Address.String() },
	})
	inBackground(t, cluster.Start)
}

// loseNodeOf lets the node of a pod fall silent, as the node controller reports it.
func (w *world) loseNodeOf(t *testing.T, name string) {
	t.Helper()
	var pod corev1.Pod
	if err := w.get(&pod, name); err != nil {
		t.Fatal(err)
	}
	var node corev1.Node
	if err := w.admin.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &node); err != nil {
		t.Fatal(err)
	}
	silent := node.DeepCopy()
	silent.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if err := w.admin.Status().Patch(t.Context(), silent, client.MergeFrom(&node)); err != nil {
		t.Fatal(err)
	}
}
