// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// maxLimit is the largest limit tried, in MiB.
const maxLimit = int64(MaxBytes / MiB)

// RequiredLimit is the smallest limit, in whole MiB, that holds a load; MaxBytes if none does, as with MaxRAMPercentage=95. Where the heap does
// not depend on the limit, RequiredLimit is about native memory only: no limit cures a small -Xmx.
//
// A larger limit holds too, with one exception: at 1792 MiB the JVM changes to a costlier collector, so a load that fits just below may
// not fit just above. Plan.RequiredLimit of a limit above then says which larger limit holds.
//
// For a process that runs already, the heap is what it started with: give it as HeapFixed. A running JVM does not follow its limit.
func RequiredLimit(w Workload, load Load, policy Policy) Bytes {
	return atFloors(&w, load, policy).need(0)
}

// need finds the smallest limit that holds and is not below least. For one collector a larger limit never holds less, so each range
// of one collector is searched by bisection.
func (l limits) need(least Bytes) Bytes {
	low := max(int64(max(least, 0).alignUp(MiB)/MiB), 1)
	auto := int64(serverClass / MiB)
	if before := l.p.w.JVM.collectorFor(serverClass - MiB); before != l.p.w.JVM.collectorFor(serverClass) && low < auto {
		if limit, ok := l.bisect(low, auto-1); ok {
			return limit
		}
		low = auto
	}
	if limit, ok := l.bisect(low, maxLimit); ok {
		return limit
	}
	return MaxBytes
}

// bisect finds the smallest limit that holds among low to high MiB.
func (l limits) bisect(low, high int64) (Bytes, bool) {
	if !l.holds(high) {
		return 0, false
	}
	for low < high {
		middle := low + (high-low)/2
		if l.holds(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return MiB.Mul(Count(low)), true
}

// holds says whether a limit in MiB holds the load, as far as a limit can.
func (l limits) holds(mib int64) bool {
	r := l.at(MiB.Mul(Count(mib)))
	return r.short <= 0 && (r.heapShort <= 0 || l.heapIsGiven())
}
