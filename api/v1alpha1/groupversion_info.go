// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the two kinds of Streamweir.
//
// A StreamApp is what users write and read: it names a workload that runs a Kafka Streams application, and says how its
// memory is to be planned. Everything but the target is optional. Values that are not set have no stored default: what
// is in effect, and where it came from, stands in the status.
//
// A PodInjection is what the admission policy reads when a pod is created. Only the operator writes it.
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
