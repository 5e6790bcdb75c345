// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"os"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/envtestutil"
)

// TestAutoscalersByMemoryFreezeTheApplication runs before the parallel tests, which run with the kinds of the VPA and KEDA: the operator first
// runs without these kinds.
func TestAutoscalersByMemoryFreezeTheApplication(t *testing.T) {
	f := newSerialFixture(t)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	stop := f.startOperator()
	f.createStreamApp()
	f.restartWithPlan()
	f.createAutoscaler("HorizontalPodAutoscaler", `{
		"maxReplicas": 6, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "orders"},
		"metrics": [{"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 80}}}]}`)
	f.expectFrozenBy("HorizontalPodAutoscaler")
	stop()

	f.installAutoscalerKinds()
	f.startOperator()
	f.createAutoscaler("VerticalPodAutoscaler",
		`{"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "orders"}, "updatePolicy": {"updateMode": "Off"}}`)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Expect(admin.Patch(f.t.Context(), f.autoscaler("VerticalPodAutoscaler"),
		mergePatch(`{"spec":{"updatePolicy":{"updateMode":"InPlaceOrRecreate"}}}`))).To(gomega.Succeed())
	f.expectFrozenBy("VerticalPodAutoscaler")
	f.createAutoscaler("ScaledObject",
		`{"scaleTargetRef": {"kind": "StatefulSet", "name": "orders"}, "triggers": [{"type": "memory"}]}`)
	f.expectFrozenBy("ScaledObject")
}

// expectFrozenBy expects that a failed pod changes nothing as long as the autoscaler exists, and that it raises the limits afterwards.
func (f *fixture) expectFrozenBy(kind string) {
	f.t.Helper()
	message := f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionFalse, v1alpha1.ReasonConflictingAutoscaler)
	f.Expect(message).To(gomega.HavePrefix(kind + " scaler "))
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonConflictingAutoscaler)
	injection, plan, limits := f.injection(), f.plan(), f.limits()
	f.spreadTasks(f.readyPods()[:1]...) // all tasks are in one pod
	f.passes(3)
	f.Expect(f.injection().ResourceVersion).To(gomega.Equal(injection.ResourceVersion))
	f.Expect(f.plan().ResourceVersion).To(gomega.Equal(plan.ResourceVersion))
	f.Expect(f.limits()).To(gomega.Equal(limits))
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.deleteAutoscaler(kind)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

// autoscalerVersions are the versions of the kinds.
var autoscalerVersions = map[string]string{
	"HorizontalPodAutoscaler": "autoscaling/v2", "VerticalPodAutoscaler": "autoscaling.k8s.io/v1", "ScaledObject": "keda.sh/v1alpha1",
}

func (f *fixture) autoscaler(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": autoscalerVersions[kind], "kind": kind, "metadata": map[string]any{"namespace": f.namespace, "name": "scaler"},
	}}
}

func (f *fixture) createAutoscaler(kind, spec string) {
	f.t.Helper()
	object := f.autoscaler(kind)
	fields := map[string]any{}
	f.Expect(yaml.Unmarshal([]byte(spec), &fields)).To(gomega.Succeed())
	object.Object["spec"] = fields
	f.Expect(admin.Create(f.t.Context(), object)).To(gomega.Succeed())
}

func (f *fixture) deleteAutoscaler(kind string) {
	f.t.Helper()
	f.Expect(admin.Delete(f.t.Context(), f.autoscaler(kind))).To(gomega.Succeed())
}

// installAutoscalerKinds installs the kinds of the VPA and KEDA.
func (f *fixture) installAutoscalerKinds() {
	f.t.Helper()
	text, err := os.ReadFile("testdata/autoscalers.yaml")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	var definitions []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		definition := &unstructured.Unstructured{}
		f.Expect(yaml.Unmarshal([]byte(document), &definition.Object)).To(gomega.Succeed())
		definitions = append(definitions, definition)
	}
	_, err = envtestutil.Apply(f.t.Context(), admin, definitions)
	f.Expect(err).NotTo(gomega.HaveOccurred())
}
