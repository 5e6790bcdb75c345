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
//	            a pod reports, or runs for the startup window           a pod reports that its stores are bounded
//	(unknown) ──────────────────────────────────────────────► Started ───────────────────────────────────────────► Proven
//	    │                                                        ▲
//	    └──► FailedToStart ──────────────────────────────────────┘
//	  the first container ends within the startup window           a later pod reports
//
// Pods of an image that failed to start are no longer injected. An edit of the StreamApp removes that state: the operator retries.

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
	for i := range pods {
		p := &pods[i]
		if p.AgentConfigMap == "" || p.ImageID == "" || len(p.ImageID) > maxImageName || len(p.Image) > maxImageName {
			continue
		}
		images = images.with(p, imageState(p, now), now)
	}
	slices.SortStableFunc(images, func(a, b v1alpha1.ImageStatus) int {
		return cmp.Or(b.SinceTime.Compare(a.SinceTime.Time), cmp.Compare(a.ImageID, b.ImageID))
	})
	return images[:min(len(images), v1alpha1.MaxImages)]
}

// with returns the states with that of a pod's image.
func (images Images) with(p *Pod, state v1alpha1.ImageState, now time.Time) Images {
	since := new(metav1.NewTime(now).Rfc3339Copy())
	known := slices.IndexFunc(images, func(s v1alpha1.ImageStatus) bool { return s.ImageID == p.ImageID })
	switch {
	case state == "":
	case known < 0:
		return append(images, v1alpha1.ImageStatus{ImageID: p.ImageID, Image: p.Image, State: state, SinceTime: since})
	case stateRank[images[known].State] < stateRank[state]:
		images[known].State = state
		images[known].SinceTime = since
	}
	return images
}

// imageState returns the state of an image that a pod is evidence of; empty for none.
func imageState(p *Pod, now time.Time) v1alpha1.ImageState {
	runsForLong := p.Running() && !p.ContainerDown && now.Sub(p.Started) >= startupWindow
	switch {
	case p.Report.Bounded():
		return v1alpha1.ImageProven
	case p.Report.Report != nil, p.Report.Answered(), runsForLong:
		return v1alpha1.ImageStarted
	case p.StartupFailed && !p.Terminating && !p.NodeLost:
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

// excluded returns the images that are no longer injected, sorted. An image whose name was moved to another digest starts anew.
func (images Images) excluded(pods []Pod) []string {
	var excluded []string
	for _, known := range images {
		moved := slices.ContainsFunc(pods, func(p Pod) bool {
			return p.Image == known.Image && p.ImageID != "" && images.state(p.ImageID) != v1alpha1.ImageFailedToStart
		})
		failed := known.State == v1alpha1.ImageFailedToStart && known.Image != ""
		if failed && !moved && !slices.Contains(excluded, known.Image) {
			excluded = append(excluded, known.Image)
		}
	}
	slices.Sort(excluded)
	return excluded
}
