// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

const (
	// AppName is the name of the StatefulSet and of the StreamApp; the pods are AppName-0, AppName-1, ...
	AppName = "shop"
	// AppImage is the image of the StatefulSet's container.
	AppImage = "example.org/shop:1"
)

// CreateStatefulSet creates the StatefulSet with a memory limit in its pod template. Its pods appear after StartNodes.
func (c *Cluster) CreateStatefulSet(replicas int32, limit string) {
	c.tb.Helper()
	labels := map[string]string{"app": AppName}
	c.Create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: AppName},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: AppName, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: AppImage,
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}},
				}}},
			},
		},
	})
}

// CreateStreamApp creates a StreamApp in mode Enforce whose target is the StatefulSet; spec has its other fields.
func (c *Cluster) CreateStreamApp(spec v1alpha1.StreamAppSpec) {
	c.tb.Helper()
	spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: AppName}
	spec.Mode = v1alpha1.ModeEnforce
	c.Create(&v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: AppName}, Spec: spec})
}
