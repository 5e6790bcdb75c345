// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// pagedPods is an API server with pods, of which the last mounts a ConfigMap. It refuses a list without a limit.
type pagedPods struct {
	t     *testing.T
	pods  int
	lists int
}

func (p *pagedPods) reader() client.Reader {
	return interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			pods := list.(*corev1.PodList)
			asked := (&client.ListOptions{}).ApplyOptions(options)
			if asked.Limit != podPage {
				p.t.Errorf("a list has the limit %d, want %d", asked.Limit, podPage)
			}
			p.lists++
			first, _ := strconv.Atoi(asked.Continue)
			for i := first; i < min(first+podPage, p.pods); i++ {
				pods.Items = append(pods.Items, corev1.Pod{})
			}
			if first+podPage < p.pods {
				pods.Continue = strconv.Itoa(first + podPage)
				return nil
			}
			pods.Items = append(pods.Items, corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
				Name: v1alpha1.PlanVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "streamweir-plan-orders"},
				}},
			}}}})
			return nil
		},
	})
}

func TestPodsThatMountAConfigMapAreListedInPages(t *testing.T) {
	pods := &pagedPods{t: t, pods: 3*podPage + 1}
	r := &StreamAppReconciler{APIReader: pods.reader()}
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "streamweir-plan-orders"}}
	if mounted, err := r.mounted(t.Context(), plan); !mounted || err != nil || pods.lists != 4 {
		t.Errorf("mounted = %t (%v) after %d lists, want true after 4", mounted, err, pods.lists)
	}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "streamweir-plan-payments"}}
	if mounted, err := r.mounted(t.Context(), other); mounted || err != nil {
		t.Errorf("mounted = %t (%v), want false", mounted, err)
	}
}
