// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"math/bits"
	"strconv"
)

// Bytes is an amount of memory. Its arithmetic saturates at [MaxBytes] and at the lowest int64, and never wraps: an absurd input
// gives an absurdly large requirement, not a small one. The type also separates bytes from counts ([Count]) and percentages.
type Bytes int64

// Binary units.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// MaxBytes is the largest amount. [RequiredLimit] returns it when no limit holds.
const MaxBytes Bytes = math.MaxInt64

// minBytes is the lowest amount; differences saturate there.
const minBytes Bytes = math.MinInt64

// Add returns b + o, saturating.
func (b Bytes) Add(o Bytes) Bytes {
	sum := b + o
	if (b > 0 && o > 0 && sum < 0) || (b < 0 && o < 0 && sum >= 0) {
		return saturated(b < 0)
	}
	return sum
}

// Sub returns b - o, saturating. The result may be negative.
func (b Bytes) Sub(o Bytes) Bytes {
	diff := b - o
	if (b >= 0 && o < 0 && diff < 0) || (b < 0 && o > 0 && diff >= 0) {
		return saturated(b < 0)
	}
	return diff
}

// Mul returns b times n, saturating.
func (b Bytes) Mul(n Count) Bytes {
	hi, lo := bits.Mul64(magnitude(int64(b)), magnitude(int64(n)))
	negative := (b < 0) != (n < 0)
	if hi != 0 || lo > math.MaxInt64 {
		return saturated(negative)
	}
	if negative {
		return -Bytes(lo)
	}
	return Bytes(lo)
}

// Scale returns b times num over den, rounded up, saturating. An amount below zero, or a ratio that is not positive, gives 0.
func (b Bytes) Scale(num, den int64) Bytes {
	if b <= 0 || num <= 0 || den <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(b), uint64(num))
	if hi >= uint64(den) {
		return MaxBytes
	}
	quo, rem := bits.Div64(hi, lo, uint64(den))
	if quo >= math.MaxInt64 {
		return MaxBytes
	}
	if rem > 0 {
		quo++
	}
	return Bytes(quo)
}

// ratio is a fraction.
type ratio struct{ num, den int64 }

// times returns b times a ratio, rounded up, saturating.
func (b Bytes) times(r ratio) Bytes { return b.Scale(r.num, r.den) }

// over returns b divided by a ratio, rounded up, saturating.
func (b Bytes) over(r ratio) Bytes { return b.Scale(r.den, r.num) }

// per returns the share of one of n, rounded down. An n below 1 counts as 1.
func (b Bytes) per(n Count) Bytes { return b / Bytes(max(n, 1)) }

// alignUp rounds b up to a multiple of step, saturating.
func (b Bytes) alignUp(step Bytes) Bytes {
	if step <= 1 || b%step == 0 {
		return b
	}
	return b.Sub(b % step).Add(step)
}

// alignDown rounds b down to a multiple of step.
func (b Bytes) alignDown(step Bytes) Bytes {
	if step <= 1 {
		return b
	}
	return b - b%step
}

// String returns whole binary units for a round amount ("512 MiB"), and otherwise the exact bytes ("498439168 B").
func (b Bytes) String() string {
	for _, u := range []struct {
		size Bytes
		name string
	}{{GiB, " GiB"}, {MiB, " MiB"}, {KiB, " KiB"}} {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// saturated returns the end of the range on the given side.
func saturated(negative bool) Bytes {
	if negative {
		return minBytes
	}
	return MaxBytes
}

// magnitude returns the absolute value of n. That of the lowest int64 fits only an unsigned number.
func magnitude(n int64) uint64 {
	if n < 0 {
		return uint64(-(n + 1)) + 1
	}
	return uint64(n)
}
