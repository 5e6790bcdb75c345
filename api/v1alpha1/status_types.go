// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Maximum sizes of the lists in a status. They keep it under 32 KiB for an application of any size.
const (
	// MaxLines is the largest number of lines in a status.
	MaxLines = 40

	// MaxSettings is the largest number of settings in a status.
	MaxSettings = 40

	// MaxDivergentPods is the largest number of pods in a status.
	MaxDivergentPods = 48

	// MaxImages is the largest number of images in a status.
	MaxImages = 5

	// MaxWarnings is the largest number of warnings in a status.
	MaxWarnings = 12

	// MaxText is the largest number of characters of a warning, or of a message about a pod.
	MaxText = 160

	// MaxConditionText is the largest length of the message of a condition with which the status stays under 32 KiB.
	// The schema of conditions permits more.
	MaxConditionText = 480
)

// StreamAppStatus is the observed state and the plan. It is computed anew in every pass.
//
// +kubebuilder:validation:MinProperties=1
type StreamAppStatus struct {
	// conditions are Ready, AssignmentKnown, Fits, CascadeSafe, Applied and Compatible. All are positive and always
	// present.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec for which this status was computed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// mode in effect.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// pods is the number of running pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Pods *int32 `json:"pods,omitempty"`

	// unavailablePods is the number of replicas that are not running.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UnavailablePods *int32 `json:"unavailablePods,omitempty"`

	// podsUnavailableSinceTime is the time since which pods are unavailable that are not expected back: no replacement is
	// pending, or more pods are unavailable than the plan covers.
	// After 30 seconds the missing pods count as pod failures.
	// +optional
	PodsUnavailableSinceTime *metav1.Time `json:"podsUnavailableSinceTime,omitempty"`

	// tasks is the last known number of tasks of the application.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Tasks *int32 `json:"tasks,omitempty"`

	// limit is the planned memory limit of the representative pod.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`

	// requiredLimit is the smallest limit that holds the load of a pod after the pod failures to tolerate.
	// +optional
	RequiredLimit *resource.Quantity `json:"requiredLimit,omitempty"`

	// expected is the expected peak memory of the representative pod after the pod failures to tolerate.
	// +optional
	Expected *resource.Quantity `json:"expected,omitempty"`

	// podFailuresTolerated is the largest number of pod failures after which every remaining pod still fits its limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	PodFailuresTolerated *int32 `json:"podFailuresTolerated,omitempty"`

	// planRevision is the revision of the published plan: a hash of its content.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanRevision string `json:"planRevision,omitempty"`

	// heap is the largest heap of the representative pod.
	// +optional
	Heap *resource.Quantity `json:"heap,omitempty"`

	// lines are the itemised uses of memory of the representative pod after the pod failures to tolerate, largest
	// first.
	// +optional
	// +listType=map
	// +listMapKey=pool
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	Lines []Line `json:"lines,omitempty"`

	// settings are the active or planned options and properties, with their sources.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	Settings []Setting `json:"settings,omitempty"`

	// boundedPods is the number of pods that have reported one shared cache for all their RocksDB stores.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	BoundedPods *int32 `json:"boundedPods,omitempty"`

	// images contains the startup state of each image that the container has run with the agent, newest first; at most
	// 5.
	// +optional
	// +listType=map
	// +listMapKey=imageID
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Images []ImageStatus `json:"images,omitempty"`

	// measured contains the largest reported values of regions that are otherwise assumed, for the newest image.
	// +optional
	Measured MeasuredRegions `json:"measured,omitzero"`

	// divergentPods are pods whose limit, required limit, resize, bounds or plan differs from the representative pod;
	// at most 50.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=48
	DivergentPods []PodStatus `json:"divergentPods,omitempty"`

	// divergentPodsOmitted is the number of further divergent pods that divergentPods does not list.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	DivergentPodsOmitted *int32 `json:"divergentPodsOmitted,omitempty"`

	// warnings are for the user: versions with a memory leak, threads without memory for a record cache, and so on.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=160
	Warnings []string `json:"warnings,omitempty"`
}

// Pool is a part of the memory of a process with its own limit.
// +kubebuilder:validation:Enum=Heap;Native
type Pool string

const (
	// PoolHeap is the Java heap.
	PoolHeap Pool = "Heap"

	// PoolNative is all other memory of the container.
	PoolNative Pool = "Native"
)

// Source is the origin of a value.
// +kubebuilder:validation:Enum=Measured;App;Spec;Derived;Default;Assumed
type Source string

const (
	// SourceMeasured: measured, or read from the running process or from the application's Kafka group.
	SourceMeasured Source = "Measured"

	// SourceApp: set by the application itself.
	SourceApp Source = "App"

	// SourceSpec: set in the StreamApp.
	SourceSpec Source = "Spec"

	// SourceDerived: planned top-down from the limit, or computed from other values.
	SourceDerived Source = "Derived"

	// SourceDefault: a documented default of Kafka, RocksDB or the JVM.
	SourceDefault Source = "Default"

	// SourceAssumed: no source provides it; a conservative assumption.
	SourceAssumed Source = "Assumed"
)

// Line is one itemised use of memory.
type Line struct {
	// pool that contains the line.
	// +required
	Pool Pool `json:"pool,omitempty"`

	// name of the line.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// bound is never exceeded. Limits are sums of bounds.
	// +optional
	Bound *resource.Quantity `json:"bound,omitempty"`

	// expected peak. Requests are sums of expected peaks.
	// +optional
	Expected *resource.Quantity `json:"expected,omitempty"`

	// count of the units of the line: threads, partitions, stores and so on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	Count *int64 `json:"count,omitempty"`

	// source of the value behind the line.
	// +optional
	Source Source `json:"source,omitempty"`
}

