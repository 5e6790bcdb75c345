// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet_test

import (
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/internal/fakekubelet"
)

// resize requests another memory limit for the container app.
func (s *fixture) resize(pod, limit string) {
	s.t.Helper()
	patch := `{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"` + limit + `"}}}]}}`
	_, err := client.CoreV1().Pods(s.namespace).Patch(
		s.t.Context(), pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	s.Expect(err).NotTo(gomega.HaveOccurred())
}

// actualLimit returns the actual memory limit of the container app.
func (s *fixture) actualLimit(pod string) string {
	statuses := s.pod(pod).Status.ContainerStatuses
	if len(statuses) == 0 || statuses[0].Resources == nil {
		return ""
	}
	return statuses[0].Resources.Limits.Memory().String()
}

// resizeState returns the pod's resize condition as "type reason", and whether the kubelet has observed the last change.
func (s *fixture) resizeState(pod string) string {
	found := s.pod(pod)
	if found.Status.ObservedGeneration != found.Generation {
		return "not seen"
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if condition := conditionOf(found, kind); condition.Type != "" {
			return string(kind) + " " + condition.Reason
		}
	}
	return "done"
}

func TestResizesAreAnsweredAsConfiguredAndFinallyApplied(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{})
	s.createSet(1, appsv1.OrderedReadyPodManagement, template("512Mi", "760Mi"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(1))
	for answer, want := range map[fakekubelet.Answer]string{
		fakekubelet.Defer:  "PodResizePending Deferred",
		fakekubelet.Refuse: "PodResizePending Infeasible",
		fakekubelet.Delay:  "PodResizeInProgress ",
		fakekubelet.Fail:   "PodResizeInProgress Error",
		fakekubelet.Ignore: "not seen",
	} {
		t.Run(string(answer), func(*testing.T) {
			before := s.actualLimit("orders-0")
			raised := resource.MustParse(before)
			raised.Add(resource.MustParse("100Mi"))
			s.cluster.AnswerResizes("orders-0", answer)
			s.resize("orders-0", raised.String())
			s.Eventually(s.resizeState).WithArguments("orders-0").Should(gomega.Equal(want))
			s.Expect(s.actualLimit("orders-0")).To(gomega.Equal(before))

			s.cluster.AnswerResizes("orders-0", fakekubelet.Apply)
			s.Eventually(s.resizeState).WithArguments("orders-0").Should(gomega.Equal("done"))
			s.Expect(s.actualLimit("orders-0")).To(gomega.Equal(raised.String()))
		})
	}
}

func TestALowerLimitAppliesAtTheNextStart(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{})
	s.createSet(1, appsv1.OrderedReadyPodManagement, template("512Mi", "760Mi"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(1))
	s.resize("orders-0", "600Mi")
	s.Eventually(s.resizeState).WithArguments("orders-0").Should(gomega.Equal("PodResizeInProgress Error"))
	s.Expect(s.actualLimit("orders-0")).To(gomega.Equal("760Mi"))

	s.Expect(s.cluster.RestartContainer(t.Context(), "orders-0", "app", "OOMKilled", 137)).To(gomega.Succeed())
	s.Eventually(s.resizeState).WithArguments("orders-0").Should(gomega.Equal("done"))
	status := s.pod("orders-0").Status.ContainerStatuses[0]
	s.Expect(s.actualLimit("orders-0")).To(gomega.Equal("600Mi"))
	s.Expect(status.RestartCount).To(gomega.BeEquivalentTo(1))
	s.Expect(status.LastTerminationState.Terminated.Reason).To(gomega.Equal("OOMKilled"))
	s.Expect(s.cluster.RestartContainer(t.Context(), "orders-0", "other", "Error", 1)).
		To(gomega.MatchError(gomega.ContainSubstring(`container "other" does not run`)))
}

func TestPodsStayPendingWithoutFreeMemory(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{Nodes: []fakekubelet.Node{
		{Name: "a", Memory: resource.MustParse("1Gi")}, {Name: "b", Memory: resource.MustParse("1Gi")},
	}})
	s.createSet(3, appsv1.ParallelPodManagement, template("700Mi", "700Mi"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(2))
	var waiting *corev1.Pod
	s.Eventually(func() string {
		for _, name := range []string{"orders-0", "orders-1", "orders-2"} {
			if s.pod(name).Spec.NodeName == "" {
				waiting = s.pod(name)
			}
		}
		return conditionOf(waiting, corev1.PodScheduled).Reason
	}).Should(gomega.Equal(corev1.PodReasonUnschedulable))

	s.patchSet(`{"spec":{"replicas":0}}`)
	s.Eventually(s.readyPods).Should(gomega.BeEmpty())
}

func TestALostNodeIsUnreachable(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{Nodes: []fakekubelet.Node{
		{Name: "a", Memory: resource.MustParse("8Gi")}, {Name: "b", Memory: resource.MustParse("8Gi")},
	}})
	s.createSet(2, appsv1.ParallelPodManagement, template("512Mi", "760Mi"))
	s.Eventually(s.readyPods).Should(gomega.HaveLen(2))
	node := s.pod("orders-1").Spec.NodeName
	s.Expect(s.pod("orders-0").Spec.NodeName).NotTo(gomega.Equal(node))

	s.Expect(s.cluster.LoseNode(t.Context(), node)).To(gomega.Succeed())
	s.Eventually(s.readyPods).Should(gomega.And(gomega.HaveLen(1), gomega.HaveKey("orders-0")))
	s.Expect(s.pod("orders-1").Status.Phase).To(gomega.Equal(corev1.PodRunning))
	s.resize("orders-1", "900Mi")
	s.Expect(client.CoreV1().Pods(s.namespace).Delete(t.Context(), "orders-1", metav1.DeleteOptions{})).To(gomega.Succeed())

	s.resize("orders-0", "900Mi")
	s.Eventually(s.actualLimit).WithArguments("orders-0").Should(gomega.Equal("900Mi"))
	s.Expect(s.pod("orders-1").DeletionTimestamp).NotTo(gomega.BeNil())
	s.Expect(s.actualLimit("orders-1")).To(gomega.Equal("760Mi"))
	s.Expect(s.cluster.LoseNode(t.Context(), "nowhere")).To(gomega.MatchError(gomega.ContainSubstring("losing node nowhere")))
}

