// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodInjection configures the changes that the admission policy makes to the pods of one workload at their creation.
// It has the name of its StreamApp and is deleted with it. Only the operator writes it.
//
// Every API server keeps all PodInjections in memory, and the creation of a pod waits for them. They are small and
// change rarely.
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

	// spec is the injected content and the selection of pods.
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

// PodInjectionSpec is the injected content and the selection of pods.
//
// +kubebuilder:validation:XValidation:rule="self.options.startsWith('@') == (self.optionsVariable == 'JDK_JAVA_OPTIONS')",message="options must begin with '@' for JDK_JAVA_OPTIONS, and with -XX:VMOptionsFile for JAVA_TOOL_OPTIONS"
type PodInjectionSpec struct {
	// owner is the workload of the selected pods. Pods are matched by their controller.
	// +required
	Owner WorkloadOwner `json:"owner,omitzero"`

	// container names the container that runs the application. Pods without it are not changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// optionsVariable is the environment variable for the options.
	// +required
	OptionsVariable OptionsVariable `json:"optionsVariable,omitempty"`

	// options are the first part of the variable. The container's own value follows and therefore takes precedence.
	// +required
	Options JVMOptions `json:"options,omitempty"`

	// ownOptions follow the options if the container's env has no value of its own. If not set, the operator has not
	// examined envFrom, and a container with envFrom is not changed. Empty: envFrom provides no value.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=4096
	OwnOptions *string `json:"ownOptions,omitempty"`

	// planConfigMap is the name of the ConfigMap that contains the plan.
	// +required
	// +kubebuilder:validation:MinLength=12
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.startsWith('streamweir-') && !format.dns1123Subdomain().validate(self).hasValue()",message="planConfigMap must be the name of a ConfigMap and begin with streamweir-"
	PlanConfigMap string `json:"planConfigMap,omitempty"`

	// planRevision is the revision of the plan. The pod gets it as the annotation streamweir.dev/plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanRevision string `json:"planRevision,omitempty"`

	// agentConfigMap is the name of the ConfigMap that contains the agent. If not set, the pods get no agent.
	// +optional
	// +kubebuilder:validation:MinLength=12
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.startsWith('streamweir-') && !format.dns1123Subdomain().validate(self).hasValue()",message="agentConfigMap must be the name of a ConfigMap and begin with streamweir-"
	AgentConfigMap string `json:"agentConfigMap,omitempty"`

	// excludedImages are images, as the container names them, whose injected containers failed to start. Pods with one
	// of them are not changed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ExcludedImages []string `json:"excludedImages,omitempty"`

	// memory is the memory to set. If not set, limit and request stay unchanged.
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

// InjectedMemory is the memory of the container. It applies to pods whose limit is forLimit, the limit of the template
// from which it was computed. If the template has changed since, the template takes precedence.
//
// +kubebuilder:validation:XValidation:rule="has(self.forImage) || quantity(string(self.limit)).compareTo(quantity(string(self.forLimit))) >= 0",message="forImage must be set if limit is smaller than forLimit"
// +kubebuilder:validation:XValidation:rule="!has(self.request) || quantity(string(self.request)).compareTo(quantity(string(self.limit))) <= 0",message="request must not be larger than limit"
type InjectedMemory struct {
	// forLimit is the limit that a pod must have for this memory to apply.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="forLimit must be larger than 0"
	ForLimit *resource.Quantity `json:"forLimit,omitempty"`

	// forImage is the image that the container must have for this memory to apply. It is set if limit is smaller than
	// forLimit, which requires an image that has proven to be bounded.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ForImage string `json:"forImage,omitempty"`

	// limit that the pod gets.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="limit must be larger than 0"
	Limit *resource.Quantity `json:"limit,omitempty"`

	// request that the pod gets. If not set, the pod keeps its own. A Guaranteed pod always gets the limit as its
	// request, and no other pod becomes Guaranteed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="request must be larger than 0"
	Request *resource.Quantity `json:"request,omitempty"`
}
