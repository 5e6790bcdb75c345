// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math/rand/v2"
	"time"
)

// Backoff bounds the pause after failures in a row.
type Backoff struct {
	Min, Max time.Duration
}

// maxDoublings prevents an overflow of the doubled pause.
const maxDoublings = 20

// Pause returns the pause after a number of failures in a row: Min after the first, doubled by each further one up to Max, with jitter.
func (b Backoff) Pause(failures int) time.Duration {
	doublings := min(max(failures-1, 0), maxDoublings)
	return Jitter(min(b.Max, b.Min<<doublings))
}

// Jitter returns a duration extended by up to a tenth, at random, so that polls spread out after a common start.
func Jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/10+1))
}
