// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StreamApp names a workload that runs a Kafka Streams application and configures the planning of its memory.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=streamapps,singular=streamapp,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a StreamApp must have at most 63 characters: it is a label value of the plan's ConfigMap"
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

	// spec is the desired behavior.
	// +required
	Spec StreamAppSpec `json:"spec,omitzero"`

	// status is the observed state and the plan.
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

// Mode is the degree to which the operator acts.
// +kubebuilder:validation:Enum=Observe;Hold;Enforce
type Mode string

const (
	// ModeObserve writes status, events and metrics, and changes nothing else.
	ModeObserve Mode = "Observe"

	// ModeHold writes status, events and metrics, and keeps limits, injection, plan and agent exactly as they are.
	ModeHold Mode = "Hold"

	// ModeEnforce also injects the plan into new pods and raises the limits of running pods.
	ModeEnforce Mode = "Enforce"
)

// StreamAppSpec is the desired behavior for one Kafka Streams application.
type StreamAppSpec struct {
	// targetRef names the workload that runs the application, in the namespace of the StreamApp. It is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetRef is immutable: create another StreamApp for another workload"
	TargetRef TargetRef `json:"targetRef,omitzero"`

	// container names the container that runs the application. If not set, the only container of the pod template is
	// used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="container must be a DNS label"
	Container string `json:"container,omitempty"`

	// mode is Observe (the operator writes status, events and metrics, and removes the injection), Enforce (it also
	// injects the plan into new pods and raises the limits of running pods) or Hold (it keeps limits, injection and plan
	// exactly as they are). If not set, the mode is Observe.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// memory configures the allowed limits and the goals of the plan.
	// +optional
	Memory MemorySpec `json:"memory,omitzero"`

	// kafka locates the Kafka group of the application. If not set, the tasks are taken from the reports of the
	// agents, or else from spec.streams.
	// +optional
	Kafka KafkaSpec `json:"kafka,omitzero"`

	// streams contains facts of the Kafka Streams application that no other source provides.
	// +optional
	Streams StreamsSpec `json:"streams,omitzero"`

	// jvm contains facts of the JVM that the operator cannot read from the pod template.
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
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be a DNS subdomain"
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

// MemorySpec configures the allowed limits and the goals of a plan.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.minLimit) || has(self.maxLimit)",message="minLimit requires maxLimit: without it nothing bounds the limit"
// +kubebuilder:validation:XValidation:rule="!has(self.minLimit) || !has(self.maxLimit) || quantity(string(self.minLimit)).compareTo(quantity(string(self.maxLimit))) <= 0",message="minLimit must not be larger than maxLimit"
type MemorySpec struct {
	// minLimit is the smallest memory limit that the operator may set on the container, from 64Mi to 16Ti. It requires
	// maxLimit. If neither is set, the operator keeps the limit of the pod template and plans within it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="minLimit must be at least 64Mi: a JVM with Kafka Streams does not start with less"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="minLimit must be at most 16Ti"
	MinLimit *resource.Quantity `json:"minLimit,omitempty"`

	// maxLimit is the largest memory limit that the operator may set on the container, from 64Mi to 16Ti. If only
	// maxLimit is set, the limit is never below that of the pod template, unless the template has more than maxLimit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="maxLimit must be at least 64Mi: a JVM with Kafka Streams does not start with less"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="maxLimit must be at most 16Ti"
	MaxLimit *resource.Quantity `json:"maxLimit,omitempty"`

	// podFailuresToTolerate is the number of pod failures after which every remaining pod must still fit its limit. If
	// not set, it is the number of pods that a rolling update of the workload takes away at once, at least 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PodFailuresToTolerate *int32 `json:"podFailuresToTolerate,omitempty"`

	// headroomPercent is the share of the limit, in percent, that the plan leaves free. If not set, it is 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	HeadroomPercent *int32 `json:"headroomPercent,omitempty"`

	// requests is the policy for the memory request of new pods: Keep leaves the request of the template, FollowLimit
	// sets it to the limit, Expected sets it to the expected peak. The QoS class of a pod never changes: a Guaranteed
	// pod keeps request and limit equal. If not set, the policy is Keep.
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

// RequestsPolicy is the policy for the memory request of new pods.
// +kubebuilder:validation:Enum=Keep;FollowLimit;Expected
type RequestsPolicy string

const (
	// RequestsKeep leaves the request of the pod template.
	RequestsKeep RequestsPolicy = "Keep"

	// RequestsFollowLimit sets the request to the limit.
	RequestsFollowLimit RequestsPolicy = "FollowLimit"

	// RequestsExpected sets the request to the expected peak of the plan.
	RequestsExpected RequestsPolicy = "Expected"
)

// Pin fixes the size of one region of a process.
type Pin struct {
	// region is the part of the process with a fixed size.
	// +required
	Region Region `json:"region,omitempty"`

	// size of the region in bytes.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="size must be larger than 0"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="size must be at most 16Ti"
	Size *resource.Quantity `json:"size,omitempty"`
}

// Region is a part of a process that a pin can fix.
// +kubebuilder:validation:Enum=Heap;Metaspace;CodeCache;Compiler;ThreadStacks;Collector;DirectMemory;BlockCache;Memtables;TableReaders;PageCache
type Region string

const (
	// RegionHeap is the Java heap.
	RegionHeap Region = "Heap"

	// RegionMetaspace is the class metadata, including the compressed class space.
	RegionMetaspace Region = "Metaspace"

	// RegionCodeCache is the compiled code.
	RegionCodeCache Region = "CodeCache"

	// RegionCompiler is the arenas of the JIT compilers.
	RegionCompiler Region = "Compiler"

	// RegionThreadStacks is the stacks of all threads.
	RegionThreadStacks Region = "ThreadStacks"

	// RegionCollector is the native memory of the garbage collector.
	RegionCollector Region = "Collector"

	// RegionDirectMemory is the buffers outside of the heap.
	RegionDirectMemory Region = "DirectMemory"

	// RegionBlockCache is the sum of the block caches of all RocksDB instances in the process. Pin it, and Memtables,
	// if the application bounds RocksDB itself with a RocksDBConfigSetter that shares one cache.
	RegionBlockCache Region = "BlockCache"

	// RegionMemtables is the sum of the memtables of all RocksDB instances in the process.
	RegionMemtables Region = "Memtables"

	// RegionTableReaders is the index and filter blocks that RocksDB keeps outside of its block cache.
	RegionTableReaders Region = "TableReaders"

	// RegionPageCache is the memory that is left free for the page cache.
	RegionPageCache Region = "PageCache"
)

// KafkaSpec locates the Kafka group of an application.
//
// +kubebuilder:validation:ExactlyOneOf=cluster;bootstrapServers
type KafkaSpec struct {
	// cluster names a Kafka cluster in the operator's configuration, which contains addresses and credentials.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="cluster must be a DNS label, like the names in the operator's configuration"
	Cluster string `json:"cluster,omitempty"`

	// bootstrapServers are addresses of brokers (host:port) that need no credentials. The operator must permit their
	// use.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=261
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^([A-Za-z0-9.-]+|\\\\[[0-9A-Fa-f:.]+\\\\]):[0-9]{1,5}$'))",message="every entry of bootstrapServers must be host:port"
	BootstrapServers []string `json:"bootstrapServers,omitempty"`

	// applicationId is the application.id of the application, which is also the name of its group. If not set, it is
	// the name of the StreamApp.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=249
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="applicationId must consist of letters, digits, '.', '_' and '-', like the name of a topic"
	ApplicationID string `json:"applicationId,omitempty"`
}
