// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Annotations that hold memory.
const (
	// AnnotationRefresh on a pod holds its [Refresh] as JSON.
	AnnotationRefresh = "streamweir.dev/refresh"
	// AnnotationWithdrawal on a PodInjection holds the [Withdrawal] of injected memory as JSON.
	AnnotationWithdrawal = "streamweir.dev/memory-withdrawn"
)

// Memory is everything that earlier passes learned and that the next ones need. It is read once from the status and from annotations,
// and returned once by [Decide]. Volatile is the one part that the process keeps; its assignment is in an annotation, too.
type Memory struct {
	// ObservedGeneration is the generation of the StreamApp in the last pass; 0 before the first.
	ObservedGeneration int64
	// PodsUnavailableSince is the time at which the number of running pods fell below the replicas; zero if it did not.
	PodsUnavailableSince time.Time
	// Tasks is the last known number of tasks; nil if it was never known.
	Tasks *int32
	// Images are the startup states of images, newest first.
	Images []v1alpha1.ImageStatus
	// Measured are the largest reported figures of the newest image.
	Measured v1alpha1.MeasuredRegions
	// Withdrawal is the last withdrawal of injected memory, active or ended not long ago; nil without one.
	Withdrawal *Withdrawal
	// Refreshes are the refreshes of pods by name.
	Refreshes map[string]Refresh

	Volatile
}

// Volatile is the part of [Memory] that the process keeps.
type Volatile struct {
	// Assignment is the last known assignment; nil before the first. After a restart it is read from [AnnotationMemory].
	Assignment *KnownAssignment
	// RefusedResizes are resizes that the API server refused recently, by the pod's UID. After a restart each is requested once more.
	RefusedResizes map[types.UID]RefusedResize
}

// RefusedResize is a resize that the API server refused.
type RefusedResize struct {
	Pod string
	// Limit is the requested limit in bytes.
	Limit   int64
	Message string
	At      time.Time
}

// Withdrawal is a withdrawal of injected memory: pods with it could not be created or placed.
type Withdrawal struct {
	// Limit is the limit that failed, ForLimit the template's limit that it replaced; in bytes.
	Limit    int64 `json:"limit"`
	ForLimit int64 `json:"forLimit"`
	// Since is the time of the withdrawal.
	Since time.Time `json:"since"`
	// Failures is the number of withdrawals in a row, this one included.
	Failures int `json:"failures"`
}

// Refresh is the state of a pod's annotations, whose changes make the kubelet update the mounted plan.
type Refresh struct {
	// Count is how often the pod was refreshed for the revision that it was notified of last.
	Count int `json:"count"`
	// At is the time of the last refresh.
	At time.Time `json:"time"`
}

// Recall reads the memory of earlier passes from the StreamApp's status and from annotations. An annotation that cannot be read counts as
// absent. A StreamApp without a status was created again, unless it is new: its memory is in the annotation of the plan.
func Recall(app *v1alpha1.StreamApp, plan *corev1.ConfigMap, injection *v1alpha1.PodInjection, pods []corev1.Pod, volatile Volatile) Memory {
	memory := Memory{
		ObservedGeneration: app.Status.ObservedGeneration,
		Tasks:              app.Status.Tasks,
		Images:             app.Status.Images,
		Measured:           *app.Status.Measured.DeepCopy(),
		Refreshes:          map[string]Refresh{},
		Volatile:           volatile,
	}
	if stored, known, found := readMemory(app, plan); found {
		if memory.Assignment == nil {
			memory.Assignment = known
		}
		if app.Status.ObservedGeneration == 0 {
			memory.Tasks = stored.Tasks
			memory.Images = stored.Images
			memory.Measured = stored.Measured
		}
	}
	if since := app.Status.PodsUnavailableSinceTime; since != nil {
		memory.PodsUnavailableSince = since.Time
	}
	if injection != nil {
		var withdrawal Withdrawal
		if parseAnnotation(injection.Annotations[AnnotationWithdrawal], &withdrawal) && !withdrawal.Since.IsZero() {
			memory.Withdrawal = &withdrawal
		}
	}
	for i := range pods {
		var refresh Refresh
		if parseAnnotation(pods[i].Annotations[AnnotationRefresh], &refresh) && refresh.Count > 0 {
			memory.Refreshes[pods[i].Name] = refresh
		}
	}
	return memory
}

// parseAnnotation decodes the JSON of an annotation and returns whether it could.
func parseAnnotation(text string, into any) bool {
	return text != "" && json.Unmarshal([]byte(text), into) == nil
}

// String encodes the refresh for [AnnotationRefresh].
func (r Refresh) String() string { return annotationText(r) }

// String encodes the withdrawal for [AnnotationWithdrawal].
func (w Withdrawal) String() string { return annotationText(w) }

// annotationText encodes numbers and times, which cannot fail.
func annotationText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
