// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StreamApp says which workload runs a Kafka Streams application, and how its memory is to be planned.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=streamapps,singular=streamapp,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a StreamApp must have at most 63 characters: the plan's ConfigMap bears it as a label"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`
// +kubebuilder:printcolumn:name="Tasks",type=integer,JSONPath=`.status.tasks`
// +kubebuilder:printcolumn:name="Limit",type=string,JSONPath=`.status.limit`
// +kubebuilder:printcolumn:name="Required",type=string,JSONPath=`.status.requiredLimit`
// +kubebuilder:printcolumn:name="Tolerates",type=integer,JSONPath=`.status.podFailuresTolerated`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StreamApp struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is wanted.
	// +required
	Spec StreamAppSpec `json:"spec,omitzero"`

	// status says what was observed and planned.
	// +optional
	Status StreamAppStatus `json:"status,omitzero"`
}

// StreamAppList is a list of StreamApps.
//
// +kubebuilder:object:root=true
type StreamAppList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the StreamApps.
	Items []StreamApp `json:"items"`
}

// Mode says whether the operator only looks, or acts as well.
// +kubebuilder:validation:Enum=Observe;Enforce
type Mode string

const (
	// ModeObserve writes status, events and metrics, and changes nothing else.
	ModeObserve Mode = "Observe"

	// ModeEnforce also injects the plan into new pods and raises limits of running ones.
	ModeEnforce Mode = "Enforce"
)

// StreamAppSpec says what is wanted for one Kafka Streams application.
type StreamAppSpec struct {
	// targetRef names the workload that runs the application, in the namespace of the StreamApp. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetRef cannot be changed: create another StreamApp for another workload"
	TargetRef TargetRef `json:"targetRef,omitzero"`

	// container names the container that runs the application. Not set: the only container of the pod template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="container must be a DNS label, as the name of a container is"
	Container string `json:"container,omitempty"`

	// mode is Observe (the operator writes status, events and metrics) or Enforce (it also injects the plan into new pods
	// and raises the limits of running ones). Not set: Observe.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// memory says within which limits to plan, and for what.
	// +optional
	Memory MemorySpec `json:"memory,omitzero"`

	// kafka says where the application's group is found. Not set: the tasks are taken from the reports of the pods' agents, else
	// from spec.streams.
	// +optional
	Kafka KafkaSpec `json:"kafka,omitzero"`

	// streams holds facts of the Kafka Streams application that no other source shows.
	// +optional
	Streams StreamsSpec `json:"streams,omitzero"`

	// jvm holds facts of the JVM that the operator cannot read from the pod template.
	// +optional
	JVM JVMSpec `json:"jvm,omitzero"`
}

// TargetRef names a workload in the same namespace.
type TargetRef struct {
	// apiVersion of the workload: apps/v1.
	// +required
	// +kubebuilder:validation:Enum=apps/v1
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the workload: StatefulSet or Deployment.
	// +required
	Kind WorkloadKind `json:"kind,omitempty"`

	// name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be a DNS subdomain, as the name of a workload is"
	Name string `json:"name,omitempty"`
}

// WorkloadKind is a kind of workload that can run a Kafka Streams application.
// +kubebuilder:validation:Enum=StatefulSet;Deployment
type WorkloadKind string

const (
	// KindStatefulSet is a StatefulSet of apps/v1.
	KindStatefulSet WorkloadKind = "StatefulSet"

	// KindDeployment is a Deployment of apps/v1.
	KindDeployment WorkloadKind = "Deployment"
)

