// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Target is the kind and name of a workload.
type Target struct {
	Kind v1alpha1.WorkloadKind
	Name string
}

// String returns kind/name.
func (t Target) String() string { return string(t.Kind) + "/" + t.Name }

// TargetOf returns the target of a StreamApp.
func TargetOf(app *v1alpha1.StreamApp) Target {
	return Target{app.Spec.TargetRef.Kind, app.Spec.TargetRef.Name}
}

// OwnerOf returns the StatefulSet or Deployment that created a pod; false for another owner, or none. The admission policy applies the same
// rule: the controller reference, and for a Deployment the name of the ReplicaSet without the pod-template hash
// (k8s.io/kubernetes pkg/controller/deployment/sync.go, getNewReplicaSet).
func OwnerOf(pod *corev1.Pod) (Target, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return Target{}, false // other groups have kinds of the same names
	}
	switch owner.Kind {
	case string(v1alpha1.KindStatefulSet):
		return Target{v1alpha1.KindStatefulSet, owner.Name}, true
	case "ReplicaSet":
		hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		name, found := strings.CutSuffix(owner.Name, "-"+hash)
		return Target{v1alpha1.KindDeployment, name}, found && hash != ""
	default:
		return Target{}, false
	}
}
