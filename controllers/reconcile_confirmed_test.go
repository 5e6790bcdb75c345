// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// TestOneFalseReportRaisesLimitsByOneStep: one of three pods reports a partition that does not exist.
func TestOneFalseReportRaisesLimitsByOneStep(t *testing.T) {
	f := newFixture(t)
	f.enforceWithReports()
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
	before := f.limits()
	limit := f.app().Status.Limit.Value()
	f.agents.setChange(func(pod string, r *report.Report) {
		if pod == "orders-0" {
			thread := &r.Clients[0].Threads[0]
			thread.Tasks = append(thread.Tasks, report.Task{ID: "0_99999", Role: report.RoleActive})
		}
	})
	message := f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse, v1alpha1.ReasonCapped)
	f.Expect(message).To(gomega.ContainSubstring("but the report of pod orders-0 alone (task 0_99999) allows at most "))
	f.passes(3)
	for pod, raised := range f.limits() {
		f.Expect(raised).To(gomega.BeNumerically("<=", max(before[pod], limit*5/4)), pod)
	}
	f.Expect(f.app().Status.Limit.Value()).To(gomega.BeNumerically("<=", limit*5/4))

	f.agents.setChange(func(string, *report.Report) {})
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue, v1alpha1.ReasonPodFailuresTolerated)
	f.Eventually(func() int64 { return f.app().Status.Limit.Value() }).Should(gomega.Equal(limit))
}
