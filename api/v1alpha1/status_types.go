// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Caps of the lists in a status. They keep it under 32 KiB whatever the size of the application.
const (
	// MaxLines is the most lines of a plan that a status holds.
	MaxLines = 40

	// MaxSettings is the most settings that a status holds.
	MaxSettings = 40

	// MaxPodsThatDiffer is the most pods that a status lists.
	MaxPodsThatDiffer = 50

	// MaxImages is the most images that a status remembers.
	MaxImages = 5

	// MaxWarnings is the most warnings that a status holds.
	MaxWarnings = 12

	// MaxText is the most characters of a warning, or of a message about a pod.
	MaxText = 160

	// MaxConditionText is how long the message of a condition may be for the status to stay under 32 KiB. The schema permits
	// more, as that of every condition does.
	MaxConditionText = 480
)

// StreamAppStatus says what was observed and planned. All of it is computed afresh from what was observed.
//
// +kubebuilder:validation:MinProperties=1
type StreamAppStatus struct {
	// conditions are Ready, AssignmentKnown, Fits, CascadeSafe, Applied and Compatible: all positive, always present.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// mode in effect.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// pods that run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Pods *int32 `json:"pods,omitempty"`

	// missingPods is how many pods fewer run than there are replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MissingPods *int32 `json:"missingPods,omitempty"`

	// podsMissingSinceTime is since when fewer pods run than there are replicas. After 30 seconds they count as lost.
	// +optional
	PodsMissingSinceTime *metav1.Time `json:"podsMissingSinceTime,omitempty"`

	// tasks that the application has in all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Tasks *int32 `json:"tasks,omitempty"`

	// limit is the memory limit that the plan wants for the typical pod.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`

	// need is the smallest limit that holds what a pod would run after the losses asked for.
	// +optional
	Need *resource.Quantity `json:"need,omitempty"`

	// expected is the peak of memory that the plan expects of the typical pod after the losses asked for.
	// +optional
	Expected *resource.Quantity `json:"expected,omitempty"`

	// survives is the largest number of lost pods after which every survivor still fits.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Survives *int32 `json:"survives,omitempty"`

	// planGeneration names the plan in force: a hash of what is published.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanGeneration string `json:"planGeneration,omitempty"`

	// heap is the largest heap of the typical pod.
	// +optional
	Heap *resource.Quantity `json:"heap,omitempty"`

	// lines are the itemised uses of memory of the typical pod after the losses asked for, largest first.
	// +optional
	// +listType=map
	// +listMapKey=pool
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	Lines []Line `json:"lines,omitempty"`

	// settings are the options and properties in effect or planned, with where they come from.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	Settings []Setting `json:"settings,omitempty"`

	// boundedPods is how many pods have reported that one cache bounds all their RocksDB stores.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	BoundedPods *int32 `json:"boundedPods,omitempty"`

	// images are what is known of the images that the container has run with the agent, newest first; at most 5.
	// +optional
	// +listType=map
	// +listMapKey=imageID
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Images []ImageStatus `json:"images,omitempty"`

	// measured is the most that the pods have reported of regions that are otherwise assumed, while their container had this
	// image.
	// +optional
	Measured MeasuredRegions `json:"measured,omitzero"`

	// podsThatDiffer are pods whose limit, need, resize, bounds or plan is not the typical pod's; at most 50.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	PodsThatDiffer []PodStatus `json:"podsThatDiffer,omitempty"`

	// podsNotListed is how many pods differ beyond those that podsThatDiffer lists.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	PodsNotListed *int32 `json:"podsNotListed,omitempty"`

	// warnings are what a person should know: versions that leak, threads without room for a cache, and so on.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=160
	Warnings []string `json:"warnings,omitempty"`
}

// Pool is a part of a process's memory with its own limit.
// +kubebuilder:validation:Enum=Heap;Native
type Pool string

const (
	// PoolHeap is the Java heap.
	PoolHeap Pool = "Heap"

	// PoolNative is everything else in the container.
	PoolNative Pool = "Native"
)

// Source says where a figure comes from.
// +kubebuilder:validation:Enum=Measured;App;Spec;Derived;Default;Assumed
type Source string

const (
	// SourceMeasured: measured, or read where it is in force: from the process, or from the application's Kafka group.
	SourceMeasured Source = "Measured"

	// SourceApp: set by the application itself.
	SourceApp Source = "App"

	// SourceSpec: set in the StreamApp.
	SourceSpec Source = "Spec"

	// SourceDerived: planned top-down from the limit, or computed from other figures.
	SourceDerived Source = "Derived"

	// SourceDefault: a documented default of Kafka, RocksDB or the JVM.
	SourceDefault Source = "Default"

	// SourceAssumed: no source shows it; assumed on the safe side.
	SourceAssumed Source = "Assumed"
)

// Line is one itemised use of memory.
type Line struct {
	// pool that the line takes from.
	// +required
	Pool Pool `json:"pool,omitempty"`

	// name of the line.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// bound is never exceeded. Limits are made of these.
	// +optional
	Bound *resource.Quantity `json:"bound,omitempty"`

	// expected peak. Requests are made of these.
	// +optional
	Expected *resource.Quantity `json:"expected,omitempty"`

	// count of the units that the line is made of: threads, partitions, stores and so on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	Count *int64 `json:"count,omitempty"`

	// source of the figure that the line is made of.
	// +optional
	Source Source `json:"source,omitempty"`
}

