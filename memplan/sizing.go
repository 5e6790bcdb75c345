// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// layout is a limit divided among the lines of a ledger.
type layout struct {
	*ledger
	limit, headroom       Bytes
	pageCache, pageTables Bytes
	collector             Collector
	collectorNative       Bytes
	// heapLow and heapHigh are the range of the JVM's heap. The heap lines are compared with low; high counts towards the limit.
	heapLow, heapHigh Bytes
	cache             sharedCache
	// usable is the part of the heap that lines may fill. They lack the heap deficit.
	usable, heapDeficit Bytes
	// native is the limit without headroom and heap, jvm the part of it belonging to no store, state the rest for the stores. They lack
	// the deficit.
	native, jvm, state, deficit Bytes
}

// at divides a limit with the collector that the JVM would choose.
func (l *ledger) at(limit Bytes) layout { return l.divide(limit, l.workload.JVM.collectorFor(limit)) }

// divide divides a limit, top-down: headroom and page cache first, then the lines of the ledger with the smallest cache, then the heap with
// its collector. The rest goes to the cache. Limits count in whole MiB, so that rounding never makes a larger limit hold less.
func (l *ledger) divide(limit Bytes, collector Collector) layout {
	limit = max(limit, 0)
	whole := limit.alignDown(MiB)
	p := l.process
	headroom := whole.Scale(int64(p.policy.HeadroomPercent), 100).Add(limit.Sub(whole))
	pageCache := p.pinned(RegionPageCache, max(p.policy.PageCacheFloor, whole.Scale(int64(p.policy.PageCachePercent), 100)))
	pageTables := p.pinned(RegionKernel, whole.Scale(1, pageTableRatio))
	jvm := l.sums[termJVM].Add(pageCache).Add(pageTables)
	stateRequired := l.sums[termState].Add(p.costOf(l.smallest))

	heapLow, heapHigh := l.heapFor(whole, limit.Sub(headroom).Sub(jvm).Sub(stateRequired), collector)
	collectorNative := p.pinned(RegionCollector, collectorOverhead(collector, heapHigh))
	jvm = jvm.Add(collectorNative)

	// native: limit - headroom - heap - JVM = State
	native := limit.Sub(headroom).Sub(heapHigh)
	state := native.Sub(jvm)

	// heap: usable heap - Process - Producer - Consumer - Buffer = Cache
	usable := usableHeap(heapLow)
	cacheLeft := usable.Sub(l.sums[termProcess]).Sub(l.sums[termProducer]).Sub(l.sums[termConsumer]).Sub(l.sums[termBuffer])

	return layout{
		ledger: l, limit: limit, headroom: headroom, pageCache: pageCache, pageTables: pageTables, collector: collector, collectorNative: collectorNative,
		heapLow: heapLow, heapHigh: heapHigh, cache: p.expandedCache(l.smallest, state.Sub(stateRequired)),
		native: native, jvm: jvm, state: state, deficit: stateRequired.Sub(state),
		usable: usable, heapDeficit: l.sums[termCache].Sub(cacheLeft),
	}
}

// heapFor returns the range of the heap under a limit. A planned heap holds its lines, and is never below LeastHeap. Without LeastHeap it is
// not below the JVM's own heap either, unless the native side requires that memory. With LeastHeap the heap is the same under every limit,
// so that a raised limit goes to the native side.
func (l *ledger) heapFor(whole, left Bytes, collector Collector) (low, high Bytes) {
	jvm := &l.workload.JVM
	if jvm.HeapMode != HeapPlanned {
		return jvm.heapRange(whole)
	}
	heap := l.leastHeap
	switch {
	case jvm.MaxHeap.Value > 0:
		heap = alignHeap(jvm.MaxHeap.Value)
	case jvm.LeastHeap == 0:
		heap = max(min(jvm.HeapUnder(whole), l.largestHeap(left, collector)), l.leastHeap)
	}
	return heap, heap
}

// largestHeap returns the largest heap that fits an amount together with its collector.
func (l *ledger) largestHeap(left Bytes, collector Collector) Bytes {
	if pin, ok := l.process.policy.Pins[RegionCollector]; ok {
		return alignedWithin(left.Sub(pin))
	}
	base, slope := collectorModel(collector)
	return alignedWithin(max(left.Sub(base), 0).Scale(collectorDen, collectorDen+slope).Sub(1))
}

// alignedWithin returns the largest heap that the JVM's rounding leaves within an amount.
func alignedWithin(amount Bytes) Bytes {
	if amount <= 0 {
		return 0
	}
	return amount.alignDown(alignmentOf(amount))
}

// fits reports whether both pools hold.
func (r *layout) fits() bool { return r.deficit <= 0 && r.heapDeficit <= 0 }

// verdict judges the layout.
func (r *layout) verdict() Verdict {
	switch {
	case r.fits():
		return Fits
	case r.deficit <= 0 && r.workload.JVM.heapIsGiven():
		return HeapTooSmall
	default:
		return LimitTooSmall
	}
}

// entries returns the lines that depend on the limit, and their warnings.
func (r *layout) entries() entries {
	b := r.newBuilder(r.process.policy.Pins, 7)
	b.add(RegionHeapReserve.line(r.heapHigh.Sub(r.heap), r.workload.JVM.heapFrom(), "heap - its lines: room for the collector"))
	b.add(RegionCollector.line(r.collectorNative, Measured, "beside the heap, by collector and heap size"))
	if r.workload.Bounded {
		b.sharedCache(r.cache)
	}
	b.add(RegionKernel.line(r.pageTables, Derived, "limit / 512"))
	b.add(RegionPageCache.line(r.pageCache, Assumed, "a floor: with less, the JVM stalls while it reads its own code again"))
	return b.entries
}

// maxLimit is the largest limit of a search, in MiB.
const maxLimit = int64(MaxBytes / MiB)

// requiredLimit returns the smallest limit, at least a least one, that holds the lines; MaxBytes if none does. With one collector a larger
// limit never holds less, so the limits of each collector are searched by bisection.
func (l *ledger) requiredLimit(least Bytes) Bytes {
	low := max(int64(max(least, 0).alignUp(MiB)/MiB), 1)
	auto := int64(serverClass / MiB)
	if before := l.workload.JVM.collectorFor(serverClass - MiB); before != l.workload.JVM.collectorFor(serverClass) && low < auto {
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

// requiredFor returns the smallest limit that holds the lines of a pod with a limit. Just below 1792 MiB, where the JVM changes to a costlier
// collector, a smaller limit may hold although this one does not; the result is then a larger limit.
func (l *ledger) requiredFor(limit Bytes) Bytes {
	required := l.requiredLimit(0)
	if r := l.at(limit); r.verdict() == LimitTooSmall && required <= limit {
		return l.requiredLimit(limit)
	}
	return required
}

// bisect returns the smallest limit of low to high MiB that holds the lines.
func (l *ledger) bisect(low, high int64) (Bytes, bool) {
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

// holds reports whether a limit in MiB holds the lines, as far as a limit can.
func (l *ledger) holds(mib int64) bool {
	r := l.at(MiB.Mul(Count(mib)))
	return r.verdict() != LimitTooSmall
}
