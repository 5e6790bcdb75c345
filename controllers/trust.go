// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// Never trusted before proven: until a pod of an image has reported that its stores are bounded, the image counts as Kafka Streams ships
// it, and its limit is never below the template's. What is known of an image stands in the status, by its digest.

// rankOf orders what was seen of an image: what says more takes the place of what says less. An image whose first container ended has
// started all the same if a later one reports.
var rankOf = map[v1alpha1.ImageState]int{v1alpha1.ImageFailedToStart: 1, v1alpha1.ImageStarted: 2, v1alpha1.ImageProven: 3}

// imagesOf brings what is known of images up to date with the pods. Newest first, as many as the status has room for.
func imagesOf(obs *observation) []v1alpha1.ImageStatus {
	var images []v1alpha1.ImageStatus
	edited := obs.app.Status.ObservedGeneration > 0 && obs.app.Status.ObservedGeneration != obs.app.Generation
	for _, known := range obs.app.Status.Images {
		if known.State != v1alpha1.ImageFailedToStart || !edited { // whoever changes the StreamApp wants it to be tried again
			images = append(images, known)
		}
	}
	for i := range obs.pods {
		p := &obs.pods[i]
		if p.agent == "" || p.imageID == "" || len(p.imageID) > maxImage || len(p.image) > maxImage {
			continue
		}
		seen := obs.seenOf(p)
		known := slices.IndexFunc(images, func(s v1alpha1.ImageStatus) bool { return s.ImageID == p.imageID })
		switch {
		case seen == "", known >= 0 && rankOf[images[known].State] >= rankOf[seen]:
		case known >= 0:
			images[known].State, images[known].SinceTime = seen, new(metav1.NewTime(obs.now).Rfc3339Copy())
		default:
			images = append(images, v1alpha1.ImageStatus{
				ImageID: p.imageID, Image: p.image, State: seen, SinceTime: new(metav1.NewTime(obs.now).Rfc3339Copy()),
			})
		}
	}
	slices.SortStableFunc(images, func(a, b v1alpha1.ImageStatus) int {
		return cmp.Or(b.SinceTime.Compare(a.SinceTime.Time), cmp.Compare(a.ImageID, b.ImageID))
	})
	return images[:min(len(images), v1alpha1.MaxImages)]
}

// maxImage is the longest name of an image that the status takes.
const maxImage = 512

// seenOf is what a pod tells of its image; "" for nothing.
func (o *observation) seenOf(p *podFacts) v1alpha1.ImageState {
	answer := o.reports.pods[string(p.uid)]
	switch {
	case answer.Report != nil && boundedIn(answer.Report):
		return v1alpha1.ImageProven
	case answer.Report != nil, told(answer.Err), p.running() && !p.down && o.now.Sub(p.started) >= youth:
		return v1alpha1.ImageStarted
	case p.diedYoung && !p.terminating && !p.nodeLost:
		return v1alpha1.ImageFailedToStart
	}
	return ""
}

// boundedIn tells whether a process is bounded: one cache for its stores is in force, and those of the application's own have a size.
func boundedIn(from *report.Report) bool {
	return from.Bounded == report.BoundedActive &&
		!slices.ContainsFunc(from.RocksDB.OwnCaches, func(c report.Cache) bool { return c.Capacity <= 0 })
}

// stateOf is what is known of an image by its digest; "" for nothing.
func (o *observation) stateOf(imageID string) v1alpha1.ImageState {
	for _, known := range o.images {
		if known.ImageID == imageID {
			return known.State
		}
	}
	return ""
}

// digests are the digests that pods with the template's image have, or had: of a tag that was moved, the ones that run.
func (o *observation) digests() []string {
	var digests []string
	if o.container == nil || o.container.image == "" {
		return nil
	}
	for i := range o.pods {
		if p := &o.pods[i]; p.image == o.container.image && p.imageID != "" && !slices.Contains(digests, p.imageID) {
			digests = append(digests, p.imageID)
		}
	}
	if len(digests) > 0 {
		return digests
	}
	for _, known := range o.images { // newest first
		if known.Image == o.container.image {
			return []string{known.ImageID}
		}
	}
	return nil
}

// proven tells whether new pods may be counted as bounded: every digest of the template's image was seen to be, and no pod of it says
// otherwise.
func (o *observation) proven() bool {
	digests := o.digests()
	if len(digests) == 0 || o.agentName == "" {
		return false
	}
	for _, digest := range digests {
		if o.stateOf(digest) != v1alpha1.ImageProven {
			return false
		}
	}
	return !slices.ContainsFunc(o.pods, func(p podFacts) bool {
		reported := o.reports.of(&p)
		return p.image == o.container.image && reported != nil && reported.Bounded != report.BoundedPending && !boundedIn(reported)
	})
}

// boundedPod tells whether a pod counts as bounded: its own report says so, or, as long as it has none, its image was seen to be.
func (o *observation) boundedPod(p *podFacts) bool {
	if p.agent == "" {
		return false
	}
	if reported := o.reports.of(p); reported != nil && reported.Bounded != report.BoundedPending {
		return boundedIn(reported)
	}
	return o.stateOf(p.imageID) == v1alpha1.ImageProven
}

// exceptedImages are the images that are not injected any more, sorted. An image whose name has moved to another digest starts afresh.
func (o *observation) exceptedImages() []string {
	var excepted []string
	for _, known := range o.images {
		moved := slices.ContainsFunc(o.pods, func(p podFacts) bool {
			return p.image == known.Image && p.imageID != "" && o.stateOf(p.imageID) != v1alpha1.ImageFailedToStart
		})
		if known.State == v1alpha1.ImageFailedToStart && known.Image != "" && !moved && !slices.Contains(excepted, known.Image) {
			excepted = append(excepted, known.Image)
		}
	}
	slices.Sort(excepted)
	return excepted
}

// stopped says that the template's image is not injected, and what to do.
func (o *observation) stopped() fault {
	if o.container == nil || !slices.Contains(o.exceptedImages(), o.container.image) {
		return fault{}
	}
	text := fmt.Sprintf("the first pod with image %s ended before its agent reported, so pods with this image are no longer injected: see the log "+
		"of its last container (a run-time image must have the module java.instrument)", o.container.image)
	for i := range o.pods {
		if p := &o.pods[i]; p.injected && p.image == o.container.image && p.diedYoung {
			return fault{v1alpha1.ReasonInjectedPodFailedToStart, fmt.Sprintf("%s; kubectl -n %s logs -p %s. Then delete the pod, and change the image, or "+
				"the StreamApp, for another try", text, o.app.Namespace, p.name)}
		}
	}
	return fault{v1alpha1.ReasonInjectedPodFailedToStart, text + ". A new image, or a change of the StreamApp, is another try"}
}
