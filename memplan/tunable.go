// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "slices"

// The top-down policy. A bounded process takes its configs from the plan, so the plan may choose those that the application left at their
// defaults. It does so in this order:
//
//  1. Every line has its floor, with the reasons below. Under a limit that does not hold the floors nothing more is lowered, and the plan
//     has a deficit.
//  2. The rest goes first to the configs at their defaults. If it does not suffice for all, configs are lowered, those first whose bytes
//     are worth least, each down to its floor before the next one, and none without an effect: fetch sizes (a fetch of a few batches a
//     partition keeps a consumer as busy as one of 50 MiB, and costs a second time as direct memory), then record queues (more than a few
//     polls ahead only wait), then producer buffers (a batch for each written partition keeps the sender busy), and last the record cache
//     (each of its bytes saves reads, writes and changelog records).
//  3. The rest of native memory goes to the shared block cache, 3 parts, and the memtables in it, 2 parts (bounded.go). A byte costs
//     1.30 B there, and half a byte more as a memtable.
//  4. The rest of the heap goes to the record cache, since only the heap can hold it, if the application's own live set is known. A byte
//     costs 1.2 to 5 B of heap (records.go). Every commit writes it to the memtables, all at once. So it stays within half of them, or
//     each commit would flush memtables that are not full. Native memory is never turned into heap for it: each byte of heap costs 1/0.7
//     with room for the collector, but a byte of block cache costs 1.30.
//
// A config change requires a restart. So configs are chosen for the worst load, the load of the plan, and a rebalance does not change them.

// The floors of lowered configs.
const (
	// leastFetch is the smallest part of a fetch for one partition.
	leastFetch = 64 * KiB
	// leastRecords is the smallest max.poll.records and buffered.records.per.partition: below it the cost of a poll shows.
	leastRecords = 100
	// leastCached is the smallest record cache of a cached store: as much as for a fetched partition.
	leastCached = leastFetch
	// loweringSteps is the number of steps from a default to its floor.
	loweringSteps = 16
)

// tunableSettings are the settings that a plan may lower, in this order.
var tunableSettings = slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.floor == nil })

// noFloor is the floor of a setting that costs nothing, or more than memory: it is not lowered.
const noFloor = int64(MaxBytes)

// leastResponse returns the floor of fetch.max.bytes: 64 KiB for each partition, and room for the largest batch, since a smaller value would
// not bound. It also has room for the application's own fetch size of one partition.
func (c *client) leastResponse(r role) int64 {
	partitions := c.partitions(r)
	if partitions == 0 { // this consumer reads nothing
		return noFloor
	}
	floor := max(leastFetch.Mul(partitions), c.workload.Records.LargestBatch.Value)
	if own := r.of(c.workload).MaxPartitionFetchBytes; own.From != Default {
		floor = max(floor, own.Value)
	}
	return int64(floor)
}

// leastPartitionFetch returns the floor of max.partition.fetch.bytes: 64 KiB, or the largest batch.
func (c *client) leastPartitionFetch(r role) int64 {
	if c.partitions(r) == 0 {
		return noFloor
	}
	return int64(max(leastFetch, c.workload.Records.LargestBatch.Value))
}

// leastPolled returns the floor of max.poll.records and buffered.records.per.partition. Only the main consumer is lowered:
// max.poll.records of the restore consumer throttles restoring too, and that of the global consumer costs nothing.
func (c *client) leastPolled(r role) int64 {
	if r == restoreRole || r == globalRole {
		return noFloor
	}
	return leastRecords
}

// leastBuffer returns the floor of buffer.memory: one request, and a batch for each partition that a thread may write. With less than
// batch.size the producer does not start, and it refuses a record that does not fit.
func (c *client) leastBuffer(role) int64 {
	cfg := &c.workload.Clients.Producer
	producers, _ := c.producerCount()
	written := c.writtenPartitions(producers).dividedBy(producers)
	return int64(max(cfg.MaxRequestSize.Value, cfg.BatchSize.Value.Mul(written), c.workload.Records.Largest.Value))
}

// leastRecordCache returns the floor of the record cache. It is never switched off, since the application would then send more records.
func (c *client) leastRecordCache(role) int64 {
	return int64(leastCached.Mul(max(worstActive(c, cachedStores), 1)))
}

