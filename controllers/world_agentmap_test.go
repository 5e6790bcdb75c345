// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestAnAgentOfSomeoneElsesIsNotInjected(t *testing.T) {
	w := newWorld(t)
	w.playAgents()
	w.createSet()
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme}) // nobody else may write it where the policies are installed
	w.Expect(err).NotTo(gomega.HaveOccurred())
	sum := sha256.Sum256(testJar)
	foreign := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("streamweir-agent-orders-%x", sum[:5])},
		BinaryData: map[string][]byte{v1alpha1.AgentJarKey: []byte("evil")}, Immutable: new(true),
	}
	w.Expect(operator.Create(t.Context(), foreign)).To(gomega.Succeed())
	w.startOperator()
	w.createApp(withoutKafka)
	w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonConflict)).To(gomega.Equal(fmt.Sprintf(
		"ConfigMap %s does not hold the agent of this operator: someone else has written it, so it is not used; delete it", foreign.Name)))
	w.Expect(w.injection().Spec.AgentConfigMap).To(gomega.BeEmpty(), "the plan is injected all the same")
	w.staysQuiet()

	w.Expect(operator.Delete(t.Context(), foreign)).To(gomega.Succeed())
	w.later(6 * time.Minute)
	w.Eventually(w.injection).Should(gomega.HaveField("Spec.AgentConfigMap", foreign.Name))
	w.Expect(w.agentMaps()[0].BinaryData).To(gomega.HaveKeyWithValue(v1alpha1.AgentJarKey, testJar))
}

func TestAnOlderAgentStaysAsLongAsAPodMountsIt(t *testing.T) {
	w := newWorld(t)
	w.playAgents()
	w.createSet()
	stop := w.startOperator()
	w.createApp(withoutKafka)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.rollout()
	w.allBoundedHere()
	older := w.injection().Spec.AgentConfigMap
	names := func() []string {
		var all []string
		for _, m := range w.agentMaps() {
			all = append(all, m.Name)
		}
		return all
	}
	stop()
	w.agentJar = []byte("PK: a newer one")
	w.startOperator()
	w.Eventually(func() string { return w.injection().Spec.AgentConfigMap }).ShouldNot(gomega.Equal(older))
	newer := w.injection().Spec.AgentConfigMap
	w.Expect(names()).To(gomega.ConsistOf(older, newer))
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied) // an older agent is good enough

	w.later(2 * time.Hour)
	w.Expect(names()).To(gomega.ConsistOf(older, newer), "the pods mount it")
	w.rollout()
	w.later(2 * time.Hour)
	w.Eventually(names).Should(gomega.ConsistOf(newer))
	w.staysQuiet()
}

// allBoundedHere waits until every pod has reported that it is bounded, whatever plan it has read.
func (w *world) allBoundedHere() {
	w.t.Helper()
	w.Eventually(func() *int32 { return w.app().Status.BoundedPods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(3)))
}

// BenchmarkFromReportToPlan measures the time from a change in a pod, of the number of its application's tasks, to the moment that the plan
// for it stands in the status, as a watch is told: the agent's answer over HTTP, the pass, and its writes to a real API server.
func BenchmarkFromReportToPlan(b *testing.B) {
	w := newWorldAlone(b)
	w.reporting()
	changes, err := admin.Watch(b.Context(), &v1alpha1.StreamAppList{}, client.InNamespace(w.namespace))
	w.Expect(err).NotTo(gomega.HaveOccurred())
	defer changes.Stop()
	tasks := int32(tasksOfGroup)
	var total time.Duration
	rounds := 0
	for b.Loop() {
		tasks++
		before := w.app().Status.PlanRevision
		begun := time.Now()
		w.agents.sharedTasks(int(tasks))
		for event := range changes.ResultChan() {
			app, is := event.Object.(*v1alpha1.StreamApp)
			if is && app.Status.Tasks != nil && *app.Status.Tasks == tasks && app.Status.PlanRevision != before {
				break
			}
		}
		total += time.Since(begun)
		rounds++
		<-time.After(reportPause)
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(rounds), "ms/plan")
	b.ReportMetric(0, "ns/op")
}

// reportPause lets a pod rest between two changes: who changes several times a second is asked once a second.
const reportPause = 2 * time.Second
