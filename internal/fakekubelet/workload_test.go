// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet_test

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/internal/fakekubelet"
)

// patchImage changes the image in a workload's pod template.
const patchImage = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`

func TestStatefulSetPodsRunUnderTheirOwner(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{PodIP: func(pod string) string {
		if pod == "orders-1" {
			return "192.0.2.77"
		}
		return ""
	}})
	s.createSet(2, appsv1.OrderedReadyPodManagement, template("512Mi", "760Mi"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(2))

	set, err := client.AppsV1().StatefulSets(s.namespace).Get(t.Context(), "orders", metav1.GetOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	pod := s.pod("orders-1")
	owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	s.Expect(metav1.GetControllerOf(pod)).To(gomega.HaveValue(gomega.Equal(owner)))
	s.Expect(pod.Status.PodIP).To(gomega.Equal("192.0.2.77"))
	s.Expect(s.pod("orders-0").Status.PodIP).To(gomega.HavePrefix("10.88."))
	s.Expect(pod.Status.ContainerStatuses[0].Resources.Limits.Memory().String()).To(gomega.Equal("760Mi"))
	s.Expect(pod.Status.ObservedGeneration).To(gomega.Equal(pod.Generation))
	s.Eventually(func() int32 {
		set, err = client.AppsV1().StatefulSets(s.namespace).Get(t.Context(), "orders", metav1.GetOptions{})
		s.Expect(err).NotTo(gomega.HaveOccurred())
		return set.Status.ReadyReplicas
	}).Should(gomega.BeEquivalentTo(2))
}

func TestStatefulSetWaitsForAnUnreadyPod(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{})
	s.cluster.SetReady("orders-0", false)
	s.createSet(2, appsv1.OrderedReadyPodManagement, template("512Mi", "760Mi"))
	s.Eventually(func() corev1.PodPhase { return s.pod("orders-0").Status.Phase }).Should(gomega.Equal(corev1.PodRunning))
	s.Expect(s.pod("orders-1").Name).To(gomega.BeEmpty())

	s.cluster.SetReady("orders-0", true)
	s.Eventually(s.readyPods).Should(gomega.HaveLen(2))
	s.cluster.SetReady("orders-1", false)
	s.Eventually(s.readyPods).Should(gomega.HaveKey("orders-0"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(1))
}

func TestStatefulSetReplacesScalesAndRolls(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{})
	s.createSet(3, appsv1.ParallelPodManagement, template("512Mi", "760Mi"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(3))

	lost := s.pod("orders-1")
	s.Expect(client.CoreV1().Pods(s.namespace).Delete(t.Context(), lost.Name, metav1.DeleteOptions{})).To(gomega.Succeed())
	s.Eventually(func() types.UID { return s.pod("orders-1").UID }).ShouldNot(gomega.Or(gomega.BeEmpty(), gomega.Equal(lost.UID)))

	s.patchSet(fmt.Sprintf(patchImage, "orders:2"))
	s.Eventually(s.readyPods).Should(gomega.Equal(
		map[string]string{"orders-0": "orders:2", "orders-1": "orders:2", "orders-2": "orders:2"}))

	s.patchSet(`{"spec":{"replicas":1}}`)
	s.Eventually(s.readyPods).Should(gomega.Equal(map[string]string{"orders-0": "orders:2"}))

	s.Expect(client.AppsV1().StatefulSets(s.namespace).Delete(t.Context(), "orders", metav1.DeleteOptions{})).To(gomega.Succeed())
	s.Eventually(s.readyPods).Should(gomega.BeEmpty())
}

// patchSet changes the StatefulSet orders.
func (s *fixture) patchSet(patch string) {
	s.t.Helper()
	_, err := client.AppsV1().StatefulSets(s.namespace).Patch(
		s.t.Context(), "orders", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
}

func TestDeploymentRollsThroughReplicaSets(t *testing.T) {
	for name, strategy := range map[string]appsv1.DeploymentStrategyType{
		"pod by pod":      appsv1.RollingUpdateDeploymentStrategyType,
		"all at one time": appsv1.RecreateDeploymentStrategyType,
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, fakekubelet.Options{})
			deployments := client.AppsV1().Deployments(s.namespace)
			pods := template("512Mi", "760Mi")
			_, err := deployments.Create(t.Context(), &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "orders"},
				Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(3)), Template: pods, Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
					Strategy: appsv1.DeploymentStrategy{Type: strategy},
				},
			}, metav1.CreateOptions{})
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.Eventually(s.readyPods).Should(gomega.HaveLen(3))
			for pod := range s.readyPods() {
				hash := s.pod(pod).Labels[appsv1.DefaultDeploymentUniqueLabelKey]
				s.Expect(metav1.GetControllerOf(s.pod(pod)).Name).To(gomega.Equal("orders-" + hash))
			}

			patch := fmt.Appendf(nil, patchImage, "orders:2")
			_, err = deployments.Patch(t.Context(), "orders", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.Eventually(s.readyPods).Should(gomega.And(
				gomega.HaveLen(3), gomega.HaveEach("orders:2")))
			s.Eventually(func() appsv1.DeploymentStatus {
				deployment, err := deployments.Get(t.Context(), "orders", metav1.GetOptions{})
				s.Expect(err).NotTo(gomega.HaveOccurred())
				return deployment.Status
			}).Should(gomega.Equal(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			}))

			s.Expect(deployments.Delete(t.Context(), "orders", metav1.DeleteOptions{})).To(gomega.Succeed())
			s.Eventually(s.readyPods).Should(gomega.BeEmpty())
		})
	}
}

func TestARefusedCreateIsReported(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{})
	_, err := client.CoreV1().LimitRanges(s.namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("600Mi")},
		}}},
	}, metav1.CreateOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.createSet(1, appsv1.OrderedReadyPodManagement, template("512Mi", "760Mi"))
	s.Eventually(func() []string {
		events, err := client.CoreV1().Events(s.namespace).List(t.Context(), metav1.ListOptions{})
		s.Expect(err).NotTo(gomega.HaveOccurred())
		var told []string
		for _, event := range events.Items {
			told = append(told, event.InvolvedObject.Name+" "+event.Reason+": "+event.Message)
		}
		return told
	}).Should(gomega.ConsistOf(gomega.And(
		gomega.HavePrefix("orders FailedCreate: create Pod orders-0 in StatefulSet orders failed error: "),
		gomega.ContainSubstring("maximum memory usage per Container is 600Mi"))))
}
