// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodInjection tells the admission policy what to inject into pods of one workload when they are created. It has the name
// of the StreamApp that it belongs to, and goes with it. Only the operator writes it.
//
// Every API server keeps all PodInjections in memory, and a pod's creation waits for them: they are small, and change
// seldom.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podinjections,singular=podinjection,scope=Namespaced
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.owner.kind`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner.name`
// +kubebuilder:printcolumn:name="Limit",type=string,JSONPath=`.spec.memory.limit`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.spec.planRevision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodInjection struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is injected into which pods.
	// +required
	Spec PodInjectionSpec `json:"spec,omitzero"`
}

// PodInjectionList is a list of PodInjections.
//
// +kubebuilder:object:root=true
type PodInjectionList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the PodInjections.
	Items []PodInjection `json:"items"`
}

// PodInjectionSpec says what is injected into which pods.
//
// +kubebuilder:validation:XValidation:rule="self.options.startsWith('@') == (self.optionsVariable == 'JDK_JAVA_OPTIONS')",message="options must begin with '@' for JDK_JAVA_OPTIONS, and be -XX:VMOptionsFile for JAVA_TOOL_OPTIONS"
type PodInjectionSpec struct {
	// owner is the workload whose pods are meant. They are matched by their controller.
	// +required
	Owner WorkloadOwner `json:"owner,omitzero"`

	// container names the container that runs the application. Pods without it are left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// optionsVariable is the environment variable that takes the options.
	// +required
	OptionsVariable OptionsVariable `json:"optionsVariable,omitempty"`

	// options come first in the variable; the container's own value follows, so that it wins.
	// +required
	Options JVMOptions `json:"options,omitempty"`

	// ownOptions follow the options where the container's env has no value of its own. Not set: the operator has not
	// looked at what envFrom may give, and a container with envFrom is left alone. Empty: envFrom gives none.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=4096
	OwnOptions *string `json:"ownOptions,omitempty"`

	// planConfigMap is the name of the ConfigMap that holds the plan.
	// +required
	// +kubebuilder:validation:MinLength=12
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.startsWith('streamweir-') && !format.dns1123Subdomain().validate(self).hasValue()",message="planConfigMap must be the name of a ConfigMap and begin with streamweir-"
	PlanConfigMap string `json:"planConfigMap,omitempty"`

	// planRevision names the plan. The pod gets it as the annotation streamweir.dev/plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanRevision string `json:"planRevision,omitempty"`

	// agentConfigMap is the name of the ConfigMap that holds the agent. Not set: the pods get none.
	// +optional
	// +kubebuilder:validation:MinLength=12
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.startsWith('streamweir-') && !format.dns1123Subdomain().validate(self).hasValue()",message="agentConfigMap must be the name of a ConfigMap and begin with streamweir-"
	AgentConfigMap string `json:"agentConfigMap,omitempty"`

	// excludedImages are images, as the container names them, with which an injected container did not start. Pods with one of
	// them are left alone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ExcludedImages []string `json:"excludedImages,omitempty"`

	// memory is what to set. Not set: limit and request stay as they are.
	// +optional
	Memory InjectedMemory `json:"memory,omitzero"`
}

// WorkloadOwner names the workload that owns the pods.
type WorkloadOwner struct {
	// kind of the workload: StatefulSet or Deployment.
	// +required
	Kind WorkloadKind `json:"kind,omitempty"`

	// name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// InjectedMemory is the memory of the container. It holds for pods whose limit is forLimit, the limit in the template that
// it was computed from: a template that was changed since then wins.
//
// +kubebuilder:validation:XValidation:rule="has(self.forImage) || quantity(string(self.limit)).compareTo(quantity(string(self.forLimit))) >= 0",message="forImage must be set where limit is smaller than forLimit"
// +kubebuilder:validation:XValidation:rule="!has(self.request) || quantity(string(self.request)).compareTo(quantity(string(self.limit))) <= 0",message="request must not be larger than limit"
type InjectedMemory struct {
	// forLimit is the limit that the pod must have for the memory to be set.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="forLimit must be larger than 0"
	ForLimit *resource.Quantity `json:"forLimit,omitempty"`

	// forImage is the image that the container must have for the memory to be set. It is set where limit is smaller than
	// forLimit, which only an image may get that was seen to run within its bounds.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ForImage string `json:"forImage,omitempty"`

	// limit that the pod gets.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="limit must be larger than 0"
	Limit *resource.Quantity `json:"limit,omitempty"`

	// request that the pod gets. Not set: the pod keeps its own. A Guaranteed pod gets the limit as its request, whatever
	// stands here, and no other pod becomes Guaranteed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="request must be larger than 0"
	Request *resource.Quantity `json:"request,omitempty"`
}
