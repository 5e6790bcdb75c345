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

// requests gives the memory request in the spec of every pod.
func (w *world) requests() map[string]int64 {
	requests := map[string]int64{}
	for _, pod := range w.pods() {
		requests[pod.Name] = pod.Spec.Containers[0].Resources.Requests.Memory().Value()
	}
	return requests
}

// scaleIn takes one pod away and lets the others have its tasks.
func (w *world) scaleIn() {
	w.t.Helper()
	w.patchSet(`{"spec":{"replicas":2}}`)
	w.Eventually(w.readyPods).Should(gomega.HaveLen(2))
	w.share("orders-0", "orders-1")
	w.passes(1)
}

func TestRequestsOfNewAndRaisedPods(t *testing.T) {
	for name, tt := range map[string]struct {
		policy v1alpha1.RequestsPolicy
		// wantNew and wantRaised are the requests, given the limit.
		wantNew, wantRaised func(w *world, limit int64) int64
	}{
		"kept as the template has them": {
			wantNew: templateRequest, wantRaised: templateRequest,
		},
		"equal to the limit": {
			policy: v1alpha1.RequestsFollowLimit, wantNew: theLimit, wantRaised: theLimit,
		},
		"the expected peak, which a raise keeps": {
			policy:  v1alpha1.RequestsExpected,
			wantNew: func(w *world, _ int64) int64 { return w.injection().Spec.Memory.Request.Value() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.enforced(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = tt.policy })
			limit := needOfOne(6)
			w.Expect(w.requests()).To(gomega.And(gomega.HaveLen(3), gomega.HaveEach(tt.wantNew(w, limit))))
			before := w.requests()["orders-0"]

			w.scaleIn()
			w.Eventually(w.limits).Should(gomega.And(gomega.HaveLen(2), gomega.HaveEach(needOfOne(12))))
			wantRaised := before
			if tt.wantRaised != nil {
				wantRaised = tt.wantRaised(w, needOfOne(12))
			}
			w.Expect(w.requests()).To(gomega.And(gomega.HaveLen(2), gomega.HaveEach(wantRaised)))
			w.Expect(w.pod("orders-0").Status.QOSClass).To(gomega.Equal(corev1.PodQOSBurstable))
		})
	}
}

func templateRequest(*world, int64) int64 { return 512 << 20 }

func theLimit(_ *world, limit int64) int64 { return limit }

func TestTheExpectedRequestIsTheExpectedPeak(t *testing.T) {
	w := newWorld(t)
	w.enforced(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = v1alpha1.RequestsExpected })
	w.Expect(w.injection().Spec.Memory.Request).To(equalBytes(w.app().Status.Expected.Value()))
	w.Expect(w.app().Status.Expected.Value()).To(gomega.And(gomega.BeNumerically(">", 512<<20), gomega.BeNumerically("<", needOfOne(6))))
}

func TestGuaranteedPodsStayGuaranteed(t *testing.T) {
	w := newWorld(t)
	w.createSet(func(pods *corev1.PodTemplateSpec) {
		resources := memory("1Gi", "1Gi")
		resources.Requests[corev1.ResourceCPU], resources.Limits[corev1.ResourceCPU] = resource.MustParse("1"), resource.MustParse("1")
		pods.Spec.Containers[0].Resources = resources
	})
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp()
	w.restartInjected()
	limit := w.injection().Spec.Memory.Limit.Value() // with one CPU the JVM needs less than elsewhere
	w.Expect(limit).To(gomega.BeNumerically(">", 1<<30))
	w.Expect(w.limits()).To(gomega.HaveEach(limit))
	w.Expect(w.requests()).To(gomega.HaveEach(limit))

	w.scaleIn()
	w.Eventually(w.limits).Should(gomega.And(gomega.HaveLen(2), gomega.HaveEach(gomega.BeNumerically(">", limit))))
	w.Expect(w.requests()).To(gomega.Equal(w.limits()))
	for _, pod := range w.pods() {
		w.Expect(pod.Status.QOSClass).To(gomega.Equal(corev1.PodQOSGuaranteed))
	}
}
