// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestStatefulSetRollingOut(t *testing.T) {
	partition := func(updated int32) testobjects.Change[appsv1.StatefulSet] {
		return func(s *appsv1.StatefulSet) {
			s.Status.UpdateRevision = "2"
			s.Status.UpdatedReplicas = updated
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
		}
	}
	onDelete := func(s *appsv1.StatefulSet) {
		s.Status.UpdateRevision = "2"
		s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	}
	cases := map[string]struct {
		change testobjects.Change[appsv1.StatefulSet]
		want   bool
	}{
		"all pods have the same revision":                        {func(*appsv1.StatefulSet) {}, false},
		"new revision":                                           {func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "2" }, true},
		"changed, not yet observed":                              {func(s *appsv1.StatefulSet) { s.Generation = 2 }, true},
		"new revision with OnDelete: pods are not replaced":      {onDelete, false},
		"partition, pods above it are old":                       {partition(0), true},
		"partition, pods above it are new: may stay so for long": {partition(1), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := statefulSetOf(testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"), c.change)).RollingOut; got != c.want {
				t.Errorf("RollingOut = %t, want %t", got, c.want)
			}
		})
	}
}

func TestDeploymentRollingOut(t *testing.T) {
	progressing := func(status corev1.ConditionStatus, reason string) testobjects.Change[appsv1.Deployment] {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason}}
		}
	}
	cases := map[string]struct {
		change testobjects.Change[appsv1.Deployment]
		want   bool
	}{
		"all pods are new":                         {func(*appsv1.Deployment) {}, false},
		"some pods are old":                        {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, true},
		"changed, not yet observed":                {func(d *appsv1.Deployment) { d.Generation = 2 }, true},
		"surge: old pods beside all the new ones":  {func(d *appsv1.Deployment) { d.Status.Replicas = 4 }, false},
		"last new pod created, but not available":  {progressing(corev1.ConditionTrue, "ReplicaSetUpdated"), true},
		"complete, whatever happens to pods later": {progressing(corev1.ConditionTrue, "NewReplicaSetAvailable"), false},
		"incomplete for longer than its deadline":  {progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := deploymentOf(testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), c.change)).RollingOut; got != c.want {
				t.Errorf("RollingOut = %t, want %t", got, c.want)
			}
		})
	}
}

func TestWorkload(t *testing.T) {
	template := testobjects.PodTemplate("1Gi")
	inOrder := testobjects.StatefulSet(2, template, func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = "" })
	oneReplica := testobjects.Deployment(3, template, func(d *appsv1.Deployment) { d.Spec.Replicas = nil })
	failing := testobjects.Deployment(3, template, creationFails)
	cases := map[string]struct {
		got, want *Workload
	}{
		"none": {workloadOf(nil, nil), nil},
		"StatefulSet, OrderedReady by default": {workloadOf(inOrder, nil), &Workload{
			Kind: v1alpha1.KindStatefulSet, Name: testobjects.App, UID: "workload-uid", Replicas: 2, StartsInOrder: true, Template: &inOrder.Spec.Template,
		}},
		"Deployment, one replica by default": {workloadOf(nil, oneReplica), &Workload{
			Kind: v1alpha1.KindDeployment, Name: testobjects.App, UID: "workload-uid", Replicas: 1, RollingOut: false, Template: &oneReplica.Spec.Template,
		}},
		"Deployment, creation of pods fails": {workloadOf(nil, failing), &Workload{
			Kind: v1alpha1.KindDeployment, Name: testobjects.App, UID: "workload-uid", Replicas: 3, Template: &failing.Spec.Template,
			CreateFailure: "exceeded quota: shared, requested: limits.memory=2Gi, used: limits.memory=3Gi, limited: limits.memory=4Gi",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantNoDiff(t, "workload", c.want, c.got) })
	}
}
