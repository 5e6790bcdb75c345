// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// layout is how a limit is laid out: what the lines that depend on the limit come to.
type layout struct {
	limit, headroom   Bytes
	pageCache, kernel Bytes
	collector         Collector
	heapLow, heapHigh Bytes
	collectorNative   Bytes
	cache             sharedCache
	// short is what the limit lacks, heapShort what the heap lacks for its lines; 0 or less when they hold.
	short, heapShort Bytes
}

// limits is what the layout needs of the lines: it is computed once and tried against many limits.
type limits struct {
	p      *planner
	totals rocksTotals
	least  sharedCache
	// heapNeed is the heap that holds the heap lines with room for the collector, and no less than the application is known to need.
	heapNeed Bytes
}

// limits prepares the search for a limit.
func (p *planner) limits() limits {
	l := limits{p: p, heapNeed: alignHeap(max(p.heapSum.Scale(liveDen, liveNum), p.w.JVM.LeastHeap))}
	if p.w.Bounded {
		l.totals = p.totals
		l.least = p.smallestCache(l.totals)
	}
	return l
}

// at lays a limit out with the collector that the JVM would choose.
func (l limits) at(limit Bytes) layout { return l.with(limit, l.p.w.JVM.collectorFor(limit)) }

// with lays a limit out, top-down: headroom, page cache and page tables, process and clients, the heap, and the rest for the cache.
// Limits count in whole MiB, so that rounding never makes a larger limit hold less.
func (l limits) with(limit Bytes, collector Collector) layout {
	p := l.p
	whole := max(limit, 0).alignDown(MiB)
	r := layout{limit: limit, collector: collector}
	r.headroom = whole.Scale(int64(p.policy.HeadroomPercent), 100).Add(max(limit, 0).Sub(whole))
	r.pageCache = p.pinned(RegionPageCache, max(p.policy.PageCacheFloor, whole.Scale(int64(p.policy.PageCachePercent), 100)))
	r.kernel = p.pinned(RegionKernel, whole.Scale(1, pageTableRatio))
	left := max(limit, 0).Sub(r.headroom).Sub(r.pageCache).Sub(r.kernel).Sub(p.nativeSum).Sub(p.cacheCost(l.least))
	r.heapLow, r.heapHigh = l.heap(whole, left, collector)
	r.collectorNative = p.pinned(RegionCollector, collectorOverhead(collector, r.heapHigh))
	left = left.Sub(r.heapHigh).Sub(r.collectorNative)
	r.short = Bytes(0).Sub(left)
	r.heapShort = p.heapSum.Sub(r.heapLow.Sub(r.heapLow.Scale(liveDen-liveNum, liveDen)))
	r.cache = p.grownCache(l.least, left, l.totals)
	return r
}

// heap is the heap under a limit. A planned heap is never below what its lines need, and never below LeastHeap; where that is not set,
// not below what the JVM would take by itself either, unless the native side needs it. With LeastHeap the heap is the same under every
// limit, so that a raised limit goes to the native side.
func (l limits) heap(whole, left Bytes, collector Collector) (low, high Bytes) {
	jvm := l.p.w.JVM
	if jvm.HeapMode != HeapPlanned {
		return jvm.heapRange(whole)
	}
	if jvm.MaxHeap.Value > 0 {
		heap := alignHeap(jvm.MaxHeap.Value)
		return heap, heap
	}
	if jvm.LeastHeap > 0 {
		return l.heapNeed, l.heapNeed
	}
	heap := max(min(jvm.HeapUnder(whole), l.largestHeap(left, collector)), l.heapNeed)
	return heap, heap
}

// largestHeap is the largest heap that fits what is left together with its collector.
func (l limits) largestHeap(left Bytes, collector Collector) Bytes {
	if pin, ok := l.p.policy.Pins[RegionCollector]; ok {
		return alignedWithin(left.Sub(pin))
	}
	base, slope := collectorModel(collector)
	return alignedWithin(max(left.Sub(base), 0).Scale(collectorDen, collectorDen+slope).Sub(1))
}

// alignedWithin is the largest heap that the JVM's rounding leaves within an amount.
func alignedWithin(amount Bytes) Bytes {
	if amount <= 0 {
		return 0
	}
	return amount.alignDown(alignmentOf(amount))
}

// fits says whether both pools hold.
func (r layout) fits() bool { return r.short <= 0 && r.heapShort <= 0 }

// pinned is the pin of a region, or the value given.
func (p *planner) pinned(region Region, value Bytes) Bytes {
	if pin, ok := p.policy.Pins[region]; ok {
		return max(pin, 0)
	}
	return value
}

// cacheCost is the native memory of a shared cache, with the pins that replace parts of it.
func (p *planner) cacheCost(c sharedCache) Bytes {
	if !p.w.Bounded {
		return 0
	}
	return p.pinned(RegionBlockCache, c.capacity).Add(p.pinned(RegionRocksDBOverhead, c.overhead())).Add(p.pinned(RegionMemtables, c.flushes()))
}