// MemorySpec says within which limits to plan, and for what.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.minLimit) || !has(self.maxLimit) || quantity(string(self.minLimit)).compareTo(quantity(string(self.maxLimit))) <= 0",message="minLimit must not be larger than maxLimit"
type MemorySpec struct {
	// minLimit is the smallest memory limit that the operator may give the container, at least 64Mi. If neither minLimit
	// nor maxLimit is set, the limit in the pod template is the envelope, and the operator does not touch it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="minLimit must be at least 64Mi: a JVM with Kafka Streams does not start in less"
	MinLimit *resource.Quantity `json:"minLimit,omitempty"`

	// maxLimit is the largest memory limit that the operator may give the container, at least 64Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="maxLimit must be at least 64Mi: a JVM with Kafka Streams does not start in less"
	MaxLimit *resource.Quantity `json:"maxLimit,omitempty"`

	// podFailuresToTolerate is how many pods may be lost, from those that run now, so that every survivor still fits. Not set:
	// the larger of 1 and the most pods of the application that share a node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PodFailuresToTolerate *int32 `json:"podFailuresToTolerate,omitempty"`

	// headroomPercent is the share of the limit, in percent, that the plan leaves free. Not set: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	HeadroomPercent *int32 `json:"headroomPercent,omitempty"`

	// requests says what becomes of the memory request of new pods: Keep leaves it as the template has it; FollowLimit makes
	// it equal to the limit; Expected makes it the expected peak. The QoS class of a pod never changes: a Guaranteed pod
	// keeps request and limit equal. Not set: Keep.
	// +optional
	Requests RequestsPolicy `json:"requests,omitempty"`

	// pins fix the size of regions that the operator would otherwise plan.
	// +optional
	// +listType=map
	// +listMapKey=region
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=11
	Pins []Pin `json:"pins,omitempty"`
}

// RequestsPolicy says what becomes of the memory request of new pods.
// +kubebuilder:validation:Enum=Keep;FollowLimit;Expected
type RequestsPolicy string

const (
	// RequestsKeep leaves the request as the pod template has it.
	RequestsKeep RequestsPolicy = "Keep"

	// RequestsFollowLimit makes the request equal to the limit.
	RequestsFollowLimit RequestsPolicy = "FollowLimit"

	// RequestsExpected makes the request the peak that the plan expects.
	RequestsExpected RequestsPolicy = "Expected"
)

// Pin fixes the size of one region of a process.
type Pin struct {
	// region is the part of the process whose size is fixed.
	// +required
	Region Region `json:"region,omitempty"`

	// size of the region in bytes.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="size must be larger than 0"
	Size *resource.Quantity `json:"size,omitempty"`
}

// Region is a part of a process that a pin can fix.
// +kubebuilder:validation:Enum=Heap;Metaspace;CodeCache;Compiler;ThreadStacks;Collector;DirectMemory;BlockCache;Memtables;TableReaders;PageCache
type Region string

const (
	// RegionHeap is the Java heap.
	RegionHeap Region = "Heap"

	// RegionMetaspace is what class metadata takes, with its compressed class space.
	RegionMetaspace Region = "Metaspace"

	// RegionCodeCache is what compiled code takes.
	RegionCodeCache Region = "CodeCache"

	// RegionCompiler is the arenas of the JIT compilers.
	RegionCompiler Region = "Compiler"

	// RegionThreadStacks is the stacks of all threads.
	RegionThreadStacks Region = "ThreadStacks"

	// RegionCollector is what the garbage collector keeps beside the heap.
	RegionCollector Region = "Collector"

	// RegionDirectMemory is buffers outside the heap.
	RegionDirectMemory Region = "DirectMemory"

	// RegionBlockCache is the block caches of all RocksDB instances in the process together. Pin it, and Memtables, where
	// the application bounds RocksDB itself with a RocksDBConfigSetter that shares one cache.
	RegionBlockCache Region = "BlockCache"

	// RegionMemtables is the memtables of all RocksDB instances in the process together.
	RegionMemtables Region = "Memtables"

	// RegionTableReaders is the index and filter blocks that RocksDB keeps outside its block cache.
	RegionTableReaders Region = "TableReaders"

	// RegionPageCache is what is left free for the page cache.
	RegionPageCache Region = "PageCache"
)

// KafkaSpec says where the application's group is found.
//
// +kubebuilder:validation:ExactlyOneOf=cluster;bootstrapServers
type KafkaSpec struct {
	// cluster names a Kafka cluster in the operator's configuration, which holds addresses and credentials.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="cluster must be a DNS label, as the names in the operator's configuration are"
	Cluster string `json:"cluster,omitempty"`

	// bootstrapServers are addresses of brokers (host:port) that need no credentials. Only where the operator permits it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=261
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^([A-Za-z0-9.-]+|\\\\[[0-9A-Fa-f:.]+\\\\]):[0-9]{1,5}$'))",message="bootstrapServers must each be host:port"
	BootstrapServers []string `json:"bootstrapServers,omitempty"`

	// applicationId is the application.id of the application, and so the name of its group. Not set: the name of the
	// StreamApp.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=249
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="applicationId must consist of letters, digits, '.', '_' and '-', as names of topics do"
	ApplicationID string `json:"applicationId,omitempty"`
}
