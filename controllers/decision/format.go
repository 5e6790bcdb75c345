// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// NoLimit is the required limit of a load that no limit holds.
const NoLimit = int64(math.MaxInt64)

// quantity returns bytes in the format of Kubernetes: multiples of 1 MiB in Mi, other amounts in bytes.
func quantity(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }

// bytesText formats bytes for people.
func bytesText(bytes int64) string {
	q := quantity(bytes)
	return q.String()
}

// requiredText formats a required limit for people.
func requiredText(required int64) string {
	if required >= NoLimit {
		return "more than any limit provides (the heap takes too large a share of it)"
	}
	return bytesText(required)
}

// podsText counts pods.
func podsText(count int) string {
	if count == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", count)
}

// truncate shortens a text to the length that the status accepts.
func truncate(text string) string { return Shorten(text, v1alpha1.MaxText) }

// Shorten cuts a text to this many bytes, at a whole character.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("...")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// Earliest returns the shortest wait. A wait of 0 means never.
func Earliest(waits ...time.Duration) time.Duration {
	waits = slices.DeleteFunc(waits, func(wait time.Duration) bool { return wait == 0 })
	if len(waits) == 0 {
		return 0
	}
	return slices.Min(waits)
}
