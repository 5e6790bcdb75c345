// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"streamweir.dev/streamweir/internal/testobjects"
)

func TestNodePredicatePassesOnlyLossAndReturn(t *testing.T) {
	node := func(ready corev1.ConditionStatus) *corev1.Node { return testobjects.Node("a", ready) }
	tests := map[string]struct {
		before, after corev1.ConditionStatus
		want          bool
	}{
		"heartbeat does not pass":          {corev1.ConditionTrue, corev1.ConditionTrue, false},
		"loss passes":                      {corev1.ConditionTrue, corev1.ConditionUnknown, true},
		"return passes":                    {corev1.ConditionUnknown, corev1.ConditionTrue, true},
		"lost node's update does not pass": {corev1.ConditionUnknown, corev1.ConditionUnknown, false},
		"not ready node does not pass":     {corev1.ConditionTrue, corev1.ConditionFalse, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			update := event.UpdateEvent{ObjectOld: node(test.before), ObjectNew: node(test.after)}
			if got := nodeLostOrBack().Update(update); got != test.want {
				t.Errorf("the update passes: %v, want %v", got, test.want)
			}
		})
	}
	if !nodeLostOrBack().Delete(event.DeleteEvent{Object: node(corev1.ConditionTrue)}) {
		t.Error("the deletion of a node does not pass, though its pods are lost")
	}
}

func TestPassAfterAPossiblePodFailureDoesNotWait(t *testing.T) {
	cases := map[string]struct {
		change testobjects.Change[corev1.Pod]
		want   bool
	}{
		"raised limit": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources = nil }, false},
		"annotation":   {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"resize in progress": {func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending})
		}, false},
		"not ready": {func(p *corev1.Pod) { p.Status.Conditions = nil }, true},
		"ended":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"deleted":   {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(testobjects.Now)) }, true},
		"container restarted": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := testobjects.RunningPod(0, "1Gi"), testobjects.RunningPod(0, "1Gi", c.change)
			if got := mayHaveFailed(before, after); got != c.want {
				t.Errorf("mayHaveFailed is %v, want %v", got, c.want)
			}
		})
	}
}

func TestAppOfConfigMap(t *testing.T) {
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: testobjects.Namespace, Labels: map[string]string{labelStreamApp: testobjects.App},
	}}
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: testobjects.Namespace, Name: testobjects.App}}}
	wantNoDiff(t, "requests", want, (&StreamAppReconciler{}).appsOfConfigMap(t.Context(), own))
	if got := (&StreamAppReconciler{}).appsOfConfigMap(t.Context(), &corev1.ConfigMap{}); got != nil {
		t.Errorf("a ConfigMap without the label requests %v", got)
	}
}

func TestChangesAreForwardedUntilTheContextEnds(t *testing.T) {
	from := make(chan string, 1)
	to := make(chan event.TypedGenericEvent[types.NamespacedName])
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- (&changeForwarder{from: func() <-chan string { return from }, to: to}).Start(ctx) }()
	from <- "shop/orders"
	select {
	case got := <-to:
		wantNoDiff(t, "key", types.NamespacedName{Namespace: testobjects.Namespace, Name: testobjects.App}, got.Object)
	case <-ctx.Done():
		t.Fatal("the change was not forwarded")
	}
	from <- "shop/orders" // the receiver has ended
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the forwarder ended with %v", err)
	}
}

func wantNoDiff(t *testing.T, name string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
