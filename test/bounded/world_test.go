// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

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

	"streamweir.dev/streamweir/agent"
	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/reportclient"
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

// world is a namespace with an operator of its own, whose pods are real JVMs with the real agent.
type world struct {
	tb        testing.TB
	admin     client.WithWatch
	namespace string
	app       *kafkatest.RunningApplication
	kubelet   *fakekubelet.Cluster
	jar       string

	mu        sync.Mutex
	instances map[string]*kafkatest.Process // by pod
}

// newWorld makes the namespace and runs the operator in it as main does, but that it knows no Kafka cluster.
func newWorld(tb testing.TB, namespace string, app *kafkatest.RunningApplication) *world {
	tb.Helper()
	admin, err := client.NewWithWatch(environment.Config, client.Options{Scheme: kinds})
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{tb: tb, admin: admin, namespace: namespace, app: app, instances: map[string]*kafkatest.Process{}}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	w.jar = filepath.Join(tb.TempDir(), v1alpha1.AgentJarKey)
	if err := os.WriteFile(w.jar, agent.Jar, 0o600); err != nil {
		tb.Fatal(err)
	}
	mgr, err := ctrl.NewManager(environment.Operator(), ctrl.Options{
		Scheme: kinds, Cache: controllers.CacheOptions(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // one operator for each test of this process
	})
	if err != nil {
		tb.Fatal(err)
	}
	monitor, reports := assignment.NewMonitor(assignment.MonitorOptions{}), reportclient.New(reportclient.Options{})
	reconciler := &controllers.StreamAppReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("streamweir.dev/operator"),
		Groups: monitor, Reports: reports, AgentJar: agent.Jar, Clock: clock.RealClock{},
	}
	if err := errors.Join(mgr.Add(monitor), mgr.Add(reports), reconciler.SetupWithManager(context.Background(), mgr)); err != nil {
		tb.Fatal(err)
	}
	w.inBackground(mgr.Start)
	return w
}

// inBackground runs until the test ends, and waits for the end.
func (w *world) inBackground(start func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	w.tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.tb.Error(err)
		}
	})
}

func (w *world) create(object client.Object) {
	w.tb.Helper()
	if err := w.admin.Create(w.tb.Context(), object); err != nil {
		w.tb.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// get reads an object of the test's namespace.
func (w *world) get(object client.Object, name string) error {
	return w.admin.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)
}

// createWorkload creates the StatefulSet; its pods come with startPods.
func (w *world) createWorkload(replicas int32) {
	w.tb.Helper()
	labels := map[string]string{"app": "shop"}
	w.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "shop", PodManagementPolicy: appsv1.ParallelPodManagement,
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

// createStreamApp creates a StreamApp that says what its target is, and nothing else.
func (w *world) createStreamApp() {
	w.tb.Helper()
	w.create(&v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: "shop"},
			Mode:      v1alpha1.ModeEnforce,
		},
	})
}

// startPods plays three nodes; the container of each pod is a real JVM, which is started when the pod is, with the agent, the pod's UID,
// and a folder in which the mounted plan lies.
func (w *world) startPods() {
	w.tb.Helper()
	var nodes []fakekubelet.Node
	for i := range 3 {
		nodes = append(nodes, fakekubelet.Node{Name: fmt.Sprintf("%s-node-%d", w.namespace, i), Memory: resource.MustParse("64Gi")})
	}
	clientset, err := kubernetes.NewForConfig(environment.Config)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.kubelet = fakekubelet.New(clientset, fakekubelet.Options{Namespace: w.namespace, Nodes: nodes, PodIP: w.startInstance})
	w.inBackground(w.kubelet.Start)
}

// startInstance starts the JVM of a pod, and gives its address.
func (w *world) startInstance(name string) string {
	pod := &corev1.Pod{}
	if err := w.get(pod, name); err != nil {
		return ""
	}
	folder := w.tb.TempDir()
	process := w.app.StartInstance(w.tb, kafkatest.Instance{
		Name:        name,
		Environment: []string{fmt.Sprintf("%s=%s", v1alpha1.PodUIDVariable, pod.UID)},
		JavaOptions: []string{fmt.Sprintf("-javaagent:%s=plan=%s", w.jar, folder)},
	})
	w.mu.Lock()
	w.instances[name] = process
	w.mu.Unlock()
	w.inBackground(func(ctx context.Context) error { return w.project(ctx, name, folder) })
	return process.Address.String()
}

// project writes what the kubelet mounts into the folder that the JVM reads, as often as it changes.
func (w *world) project(ctx context.Context, pod, folder string) error {
	var last string
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		files := w.kubelet.Mounted(pod, "streamweir-plan-shop")
		if generation := files[planfile.RevisionKey]; generation == last || generation == "" {
			continue
		}
		for name, content := range files {
			path := filepath.Join(folder, name)
			if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
				return err
			}
			if err := os.Rename(path+".new", path); err != nil {
				return err
			}
		}
		last = files[planfile.RevisionKey]
	}
}

// instance gives the JVM of a pod.
func (w *world) instance(name string) *kafkatest.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instances[name]
}

// processes gives the JVMs of some pods.
func (w *world) processes(names ...string) []*kafkatest.Process {
	var all []*kafkatest.Process
	for _, name := range names {
		all = append(all, w.instance(name))
	}
	return all
}

// loseNodeOf lets the node of a pod fall silent, as the node controller reports it.
func (w *world) loseNodeOf(name string) {
	w.tb.Helper()
	var pod corev1.Pod
	if err := w.get(&pod, name); err != nil {
		w.tb.Fatal(err)
	}
	if err := w.kubelet.LoseNode(w.tb.Context(), pod.Spec.NodeName); err != nil {
		w.tb.Fatal(err)
	}
}
