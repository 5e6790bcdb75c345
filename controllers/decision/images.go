// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Never trusted before proven: until a pod of an image has reported that its stores are bounded, default RocksDB memory counts, and the limit
// is never below the template's. The state of an image is kept by its digest:
//
//	            a pod reports, or runs for startedAfter                 a pod reports that its stores are bounded
//	(unknown) ──────────────────────────────────────────────► Started ───────────────────────────────────────────► Proven
//	    │                                                        ▲
//	    └──► FailedToStart ──────────────────────────────────────┘
//	  two starts fail within the startup window each,              a later pod reports
//	  or the JVM reports that it cannot start
//
// Pods of an image that failed to start are not injected for retryAfter. Then the next pod is injected again; if one start of it fails, for
// another retryAfter. A pod that was injected before and still restarts is such a try all the time. An edit of the StreamApp removes the
// state at once. A state above FailedToStart is final: a failed start after a success has another reason.

// startedAfter is how long a container must run to count as started without a report of its agent.
const startedAfter = 2 * time.Minute

// retryAfter is how long pods with an image that failed to start are not injected.
const retryAfter = time.Hour

// stateRank orders the states of an image: a state is only replaced by one of a higher rank.
var stateRank = map[v1alpha1.ImageState]int{v1alpha1.ImageFailedToStart: 1, v1alpha1.ImageStarted: 2, v1alpha1.ImageProven: 3}

// maxImageName is the longest name of an image that the status accepts.
const maxImageName = 512

// Images are the startup states of images, newest first.
type Images []v1alpha1.ImageStatus

// imagesOf returns the remembered states, brought up to date with the pods. edited: the StreamApp has changed since the last pass.
func imagesOf(remembered []v1alpha1.ImageStatus, edited bool, pods []Pod, now time.Time) Images {
	var images Images
	for _, known := range remembered {
		if known.State != v1alpha1.ImageFailedToStart || !edited {
			images = append(images, known)
		}
	}
	failedStarts := map[string]int{} // by digest
	for i := range pods {
		if p := &pods[i]; p.reportsImage() && !p.Terminating && !p.NodeLost {
			failedStarts[p.ImageID] += p.FailedStarts
		}
	}
	for i := range pods {
		if p := &pods[i]; p.reportsImage() {
			images = images.with(p, imageState(p, failedStarts[p.ImageID], images.state(p.ImageID), now), now)
		}
	}
	slices.SortStableFunc(images, func(a, b v1alpha1.ImageStatus) int {
		return cmp.Or(b.SinceTime.Compare(a.SinceTime.Time), cmp.Compare(a.ImageID, b.ImageID))
	})
	return images[:min(len(images), v1alpha1.MaxImages)]
}

// reportsImage returns whether a pod is evidence of its image.
func (p *Pod) reportsImage() bool {
	return p.AgentConfigMap != "" && p.ImageID != "" && len(p.ImageID) <= maxImageName && len(p.Image) <= maxImageName
}

// with returns the states with that of a pod's image. An image that fails to start again is not tried again for retryAfter.
func (images Images) with(p *Pod, state v1alpha1.ImageState, now time.Time) Images {
	since := new(metav1.NewTime(now).Rfc3339Copy())
	known := slices.IndexFunc(images, func(s v1alpha1.ImageStatus) bool { return s.ImageID == p.ImageID })
	switch {
	case state == "":
	case known < 0:
		return append(images, v1alpha1.ImageStatus{ImageID: p.ImageID, Image: p.Image, State: state, SinceTime: since})
	case state == v1alpha1.ImageFailedToStart && images[known].State == state:
		if now.Sub(images[known].SinceTime.Time) >= retryAfter {
			images[known].SinceTime = since
		}
	case stateRank[images[known].State] < stateRank[state]:
		images[known].State = state
		images[known].SinceTime = since
	}
	return images
}

// imageState returns the state of an image that a pod is evidence of; empty for none. failedStarts is the number of failed starts of all pods with the
// image, known its state so far.
func imageState(p *Pod, failedStarts int, known v1alpha1.ImageState, now time.Time) v1alpha1.ImageState {
	runsForLong := p.Running() && !p.ContainerDown && now.Sub(p.Started) >= startedAfter
	failed := failedStarts >= conclusiveFailures || (failedStarts > 0 && known == v1alpha1.ImageFailedToStart)
	switch {
	case p.Report.Bounded():
		return v1alpha1.ImageProven
	case p.Report.Report != nil, p.Report.Answered(), runsForLong:
		return v1alpha1.ImageStarted
	case failed:
		return v1alpha1.ImageFailedToStart
	}
	return ""
}

// state returns the state of a digest; empty if it is unknown.
func (images Images) state(imageID string) v1alpha1.ImageState {
	for _, known := range images {
		if known.ImageID == imageID {
			return known.State
		}
	}
	return ""
}

// digests returns the digests of pods with this image; without such pods the newest known digest. A tag may have been moved.
func (images Images) digests(image string, pods []Pod) []string {
	var digests []string
	for i := range pods {
		if p := &pods[i]; p.Image == image && p.ImageID != "" && !slices.Contains(digests, p.ImageID) {
			digests = append(digests, p.ImageID)
		}
	}
	if len(digests) > 0 {
		return digests
	}
	for _, known := range images {
		if known.Image == image {
			return []string{known.ImageID}
		}
	}
	return nil
}

// proven returns whether new pods of this image count as bounded: every digest of the image is proven, and no pod of it has reported stores
// without the bounds.
func (images Images) proven(image string, pods []Pod) bool {
	if image == "" {
		return false
	}
	digests := images.digests(image, pods)
	for _, digest := range digests {
		if images.state(digest) != v1alpha1.ImageProven {
			return false
		}
	}
	return len(digests) > 0 && !slices.ContainsFunc(pods, func(p Pod) bool { return p.Image == image && p.Report.NotBounded() })
}

// boundedPod returns whether a pod counts as bounded: by its own report, or as long as it has none by the state of its image.
func (images Images) boundedPod(p *Pod) bool {
	switch {
	case p.AgentConfigMap == "":
		return false
	case p.Report.BoundsDecided(), p.Report.WasNotBounded:
		return p.Report.Bounded()
	default:
		return images.state(p.ImageID) == v1alpha1.ImageProven
	}
}

// excluded returns the images not injected now, sorted. An image whose name was moved to another digest starts anew.
func (images Images) excluded(pods []Pod, now time.Time) []string {
	var excluded []string
	for _, known := range images {
		moved := slices.ContainsFunc(pods, func(p Pod) bool {
			return p.Image == known.Image && p.ImageID != "" && images.state(p.ImageID) != v1alpha1.ImageFailedToStart
		})
		failed := known.State == v1alpha1.ImageFailedToStart && known.Image != "" && now.Sub(known.SinceTime.Time) < retryAfter
		if failed && !moved && !slices.Contains(excluded, known.Image) {
			excluded = append(excluded, known.Image)
		}
	}
	slices.Sort(excluded)
	return excluded
}

// recheckAfter returns the time after which an image that failed to start is tried again; 0 if none waits.
func (images Images) recheckAfter(now time.Time) time.Duration {
	recheck := time.Duration(0)
	for _, known := range images {
		if known.State == v1alpha1.ImageFailedToStart {
			recheck = Earliest(recheck, max(0, retryAfter-now.Sub(known.SinceTime.Time)))
		}
	}
	return recheck
}