// Setting is an active or planned option or property.
type Setting struct {
	// name of the option or property.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// value of the option or property.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value,omitempty"`

	// source of the value.
	// +optional
	Source Source `json:"source,omitempty"`
}

// PodStatus contains the differences of a pod from the representative pod.
type PodStatus struct {
	// name of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// limit is the memory limit of the pod as the kubelet reports it.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`

	// requiredLimit is the smallest limit that holds the load of this pod after the pod failures to tolerate.
	// +optional
	RequiredLimit *resource.Quantity `json:"requiredLimit,omitempty"`

	// tasks is the number of tasks that the pod runs now: active, standby and warm-up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Tasks *int32 `json:"tasks,omitempty"`

	// bounded is the reported state of the shared cache: Pending, Active or Off. If not set, the pod has no agent or
	// has not reported.
	// +optional
	Bounded Boundedness `json:"bounded,omitempty"`

	// planRevision is the revision that the pod's process has read last, if it is not the published one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanRevision string `json:"planRevision,omitempty"`

	// resize is the outcome of the pod's last resize.
	// +optional
	Resize ResizeOutcome `json:"resize,omitempty"`

	// message is a human-readable explanation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=160
	Message string `json:"message,omitempty"`
}

// Boundedness is the state of the shared RocksDB cache in a process.
// +kubebuilder:validation:Enum=Pending;Active;Off
type Boundedness string

const (
	// BoundedPending: no store was opened yet.
	BoundedPending Boundedness = "Pending"

	// BoundedActive: one cache bounds all stores except those with a cache of the application.
	BoundedActive Boundedness = "Active"

	// BoundedOff: the bounds could not be set; the stores have default RocksDB memory.
	BoundedOff Boundedness = "Off"
)

// ImageStatus is the startup state of an image, derived from the reports of the pods that have run it.
type ImageStatus struct {
	// imageID is the digest by which the kubelet identifies the image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageID string `json:"imageID,omitempty"`

	// image is the name of the image in the pod.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// state is the observed startup state.
	// +required
	State ImageState `json:"state,omitempty"`

	// sinceTime is the time of the first observation.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
}

// ImageState is the observed startup state of an image.
// +kubebuilder:validation:Enum=Started;Proven;FailedToStart
type ImageState string

const (
	// ImageStarted: a pod has reported, so the image starts with the agent.
	ImageStarted ImageState = "Started"

	// ImageProven: a pod has reported that its stores are bounded. Limits below the template's require this state.
	ImageProven ImageState = "Proven"

	// ImageFailedToStart: the first pod with the agent ended before it reported. Pods with this image are not injected
	// until the StreamApp changes.
	ImageFailedToStart ImageState = "FailedToStart"
)

// MeasuredRegions contains the largest reported values, rounded up in steps, so that a plan does not follow every
// small change.
//
// +kubebuilder:validation:MinProperties=1
type MeasuredRegions struct {
	// imageID of the measured container.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageID string `json:"imageID,omitempty"`

	// metaspace that was committed, including the compressed class space.
	// +optional
	Metaspace *resource.Quantity `json:"metaspace,omitempty"`

	// codeCache that was committed.
	// +optional
	CodeCache *resource.Quantity `json:"codeCache,omitempty"`

	// applicationHeap is the live heap after full collections, without the record cache.
	// +optional
	ApplicationHeap *resource.Quantity `json:"applicationHeap,omitempty"`

	// heapPercent is the percentage of the limit that the JVM has as its heap, if the image sets it outside of the pod
	// template. Without it the plan decides the heap.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HeapPercent int32 `json:"heapPercent,omitempty"`

	// averageRecord is the average size of the written records.
	// +optional
	AverageRecord *resource.Quantity `json:"averageRecord,omitempty"`

	// age of the oldest process that has reported. Values below the assumptions are used only from a process that is
	// WarmedUp.
	// +optional
	Age ProcessAge `json:"age,omitempty"`
}

// ProcessAge is a class of process run times.
// +kubebuilder:validation:Enum=WarmingUp;WarmedUp
type ProcessAge string

const (
	// ProcessWarmingUp: less than an hour. Not all classes are loaded and compiled yet.
	ProcessWarmingUp ProcessAge = "WarmingUp"

	// ProcessWarmedUp: an hour or more.
	ProcessWarmedUp ProcessAge = "WarmedUp"
)

// ResizeOutcome is the outcome of a resize of a running pod.
// +kubebuilder:validation:Enum=None;Applied;InProgress;Deferred;Infeasible;Refused;Error
type ResizeOutcome string

const (
	// ResizeNone: no resize was requested.
	ResizeNone ResizeOutcome = "None"

	// ResizeApplied: the kubelet reports the requested limit.
	ResizeApplied ResizeOutcome = "Applied"

	// ResizeInProgress: the kubelet has accepted the resize and has not finished it.
	ResizeInProgress ResizeOutcome = "InProgress"

	// ResizeDeferred: the node has not enough free memory now; the kubelet retries.
	ResizeDeferred ResizeOutcome = "Deferred"

	// ResizeInfeasible: the node cannot carry out the resize.
	ResizeInfeasible ResizeOutcome = "Infeasible"

	// ResizeRefused: the API server rejected the resize.
	ResizeRefused ResizeOutcome = "Refused"

	// ResizeError: the kubelet failed to carry out the resize.
	ResizeError ResizeOutcome = "Error"
)
