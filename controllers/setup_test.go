// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestNodesWakeOnlyWhenTheyTurn(t *testing.T) {
	turned := nodeTurned()
	cases := map[string]struct {
		before, after corev1.ConditionStatus
		want          bool
	}{
		"it beats on":             {corev1.ConditionTrue, corev1.ConditionTrue, false},
		"it is lost":              {corev1.ConditionTrue, corev1.ConditionUnknown, true},
		"it is back":              {corev1.ConditionUnknown, corev1.ConditionTrue, true},
		"it stays lost":           {corev1.ConditionUnknown, corev1.ConditionUnknown, false},
		"it says it is not ready": {corev1.ConditionTrue, corev1.ConditionFalse, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := turned.Update(event.UpdateEvent{ObjectOld: node("a", c.before), ObjectNew: node("a", c.after)}); got != c.want {
				t.Errorf("wakes %v, want %v", got, c.want)
			}
		})
	}
	if !turned.Delete(event.DeleteEvent{Object: node("a", corev1.ConditionTrue)}) {
		t.Error("a node that is deleted wakes no one, though its pods are lost")
	}
}

func TestAppOfConfigMap(t *testing.T) {
	ours := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Labels: map[string]string{labelStreamApp: testApp}}}
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: testApp}}}
	wantNoDiff(t, "requests", want, appOfConfigMap(t.Context(), ours))
	if got := appOfConfigMap(t.Context(), &corev1.ConfigMap{}); got != nil {
		t.Errorf("a ConfigMap of someone else's wakes %v", got)
	}
}

func TestChangesOfGroupsAreForwarded(t *testing.T) {
	changes := make(chan string, 1)
	to := make(chan event.TypedGenericEvent[types.NamespacedName])
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- (&changeForwarder{from: func() <-chan string { return changes }, to: to}).Start(ctx) }()
	changes <- "shop/orders"
	select {
	case got := <-to:
		wantNoDiff(t, "key", types.NamespacedName{Namespace: testNamespace, Name: testApp}, got.Object)
	case <-ctx.Done():
		t.Fatal("the change was not forwarded")
	}
	changes <- "shop/orders" // no one takes it any more
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