func TestAConfigMapIsReadAtTheStartAndAfterAChangeOfThePod(t *testing.T) {
	s := newFixture(t, fakekubelet.Options{})
	configMaps := client.CoreV1().ConfigMaps(s.namespace)
	pods := template("512Mi", "760Mi")
	pods.Spec.Volumes = []corev1.Volume{{Name: "plan", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "plan"}},
	}}}
	s.createSet(1, appsv1.OrderedReadyPodManagement, pods)
	s.Eventually(func() string {
		statuses := s.pod("orders-0").Status.ContainerStatuses
		if len(statuses) == 0 || statuses[0].State.Waiting == nil {
			return ""
		}
		return statuses[0].State.Waiting.Reason
	}).Should(gomega.Equal("ContainerCreating"))

	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plan"}, Data: map[string]string{"jvm.options": "first"}}
	plan, err := configMaps.Create(t.Context(), plan, metav1.CreateOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Eventually(s.readyPods).Should(gomega.HaveLen(1))
	s.Expect(s.cluster.Mounted("orders-0", "plan")).To(gomega.Equal(map[string]string{"jvm.options": "first"}))

	plan.Data["jvm.options"] = "second"
	_, err = configMaps.Update(t.Context(), plan, metav1.UpdateOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Consistently(s.cluster.Mounted).WithArguments("orders-0", "plan").
		Should(gomega.HaveKeyWithValue("jvm.options", "first"))

	touch := []byte(`{"metadata":{"annotations":{"streamweir.dev/plan":"2"}}}`)
	_, err = client.CoreV1().Pods(s.namespace).Patch(t.Context(), "orders-0", types.MergePatchType, touch, metav1.PatchOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Eventually(s.cluster.Mounted).WithArguments("orders-0", "plan").
		Should(gomega.HaveKeyWithValue("jvm.options", "second"))
}
