// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestAgentOfAnotherClientIsNotInjected(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme}) // the policies reserve this write for the operator
	f.Expect(err).NotTo(gomega.HaveOccurred())
	sum := sha256.Sum256(testJar)
	foreign := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: fmt.Sprintf("streamweir-agent-%x", sum[:5])},
		BinaryData: map[string][]byte{v1alpha1.AgentJarKey: []byte("evil")}, Immutable: new(true),
	}
	f.Expect(operator.Create(t.Context(), foreign)).To(gomega.Succeed())
	f.startOperator()
	f.createStreamApp(withoutKafka)
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonConflict)).To(gomega.Equal(fmt.Sprintf(
		"ConfigMap %s does not contain the agent of this operator, so it is not used; another client has written it: "+
			"delete it, with the verb delete-plans on podinjections", foreign.Name)))
	f.Expect(f.injection().Spec.AgentConfigMap).To(gomega.BeEmpty(), "the plan is injected without the agent")
	f.expectQuiet()

	f.Expect(operator.Delete(t.Context(), foreign)).To(gomega.Succeed())
	f.advance(6 * time.Minute)
	f.Eventually(f.injection).Should(gomega.HaveField("Spec.AgentConfigMap", foreign.Name))
	f.Expect(f.agentConfigMaps()[0].BinaryData).To(gomega.HaveKeyWithValue(v1alpha1.AgentJarKey, testJar))
}

// advanceAgents moves the operator's clock and has it look at every agent.
func (f *fixture) advanceAgents(d time.Duration) {
	f.t.Helper()
	f.advance(d)
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	for _, agent := range f.agentConfigMaps() {
		patch := mergePatch(fmt.Sprintf(`{"metadata":{"annotations":{"changed":%q}}}`, time.Now()))
		f.Expect(client.IgnoreNotFound(operator.Patch(f.t.Context(), &agent, patch))).To(gomega.Succeed())
	}
}

// agentNames returns the names of the ConfigMaps with agents.
func (f *fixture) agentNames() []string {
	var names []string
	for _, m := range f.agentConfigMaps() {
		names = append(names, m.Name)
	}
	return names
}

// unneededAgents returns the names of the ConfigMaps with agents marked as unneeded.
func (f *fixture) unneededAgents() []string {
	var names []string
	for _, m := range f.agentConfigMaps() {
		if m.Annotations["streamweir.dev/unused-since"] != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

func TestOlderAgentStaysWhileAPodMountsIt(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	stop := f.startOperator()
	f.createStreamApp(withoutKafka)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.rollout()
	f.expectBounded()
	older := f.injection().Spec.AgentConfigMap
	stop()
	f.agentJar = []byte("PK: a newer jar")
	f.startOperator()
	f.Eventually(func() string { return f.injection().Spec.AgentConfigMap }).ShouldNot(gomega.Equal(older))
	newer := f.injection().Spec.AgentConfigMap
	f.Expect(f.agentNames()).To(gomega.ConsistOf(older, newer))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied) // an older agent suffices

	f.advanceAgents(2 * time.Minute)
	f.Eventually(f.unneededAgents).Should(gomega.ConsistOf(older))
	f.advanceAgents(2 * time.Hour)
	f.expectQuiet()
	f.Expect(f.agentNames()).To(gomega.ConsistOf(older, newer), "the pods mount the older one")
	f.rollout()
	f.advanceAgents(2 * time.Hour)
	f.Eventually(f.agentNames).Should(gomega.ConsistOf(newer))
	f.expectQuiet()
}

func TestStreamAppsOfNamespaceShareOneAgent(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	other := template(func(pods *corev1.PodTemplateSpec) { pods.Labels = map[string]string{"app": "payments"} })
	f.Expect(admin.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "payments"},
		Spec:       appsv1.DeploymentSpec{Template: other, Selector: &metav1.LabelSelector{MatchLabels: other.Labels}},
	})).To(gomega.Succeed())
	f.startOperator()
	f.createStreamApp(withoutKafka)
	f.createStreamApp(withoutKafka, func(app *v1alpha1.StreamApp) {
		app.Name = "payments"
		app.Spec.TargetRef.Kind, app.Spec.TargetRef.Name = v1alpha1.KindDeployment, "payments"
	})
	second := &v1alpha1.PodInjection{}
	f.Eventually(func() bool { return f.exists("payments", second) }).Should(gomega.BeTrue())
	f.Expect(f.agentNames()).To(gomega.Equal([]string{f.injection().Spec.AgentConfigMap}))
	f.Expect(second.Spec.AgentConfigMap).To(gomega.Equal(f.agentNames()[0]))
	f.Expect(f.agentConfigMaps()[0].OwnerReferences).To(gomega.BeEmpty())

	f.delete("orders", &v1alpha1.StreamApp{})
	f.Eventually(func() bool { return f.exists("orders", &v1alpha1.PodInjection{}) }).Should(gomega.BeFalse())
	f.advanceAgents(2 * time.Hour)
	f.Consistently(f.unneededAgents).Should(gomega.BeEmpty(), "the other StreamApp needs it")

	f.delete("payments", &v1alpha1.StreamApp{})
	f.Eventually(f.unneededAgents).Should(gomega.HaveLen(1))
	uid := f.agentConfigMaps()[0].UID
	f.createStreamApp(withoutKafka)
	f.injection()
	f.Eventually(f.unneededAgents).Should(gomega.BeEmpty(), "a StreamApp needs it again")
	f.Expect(f.agentConfigMaps()[0].UID).To(gomega.Equal(uid))
	f.delete("orders", &v1alpha1.StreamApp{})
	f.Eventually(f.unneededAgents).Should(gomega.HaveLen(1))
	f.advanceAgents(2 * time.Hour)
	f.Eventually(f.agentNames).Should(gomega.BeEmpty())
}

func TestDeletedAgentIsWrittenAgain(t *testing.T) {
	f := newFixture(t)
	f.simulateAgents()
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp(withoutKafka)
	f.injection()
	before := f.agentConfigMaps()[0]
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(operator.Delete(t.Context(), before.DeepCopy())).To(gomega.Succeed())
	f.Eventually(f.agentConfigMaps).Should(gomega.ConsistOf(gomega.And(
		gomega.HaveField("Name", before.Name), gomega.Not(gomega.HaveField("UID", before.UID)))))
	f.expectQuiet()
}

// expectBounded waits until every pod has reported that it is bounded, with any plan.
func (f *fixture) expectBounded() {
	f.t.Helper()
	f.Eventually(func() *int32 { return f.app().Status.BoundedPods }).Should(gomega.HaveValue(gomega.BeEquivalentTo(3)))
}

// BenchmarkFromReportToPlan measures the time from a change of the number of tasks in a pod to the plan for it in the status, as a watch
// receives it: the agent's response over HTTP, the pass, and its writes to a real API server.
func BenchmarkFromReportToPlan(b *testing.B) {
	f := newSerialFixture(b)
	f.enforceWithReports()
	changes, err := admin.Watch(b.Context(), &v1alpha1.StreamAppList{}, client.InNamespace(f.namespace))
	f.Expect(err).NotTo(gomega.HaveOccurred())
	defer changes.Stop()
	tasks := int32(tasksOfGroup)
	var total time.Duration
	rounds := 0
	for b.Loop() {
		tasks++
		before := f.app().Status.PlanRevision
		begun := time.Now()
		f.agents.setTasks(int(tasks))
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

// reportPause is the time between two changes of a pod: a report that changes several times a second is requested once a second.
const reportPause = 2 * time.Second
