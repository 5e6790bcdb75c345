// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "slices"

// The top-down policy. A bounded process takes its configs from the plan, so the plan may choose them, where the application left the
// default. It does so in this order:
//
//  1. Every line has its floor, with the reasons below. Under a limit that does not hold the floors nothing is derived further: the
//     plan says how much is missing.
//  2. What is left goes first to the configs at their defaults. Where it does not suffice for all, those are lowered whose bytes are
//     worth least, one after the other, each down to its floor before the next is touched, and none that does not help:
//     fetch sizes (a fetch of a few batches a partition keeps a consumer as busy as one of 50 MiB, and costs a second time as direct
//     memory), then record queues (more than a few polls ahead only wait), then producer buffers (a batch for each partition that is
//     written keeps the sender busy), and last the record cache (each of its bytes saves reads, writes and changelog records).
//  3. What is then left of native memory goes to the shared block cache, 3 parts, and the memtables in it, 2 parts (bounded.go): a byte
//     costs 1.30 B there, and half a byte more as a memtable.
//  4. What is left of the heap goes to the record cache, for only the heap can take it, where the application's own live set is known.
//     It costs 1.2 to 5 B of heap a byte (records.go), and is written to the memtables at every commit, all at once: so it is held within
//     half of them, or each commit would flush memtables that are not full. Heap is never taken from native memory for it: each of
//     those costs 1/0.7 with room for the collector, where a byte of block cache costs 1.30.
//
// A config that needs a restart is chosen for the load of the plan, the worst one, so that a rebalance does not change it.

// Floors of what is derived.
const (
	// leastFetch is the least that a fetch leaves to a partition.
	leastFetch = 64 * KiB
	// leastRecords is the least of max.poll.records and buffered.records.per.partition: below it the cost of a poll shows. The restore
	// consumer keeps its default: max.poll.records throttles restoring as well.
	leastRecords = 100
	// leastCached is the least record cache of a cached store: as much as of a fetched partition.
	leastCached = leastFetch
	// loweringSteps is the number of steps from a default to its floor.
	loweringSteps = 16
)

// tunable are the settings that a plan may lower, those first whose bytes are worth least.
var tunable = slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.floor == nil })

// noFloor is the floor of a setting that costs nothing, or more than memory: it is not lowered.
const noFloor = int64(MaxBytes)

// leastResponse is the floor of fetch.max.bytes. It leaves 64 KiB to each partition, and room for the largest batch, without which it
// would not bound, and for what the application itself wants to fetch of one partition.
func (c *client) leastResponse(r role) int64 {
	n := c.partitions(r)
	if n == 0 { // this consumer reads nothing
		return noFloor
	}
	floor := max(leastFetch.Mul(n), c.w.Records.LargestBatch.Value)
	if own := r.of(c.w).MaxPartitionFetchBytes; own.From != Default {
		floor = max(floor, own.Value)
	}
	return int64(floor)
}

// leastPartitionFetch is the floor of max.partition.fetch.bytes: 64 KiB, or the largest batch.
func (c *client) leastPartitionFetch(r role) int64 {
	if c.partitions(r) == 0 {
		return noFloor
	}
	return int64(max(leastFetch, c.w.Records.LargestBatch.Value))
}

// leastPolled is the floor of max.poll.records and buffered.records.per.partition. Of the consumers only the main one is lowered.
func (c *client) leastPolled(r role) int64 {
	if r == restoreRole || r == globalRole {
		return noFloor
	}
	return leastRecords
}

// leastBuffer is the floor of buffer.memory: one request, and a batch for each partition that a thread may write. Below batch.size the
// producer does not start, and a record that does not fit is refused.
func (c *client) leastBuffer(role) int64 {
	cfg := &c.w.Clients.Producer
	producers, _ := c.producerCount()
	written := c.writtenPartitions(producers).dividedBy(producers)
	return int64(max(cfg.MaxRequestSize.Value, cfg.BatchSize.Value.Mul(written), c.w.Records.Largest.Value))
}

