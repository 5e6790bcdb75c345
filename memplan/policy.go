// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Policy is the user's policy for a plan.
type Policy struct {
	// PodFailures is the number of pod failures to tolerate.
	PodFailures int
	// HeadroomPercent of the limit stays unplanned. Its range is 0 to 90.
	HeadroomPercent int
	// PageCacheFloor is the smallest page cache that the plan leaves, or PageCachePercent of the limit if that is larger.
	PageCacheFloor   Bytes
	PageCachePercent int
	// Pins replace the bound and the expected peak of a region.
	Pins map[Region]Bytes
}

// maxHeadroom is the largest percentage of the limit that can stay unplanned.
const maxHeadroom = 90

// validPolicy moves the numbers of a policy into their ranges.
func validPolicy(policy Policy) Policy {
	policy.HeadroomPercent = min(max(policy.HeadroomPercent, 0), maxHeadroom)
	policy.PageCachePercent = min(max(policy.PageCachePercent, 0), maxHeadroom)
	policy.PageCacheFloor = max(policy.PageCacheFloor, 0)
	return policy
}

// DefaultPolicy returns a policy that tolerates one pod failure and leaves a tenth of the limit free. The page-cache floor is 48 MiB or
// 5 %: with 5 MiB left a JVM stalled for 44 s without being killed, with 30 MiB it did not (measured, Kafka Streams 4.4.0 in a pod of 760
// MiB).
func DefaultPolicy() Policy {
	return Policy{PodFailures: 1, HeadroomPercent: 10, PageCacheFloor: 48 * MiB, PageCachePercent: 5}
}
