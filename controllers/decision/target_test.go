// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwnerOf(t *testing.T) {
	pod := func(apiVersion, kind, name, hash string, controller bool) *corev1.Pod {
		owned := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller},
		}}}
		if hash != "" {
			owned.Labels = map[string]string{"pod-template-hash": hash}
		}
		return owned
	}
	tests := map[string]struct {
		pod *corev1.Pod
		// want is kind/name; empty for no owner.
		want string
	}{
		"StatefulSet":                             {pod("apps/v1", "StatefulSet", "orders", "", true), "StatefulSet/orders"},
		"ReplicaSet of a Deployment":              {pod("apps/v1", "ReplicaSet", "orders-6b9f4d5c7", "6b9f4d5c7", true), "Deployment/orders"},
		"Deployment with a name like a hash":      {pod("apps/v1", "ReplicaSet", "orders-abc-6b9", "6b9", true), "Deployment/orders-abc"},
		"ReplicaSet without a Deployment":         {pod("apps/v1", "ReplicaSet", "orders", "", true), ""},
		"ReplicaSet whose name has another hash":  {pod("apps/v1", "ReplicaSet", "orders-111", "222", true), ""},
		"hash that is only a suffix of the other": {pod("apps/v1", "ReplicaSet", "orders-x6b9", "6b9", true), ""},
		"Job":                              {pod("batch/v1", "Job", "orders", "", true), ""},
		"owner that is not the controller": {pod("apps/v1", "StatefulSet", "orders", "", false), ""},
		"StatefulSet of another API group": {pod("apps.kruise.io/v1beta1", "StatefulSet", "orders", "", true), ""},
		"ReplicaSet of another API group":  {pod("example.com/v1", "ReplicaSet", "orders-6b9", "6b9", true), ""},
		"no owner":                         {&corev1.Pod{}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target, owned := OwnerOf(test.pod)
			if owned != (test.want != "") || (owned && target.String() != test.want) {
				t.Errorf("OwnerOf = %v, %v; want %q", target, owned, test.want)
			}
		})
	}
}
