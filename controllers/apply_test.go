// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

// podWrites records the patches of pods by the pod's name, sorted: they run in parallel. A patch with an error is not recorded.
type podWrites struct {
	resizeErrors, refreshErrors map[string]error

	mu                 sync.Mutex
	resized, refreshed []string
}

// record adds a pod to a list.
func (w *podWrites) record(list *[]string, pod string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, pod)
	slices.Sort(*list)
}

// reconciler returns a reconciler that can only patch pods.
func (w *podWrites) reconciler() *StreamAppReconciler {
	return &StreamAppReconciler{Client: interceptor.NewClient(nil, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
		Patch: func(_ context.Context, _ client.WithWatch, pod client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if err := w.refreshErrors[pod.GetName()]; err != nil {
				return err
			}
			w.record(&w.refreshed, pod.GetName())
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, pod client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			if err := w.resizeErrors[pod.GetName()]; err != nil {
				return err
			}
			w.record(&w.resized, pod.GetName())
			return nil
		},
	})}
}

// markWritten makes the plan and the injection of a decision those of an earlier pass, so that only pods are left to be written.
func markWritten(d *decision.Decision) {
	d.Facts.PlanConfigMap = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{UID: d.Facts.Workload.UID}, {UID: d.Facts.App.UID}},
			Annotations:     map[string]string{decision.AnnotationMemory: d.MemoryText()},
		},
		Data: planfile.WithToken(d.Files, nil),
	}
	d.Facts.Injection = &v1alpha1.PodInjection{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: d.Facts.App.UID}}}, Spec: *d.Injection,
	}
}

func TestErrorOfOnePodDoesNotAffectOthers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	conflict := apierrors.NewConflict(pods, "orders-0", errors.New("the object has been modified"))
	failure := apierrors.NewInternalError(errors.New("failed calling webhook"))
	type failures = map[string]error
	tests := map[string]struct {
		resizeErrors, refreshErrors failures
		wantResized, wantRefreshed  []string
		// wantErrors are parts of the error, wantInStatus those that remain without conflicts.
		wantErrors, wantInStatus []string
	}{
		"no error": {
			wantResized: []string{"orders-0", "orders-1", "orders-2"}, wantRefreshed: []string{"orders-0", "orders-1", "orders-2"},
		},
		"a missing pod is skipped": {
			resizeErrors: failures{"orders-1": apierrors.NewNotFound(pods, "orders-1")}, refreshErrors: failures{"orders-1": apierrors.NewNotFound(pods, "orders-1")},
			wantResized: []string{"orders-0", "orders-2"}, wantRefreshed: []string{"orders-0", "orders-2"},
		},
		"a conflict is not in the status": {
			resizeErrors: failures{"orders-0": conflict}, refreshErrors: failures{"orders-0": conflict},
			wantResized: []string{"orders-1", "orders-2"}, wantRefreshed: []string{"orders-1", "orders-2"},
			wantErrors: []string{"raising the limit of pod orders-0", "notifying pod orders-0"},
		},
		"a failure is in the status": {
			resizeErrors: failures{"orders-1": failure}, refreshErrors: failures{"orders-1": failure},
			wantResized: []string{"orders-0", "orders-2"}, wantRefreshed: []string{"orders-0", "orders-2"},
			wantErrors:   []string{"raising the limit of pod orders-1", "notifying pod orders-1"},
			wantInStatus: []string{"raising the limit of pod orders-1", "notifying pod orders-1"},
		},
		"every failure is in the status": {
			resizeErrors: failures{"orders-1": failure, "orders-2": failure}, refreshErrors: failures{"orders-1": failure, "orders-2": failure},
			wantResized: []string{"orders-0"}, wantRefreshed: []string{"orders-0"},
			wantErrors: []string{"raising the limit of pod orders-1", "raising the limit of pod orders-2", "notifying pod orders-1", "notifying pod orders-2"},
			wantInStatus: []string{
				"raising the limit of pod orders-1", "raising the limit of pod orders-2", "notifying pod orders-1", "notifying pod orders-2",
			},
		},
		"a conflict does not hide a later failure of the same kind": {
			resizeErrors: failures{"orders-0": conflict, "orders-2": failure}, refreshErrors: failures{"orders-0": failure, "orders-2": conflict},
			wantResized: []string{"orders-1"}, wantRefreshed: []string{"orders-1"},
			wantErrors: []string{
				"raising the limit of pod orders-0", "raising the limit of pod orders-2", "notifying pod orders-0", "notifying pod orders-2",
			},
			wantInStatus: []string{"raising the limit of pod orders-2", "notifying pod orders-0"},
		},
		"a conflict does not hide a failure of another kind": {
			resizeErrors: failures{"orders-0": conflict}, refreshErrors: failures{"orders-2": failure},
			wantResized: []string{"orders-1", "orders-2"}, wantRefreshed: []string{"orders-0", "orders-1"},
			wantErrors:   []string{"raising the limit of pod orders-0", "notifying pod orders-2"},
			wantInStatus: []string{"notifying pod orders-2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &decision.Decision{
				Facts: decision.Facts{
					App: testobjects.StreamApp(), Workload: &decision.Workload{UID: "workload-uid"}, Container: &decision.Container{Name: testobjects.Container},
				},
				Files: map[string]string{"revision": "second"}, Revision: "second", Injection: &v1alpha1.PodInjectionSpec{},
			}
			markWritten(d)
			for _, pod := range []string{"orders-0", "orders-1", "orders-2"} {
				d.Resizes = append(d.Resizes, decision.Resize{Pod: pod, From: 1, To: 2})
				d.Refreshes = append(d.Refreshes, decision.PodRefresh{Pod: pod, Refresh: decision.Refresh{Count: 1, At: testobjects.Now}})
			}
			writes := &podWrites{resizeErrors: test.resizeErrors, refreshErrors: test.refreshErrors}
			outcome, err := writes.reconciler().apply(t.Context(), d)
			wantNoDiff(t, "resized pods", test.wantResized, writes.resized)
			wantNoDiff(t, "refreshed pods", test.wantRefreshed, writes.refreshed)
			if len(outcome.Resized) != len(test.wantResized) {
				t.Errorf("accepted resizes = %v, want those of %v", outcome.Resized, test.wantResized)
			}
			wantErrorWith(t, "error", err, test.wantErrors)
			wantErrorWith(t, "error without conflicts", utilerrors.FilterOut(err, apierrors.IsConflict), test.wantInStatus)
		})
	}
}

// wantErrorWith expects an error of one line with these parts and no other error; nil without parts.
func wantErrorWith(t *testing.T, name string, err error, parts []string) {
	t.Helper()
	text := ""
	if err != nil {
		text = err.Error()
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s = %q, want %q in it", name, text, part)
		}
	}
	if count := strings.Count(text, "of pod ") + strings.Count(text, "notifying pod "); count != len(parts) || strings.Contains(text, "\n") {
		t.Errorf("%s = %q, want one line with %d errors", name, text, len(parts))
	}
}
