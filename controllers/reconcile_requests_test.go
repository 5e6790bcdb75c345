// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// requests returns the memory request in the spec of every pod.
func (f *fixture) requests() map[string]int64 {
	requests := map[string]int64{}
	for _, pod := range f.pods() {
		requests[pod.Name] = pod.Spec.Containers[0].Resources.Requests.Memory().Value()
	}
	return requests
}

// scaleIn removes one pod and gives its tasks to the others.
func (f *fixture) scaleIn() {
	f.t.Helper()
	f.patchStatefulSet(`{"spec":{"replicas":2}}`)
	f.Eventually(f.readyPods).Should(gomega.HaveLen(2))
	f.spreadTasks("orders-0", "orders-1")
	f.passes(1)
}

func TestRequestsOfNewAndRaisedPods(t *testing.T) {
	for name, tt := range map[string]struct {
		policy v1alpha1.RequestsPolicy
		// wantNew and wantRaised return the expected request for a limit. With a nil wantRaised the request stays.
		wantNew, wantRaised func(f *fixture, limit int64) int64
	}{
		"template's request is kept": {
			wantNew: templateRequest, wantRaised: templateRequest,
		},
		"request follows the limit": {
			policy: v1alpha1.RequestsFollowLimit, wantNew: sameAsLimit, wantRaised: sameAsLimit,
		},
		"expected peak stays when the limit is raised": {
			policy:  v1alpha1.RequestsExpected,
			wantNew: func(f *fixture, _ int64) int64 { return f.injection().Spec.Memory.Request.Value() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.enforce(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = tt.policy })
			limit := requiredLimit(6)
			f.Expect(f.requests()).To(gomega.And(gomega.HaveLen(3), gomega.HaveEach(tt.wantNew(f, limit))))
			before := f.requests()["orders-0"]

			f.scaleIn()
			f.Eventually(f.limits).Should(gomega.And(gomega.HaveLen(2), gomega.HaveEach(requiredLimit(12))))
			wantRaised := before
			if tt.wantRaised != nil {
				wantRaised = tt.wantRaised(f, requiredLimit(12))
			}
			f.Expect(f.requests()).To(gomega.And(gomega.HaveLen(2), gomega.HaveEach(wantRaised)))
			f.Expect(f.pod("orders-0").Status.QOSClass).To(gomega.Equal(corev1.PodQOSBurstable))
		})
	}
}

func templateRequest(*fixture, int64) int64 { return 512 << 20 }

func sameAsLimit(_ *fixture, limit int64) int64 { return limit }

func TestRequestsExpectedInjectsExpectedPeak(t *testing.T) {
	f := newFixture(t)
	f.enforce(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = v1alpha1.RequestsExpected })
	f.Expect(f.injection().Spec.Memory.Request).To(equalBytes(f.app().Status.Expected.Value()))
	f.Expect(f.app().Status.Expected.Value()).To(gomega.And(gomega.BeNumerically(">", 512<<20), gomega.BeNumerically("<", requiredLimit(6))))
}

func TestGuaranteedPodsStayGuaranteed(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) {
		resources := memory("1Gi", "1Gi")
		resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		pods.Spec.Containers[0].Resources = resources
	})
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp()
	f.restartWithPlan()
	limit := f.injection().Spec.Memory.Limit.Value() // with one CPU the JVM requires less
	f.Expect(limit).To(gomega.BeNumerically(">", 1<<30))
	f.Expect(f.limits()).To(gomega.HaveEach(limit))
	f.Expect(f.requests()).To(gomega.HaveEach(limit))

	f.scaleIn()
	f.Eventually(f.limits).Should(gomega.And(gomega.HaveLen(2), gomega.HaveEach(gomega.BeNumerically(">", limit))))
	f.Expect(f.requests()).To(gomega.Equal(f.limits()))
	for _, pod := range f.pods() {
		f.Expect(pod.Status.QOSClass).To(gomega.Equal(corev1.PodQOSGuaranteed))
	}
}