// leastRecordCache is the floor of the record cache: it is never switched off, for that changes what the application sends.
func (c *client) leastRecordCache(role) int64 {
	return int64(leastCached.Mul(max(worstActive(c, cachedStores), 1)))
}

// cachedStores is the number of cached stores of a task.
func cachedStores(s *Subtopology) Count {
	n := Count(0)
	for i := range s.Stores {
		if s.Stores[i].Caching {
			n++
		}
	}
	return n
}

// lowerable is a setting above its floor that the application left at its default.
type lowerable struct {
	*setting
	initial, floor int64
}

// findLowerable returns the settings that the plan may lower: none where it may not choose configs.
func (c *client) findLowerable() []lowerable {
	if !c.w.derives() {
		return nil
	}
	var found []lowerable
	for i := range tunable {
		s := &tunable[i]
		now, floor := s.number.get(c.w, s.role), s.floor(c, s.role)
		if now.From == Default && now.Value > floor {
			found = append(found, lowerable{setting: s, initial: now.Value, floor: floor})
		}
	}
	return found
}

// derives reports whether the plan may choose configs: those of a bounded process with a known topology.
func (w *Workload) derives() bool { return w.Bounded && len(w.Subtopologies) > 0 }

// lowered returns the workload with its lowerable settings lowered by so many steps, the first setting first. 0 changes nothing, allSteps
// gives the floors.
func (p *process) lowered(steps int) *Workload {
	w := *p.w
	for _, s := range p.lowerable {
		n := min(steps, loweringSteps)
		if n <= 0 {
			break
		}
		steps -= n
		s.number.set(&w, s.role, Known(s.initial-int64(Bytes(s.initial-s.floor).Scale(int64(n), loweringSteps)), Derived))
	}
	return &w
}

// allSteps is the number of steps from all defaults to all floors.
func (p *process) allSteps() int { return loweringSteps * len(p.lowerable) }

// atDefaults returns the ledger with the settings of the application.
func (p *process) atDefaults() *ledger { return p.ledger(p.w) }

// atFloors returns the ledger with all lowerable settings at their floors: the least that the load requires.
func (p *process) atFloors() *ledger { return p.ledger(p.lowered(p.allSteps())) }

// choose returns the ledger with the settings for a limit: lowered where the defaults do not fit, and else with the record cache expanded.
func (p *process) choose(limit Bytes, defaults, floors *ledger) *ledger {
	if r := defaults.at(limit); r.fits() {
		return defaults.expand(&r)
	}
	if r := floors.at(limit); !r.fits() {
		return floors
	}
	return p.fit(limit, floors)
}

// fit lowers as little as makes the load fit a limit that holds its floors.
func (p *process) fit(limit Bytes, floors *ledger) *ledger {
	best := floors
	with := func(w *Workload) bool {
		tried := p.ledger(w)
		r := tried.at(limit)
		if r.fits() {
			best = tried
		}
		return r.fits()
	}
	low, high := 0, p.allSteps() // low does not fit, high does
	for high-low > 1 {
		middle := low + (high-low)/2
		if with(p.lowered(middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	for _, s := range p.lowerable { // one that does not help stays at its default
		if s.number.get(best.w, s.role).From == Derived {
			w := *best.w
			s.number.set(&w, s.role, Known(s.initial, Default))
			with(&w)
		}
	}
	return best
}

// expand gives the record cache what a layout leaves of the heap: not beyond half of the memtables, and not by less than a MiB.
func (l *ledger) expand(r *layout) *ledger {
	cache := l.w.Clients.RecordCache
	_, pinned := l.process.policy.Pins[RegionRecordCache]
	mayGrow := cache.From == Default && cache.Value > 0 && !pinned
	if !mayGrow || !l.caches() || l.w.Application.LiveSet.From == Assumed {
		return l
	}
	more := min(Bytes(0).Sub(r.heapDeficit)/max(l.cacheOnHeap(MiB), 1), (r.cache.memtables/2).Sub(cache.Value)/MiB)
	if more < 1 {
		return l
	}
	w := *l.w
	w.Clients.RecordCache = Known(cache.Value.Add(MiB.Mul(Count(more))), Derived)
	return l.process.ledger(&w)
}