// cachedStores returns the number of cached stores of a task.
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

// findLowerable returns the settings that the plan may lower; none if it may not choose configs.
func (c *client) findLowerable() []lowerable {
	if !c.workload.mayTune() {
		return nil
	}
	var found []lowerable
	for i := range tunableSettings {
		s := &tunableSettings[i]
		now := s.number.get(c.workload, s.role)
		floor := s.floor(c, s.role)
		if now.From == Default && now.Value > floor {
			found = append(found, lowerable{setting: s, initial: now.Value, floor: floor})
		}
	}
	return found
}

// mayTune reports whether the plan may choose configs: those of a bounded process with a known topology.
func (w *Workload) mayTune() bool { return w.Bounded && len(w.Subtopologies) > 0 }

// lowered returns the workload with its lowerable settings lowered by so many steps, the first setting first. 0 changes nothing, allSteps
// gives the floors.
func (p *process) lowered(steps int) *Workload {
	w := *p.workload
	for _, s := range p.lowerable {
		taken := min(steps, loweringSteps)
		if taken <= 0 {
			break
		}
		steps -= taken
		decrease := Bytes(s.initial-s.floor).Scale(int64(taken), loweringSteps)
		s.number.set(&w, s.role, Known(s.initial-int64(decrease), Derived))
	}
	return &w
}

// allSteps is the number of steps from all defaults to all floors.
func (p *process) allSteps() int { return loweringSteps * len(p.lowerable) }

// atDefaults returns the ledger with the settings of the application.
func (p *process) atDefaults() *ledger { return p.ledger(p.workload) }

// atFloors returns the ledger with all lowerable settings at their floors: the smallest requirement of the load.
func (p *process) atFloors() *ledger { return p.ledger(p.lowered(p.allSteps())) }

// floorsOf returns ledgers of a workload with all settings at their floors. Equal loads in a row share a ledger.
type floorsOf struct {
	workload *Workload
	policy   Policy
	load     Load
	last     *ledger
}

func (f *floorsOf) of(load Load) *ledger {
	if f.last == nil || !load.equal(f.load) {
		f.load = load
		f.last = newProcess(f.workload, load, f.policy).atFloors()
	}
	return f.last
}

// choose returns the ledger with the settings for a limit: with lowered settings if the defaults do not fit, and otherwise with an expanded
// record cache.
func (p *process) choose(limit Bytes, defaults, floors *ledger) *ledger {
	if r := defaults.at(limit); r.fits() {
		return defaults.expand(&r)
	}
	if r := floors.at(limit); !r.fits() {
		return floors
	}
	return p.fit(limit, floors)
}

// fit lowers settings just enough for a limit that holds the floors.
func (p *process) fit(limit Bytes, floors *ledger) *ledger {
	best := floors
	try := func(w *Workload) bool {
		tried := p.ledger(w)
		r := tried.at(limit)
		if r.fits() {
			best = tried
		}
		return r.fits()
	}
	tooFew := 0
	enough := p.allSteps()
	for enough-tooFew > 1 {
		middle := tooFew + (enough-tooFew)/2
		if try(p.lowered(middle)) {
			enough = middle
		} else {
			tooFew = middle
		}
	}
	for _, s := range p.lowerable { // a setting without an effect returns to its default
		if s.number.get(best.workload, s.role).From == Derived {
			w := *best.workload
			s.number.set(&w, s.role, Known(s.initial, Default))
			try(&w)
		}
	}
	return best
}

// expand gives the rest of the heap of a layout to the record cache: up to half of the memtables, in steps of a MiB.
func (l *ledger) expand(r *layout) *ledger {
	cache := l.workload.Clients.RecordCache
	_, pinned := l.process.policy.Pins[RegionRecordCache]
	mayGrow := cache.From == Default && cache.Value > 0 && !pinned
	if !mayGrow || !l.caches() || l.workload.Application.LiveSet.From == Assumed {
		return l
	}
	more := min(Bytes(0).Sub(r.heapDeficit)/max(l.cacheOnHeap(MiB), 1), (r.cache.memtables/2).Sub(cache.Value)/MiB)
	if more < 1 {
		return l
	}
	w := *l.workload
	w.Clients.RecordCache = Known(cache.Value.Add(MiB.Mul(Count(more))), Derived)
	return l.process.ledger(&w)
}
