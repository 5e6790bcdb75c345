// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the two kinds of Streamweir.
//
// A StreamApp is the user's resource. It names the workload of a Kafka Streams application and the policy for its memory.
// Everything but the target is optional. No default is stored: the status has the effective values with their sources.
//
// A PodInjection is the input of the admission policy at the creation of a pod. Only the operator writes it.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=streamweir.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "streamweir.dev", Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that generated code expects.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds in this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &StreamApp{}, &StreamAppList{}, &PodInjection{}, &PodInjectionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
