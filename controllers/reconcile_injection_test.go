// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// Without the binding of the injection policy nothing is written or advised. The operator begins when the binding is there.
func TestNothingIsWrittenWithoutTheInjectionPolicy(t *testing.T) {
	f := newSerialFixture(t) // the binding is one for all tests
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "streamweir-injection"}}
	f.Expect(admin.Delete(t.Context(), binding)).To(gomega.Succeed())
	restored := false
	restore := func() {
		if !restored {
			f.Expect(install(context.WithoutCancel(t.Context()))).To(gomega.Succeed())
			restored = true
		}
	}
	t.Cleanup(restore)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	for _, condition := range []string{v1alpha1.ConditionCompatible, v1alpha1.ConditionReady} {
		f.Expect(f.expectCondition(condition, metav1.ConditionFalse, v1alpha1.ReasonInjectionUnavailable)).To(
			gomega.Equal(decision.NoBindingText))
	}
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonInjectionUnavailable)
	f.passes(2)
	f.expectNothingWritten()

	restore()
	f.advance(time.Minute)
	f.expectCondition(v1alpha1.ConditionCompatible, metav1.ConditionTrue, v1alpha1.ReasonCompatible)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.Expect(f.plan().Data).NotTo(gomega.BeEmpty())
}
