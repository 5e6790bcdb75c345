// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"streamweir.dev/streamweir/internal/envtestutil"
	"streamweir.dev/streamweir/internal/fakekubelet"
)

// within is the timeout of every wait: far longer than any step takes, for busy machines.
const within = 30 * time.Second

var client kubernetes.Interface

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	environment, err := envtestutil.Start(false)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client = kubernetes.NewForConfigOrDie(environment.Config)
	code := m.Run()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// fixture is a namespace with a Cluster that simulates it.
type fixture struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	cluster   *fakekubelet.Cluster
}

// newFixture starts a Cluster in a namespace of its own.
func newFixture(t *testing.T, options fakekubelet.Options) *fixture {
	t.Helper()
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(within)
	g.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "play-"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	options.Namespace = namespace.Name
	for i := range options.Nodes {
		options.Nodes[i].Name = namespace.Name + "-" + options.Nodes[i].Name
	}
	cluster := fakekubelet.New(client, options)
	ended := make(chan error, 1)
	go func() { ended <- cluster.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
	return &fixture{WithT: g, t: t, namespace: namespace.Name, cluster: cluster}
}

// template is a pod template with one container, called app, of this memory.
func template(request, limit string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "orders"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "orders:1",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
			},
		}}},
	}
}

// createSet creates the StatefulSet orders.
func (s *fixture) createSet(replicas int32, policy appsv1.PodManagementPolicyType, pods corev1.PodTemplateSpec) {
	s.t.Helper()
	_, err := client.AppsV1().StatefulSets(s.namespace).Create(s.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, PodManagementPolicy: policy, ServiceName: "orders", Template: pods,
			Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
		},
	}, metav1.CreateOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
}

// pod reads a pod; a missing one is empty.
func (s *fixture) pod(name string) *corev1.Pod {
	pod, err := client.CoreV1().Pods(s.namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return &corev1.Pod{}
	}
	return pod
}

// readyPods returns the names of the pods that are ready and not being deleted, with their images.
func (s *fixture) readyPods() map[string]string {
	pods, err := client.CoreV1().Pods(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	ready := map[string]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && conditionOf(&pod, corev1.PodReady).Status == corev1.ConditionTrue {
			ready[pod.Name] = pod.Status.ContainerStatuses[0].Image
		}
	}
	return ready
}

// conditionOf returns a condition of the pod; a missing one is empty.
func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}