// Setting is an option or property in effect or planned.
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

// PodStatus tells in what a pod differs from the typical one.
type PodStatus struct {
	// name of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// limit is the pod's memory limit as the kubelet reports it.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`

	// need is the smallest limit that holds what this pod would run after the losses asked for.
	// +optional
	Need *resource.Quantity `json:"need,omitempty"`

	// tasks that the pod runs now: active, standby and warm-up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Tasks *int32 `json:"tasks,omitempty"`

	// bounded says whether the pod has reported that one cache bounds all its RocksDB stores: Pending, Active or Off. Not set:
	// the pod has no agent, or has not reported.
	// +optional
	Bounded Boundedness `json:"bounded,omitempty"`

	// planGeneration is the plan that the pod's process read last, where it is not the one that is published.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanGeneration string `json:"planGeneration,omitempty"`

	// resize tells how the pod's last resize ended.
	// +optional
	Resize ResizeOutcome `json:"resize,omitempty"`

	// message says more, for a person.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=160
	Message string `json:"message,omitempty"`
}

// Boundedness says whether RocksDB is bounded in a process.
// +kubebuilder:validation:Enum=Pending;Active;Off
type Boundedness string

const (
	// BoundedPending: no store was opened yet.
	BoundedPending Boundedness = "Pending"

	// BoundedActive: one cache bounds all stores but those with a cache of the application's own.
	BoundedActive Boundedness = "Active"

	// BoundedOff: the bounds could not be set; the stores are as Kafka Streams ships them.
	BoundedOff Boundedness = "Off"
)

// ImageStatus is what is known of an image, by the reports of the pods that have run it.
type ImageStatus struct {
	// imageID is the image as the kubelet identifies it: a digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageID string `json:"imageID,omitempty"`

	// image is its name in the pod.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// state says what was seen.
	// +required
	State ImageState `json:"state,omitempty"`

	// sinceTime is when it was seen first.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
}

// ImageState is what was seen of an image.
// +kubebuilder:validation:Enum=Started;Proven;Stopped
type ImageState string

const (
	// ImageStarted: a pod has reported, so the image starts with the agent.
	ImageStarted ImageState = "Started"

	// ImageProven: a pod has reported that its stores are bounded. Only then may limits go below the template's.
	ImageProven ImageState = "Proven"

	// ImageStopped: the first pod with the agent ended before it reported. Pods with this image are no longer injected until the
	// StreamApp changes.
	ImageStopped ImageState = "Stopped"
)

// MeasuredRegions is the most that was reported, in steps, so that a plan does not follow each small figure.
//
// +kubebuilder:validation:MinProperties=1
type MeasuredRegions struct {
	// imageID of the container whose figures these are.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageID string `json:"imageID,omitempty"`

	// metaspace that was committed, compressed class space included.
	// +optional
	Metaspace *resource.Quantity `json:"metaspace,omitempty"`

	// codeCache that was committed.
	// +optional
	CodeCache *resource.Quantity `json:"codeCache,omitempty"`

	// applicationHeap is what lived on the heap after full collections, without the record cache.
	// +optional
	ApplicationHeap *resource.Quantity `json:"applicationHeap,omitempty"`

	// averageRecord is the average size of the records that were written.
	// +optional
	AverageRecord *resource.Quantity `json:"averageRecord,omitempty"`

	// age of the oldest process that has reported. The figures of a Warm one are believed where they are below what is assumed.
	// +optional
	Age ProcessAge `json:"age,omitempty"`
}

// ProcessAge says for how long a process has run.
// +kubebuilder:validation:Enum=Young;Warm
type ProcessAge string

const (
	// ProcessYoung: for less than an hour. Its code is not compiled yet, and not all its classes are loaded.
	ProcessYoung ProcessAge = "Young"

	// ProcessWarm: for an hour or more.
	ProcessWarm ProcessAge = "Warm"
)

// ResizeOutcome tells how a resize of a running pod ended.
// +kubebuilder:validation:Enum=None;Applied;InProgress;Deferred;Infeasible;Refused;Error
type ResizeOutcome string

const (
	// ResizeNone: none was asked for.
	ResizeNone ResizeOutcome = "None"

	// ResizeApplied: the kubelet reports the limit that was asked for.
	ResizeApplied ResizeOutcome = "Applied"

	// ResizeInProgress: the kubelet has accepted it and is not done.
	ResizeInProgress ResizeOutcome = "InProgress"

	// ResizeDeferred: the node has no room now; the kubelet tries again by itself.
	ResizeDeferred ResizeOutcome = "Deferred"

	// ResizeInfeasible: the node cannot carry it out.
	ResizeInfeasible ResizeOutcome = "Infeasible"

	// ResizeRefused: the API server refused it.
	ResizeRefused ResizeOutcome = "Refused"

	// ResizeError: the kubelet failed to carry it out.
	ResizeError ResizeOutcome = "Error"
)
