// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"slices"
	"strconv"
)

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
	// derivedSteps is the number of steps from a default to its floor.
	derivedSteps = 16
	// leastMemtable is the least write_buffer_size: 4 of RocksDB's own arena blocks would not fit into less (arena_block_size is at most an
	// eighth of it by default).
	leastMemtable = 1 * MiB
)

// tunable are the settings that the plan may lower, those first whose bytes are worth least.
var tunable = slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.floor == nil })

// noFloor is the floor of a setting that costs nothing, or more than memory: it is not lowered.
const noFloor = int64(MaxBytes)

// leastResponse is the floor of fetch.max.bytes. It leaves 64 KiB to each partition, and room for the largest batch, without which it
// would not bound, and for what the application itself wants to fetch of one partition.
func (p *planner) leastResponse(r role) int64 {
	n := p.partitions(r)
	if n == 0 { // this consumer reads nothing
		return noFloor
	}
	floor := max(leastFetch.Mul(n), p.w.Records.LargestBatch.Value)
	if own := r.of(p.w).MaxPartitionFetchBytes; own.From != Default {
		floor = max(floor, own.Value)
	}
	return int64(floor)
}

// leastPartitionFetch is the floor of max.partition.fetch.bytes: 64 KiB, or the largest batch.
func (p *planner) leastPartitionFetch(r role) int64 {
	if p.partitions(r) == 0 {
		return noFloor
	}
	return int64(max(leastFetch, p.w.Records.LargestBatch.Value))
}

// leastPolled is the floor of max.poll.records and buffered.records.per.partition. Of the consumers only the main one is lowered.
func (p *planner) leastPolled(r role) int64 {
	if r == restoreRole || r == globalRole {
		return noFloor
	}
	return leastRecords
}

// partitions are the partitions that the consumers of a role read.
func (p *planner) partitions(r role) Count {
	switch r {
	case restoreRole:
		return p.restoring()
	case globalRole:
		return p.globalPartitions()
	default:
		return p.mainPartitions()
	}
}

// mainPartitions are the partitions that the main consumers read.
func (p *planner) mainPartitions() Count { return worstActive(p, inputPartitions) }

// leastBuffer is the floor of buffer.memory: one request, and a batch for each partition that a thread may write. Below batch.size the
// producer does not start, and a record that does not fit is refused.
func (p *planner) leastBuffer(role) int64 {
	cfg := &p.w.Clients.Producer
	producers, _ := p.producerCount()
	written := p.writtenPartitions(producers).dividedBy(producers)
	return int64(max(cfg.MaxRequestSize.Value, cfg.BatchSize.Value.Mul(written), p.w.Records.Largest.Value))
}

// leastRecordCache is the floor of the record cache: it is never switched off, for that changes what the application sends.
func (p *planner) leastRecordCache(role) int64 {
	cached := worstActive(p, func(s *Subtopology) Count {
		n := Count(0)
		for i := range s.Stores {
			if s.Stores[i].Caching {
				n++
			}
		}
		return n
	})
	return int64(leastCached.Mul(max(cached, 1)))
}

// lowered is a workload with its tunable settings lowered by so many steps, the first setting first. 0 changes nothing, allSteps gives
// the floors.
func (p *planner) lowered(steps int) Workload {
	w := *p.w
	for i := range tunable {
		n := min(steps, derivedSteps)
		if n <= 0 {
			break
		}
		steps -= n
		p.lower(&w, &tunable[i], n)
	}
	return w
}

// allSteps is the number of steps from all defaults to all floors.
var allSteps = derivedSteps * len(tunable)

// lower lowers one setting by n steps, where the application left it at its default and it is above its floor.
func (p *planner) lower(w *Workload, s *setting, n int) {
	now := s.number.get(w, s.role)
	floor := s.floor(p, s.role)
	if now.From != Default || now.Value <= floor {
		return
	}
	s.number.set(w, s.role, Known(now.Value-int64(Bytes(now.Value-floor).Scale(int64(n), derivedSteps)), Derived))
}

// derives says whether the plan may choose configs: those of a bounded process whose topology is known.
func (w *Workload) derives() bool { return w.Bounded && len(w.Subtopologies) > 0 }

// atFloors are the limits of a load with everything derived at its floor: what the load needs at least.
func atFloors(w *Workload, load Load, policy Policy) limits {
	p := newPlanner(w, load, policy)
	if !w.derives() {
		return p.limits()
	}
	floors := p.lowered(allSteps)
	return newPlanner(&floors, load, policy).limits()
}

// derived is the planner for a limit, with the values that the plan chooses under it. What does not fit at all is planned at the floors.
func derived(w *Workload, load Load, policy Policy, limit Bytes) *planner {
	p := newPlanner(w, load, policy)
	if !w.derives() {
		return p
	}
	if !p.limits().at(limit).fits() {
		return p.shrunk(load, policy, limit)
	}
	return p.grown(load, policy, limit)
}

// shrunk lowers as little as makes the load fit.
func (p *planner) shrunk(load Load, policy Policy, limit Bytes) *planner {
	with := func(w Workload) (*planner, bool) {
		tried := newPlanner(&w, load, policy)
		return tried, tried.limits().at(limit).fits()
	}
	best, fits := with(p.lowered(allSteps))
	if !fits {
		return best
	}
	low, high := 0, allSteps // low does not fit, high does
	for high-low > 1 {
		middle := low + (high-low)/2
		if tried, ok := with(p.lowered(middle)); ok {
			best, high = tried, middle
		} else {
			low = middle
		}
	}
	for i := range tunable { // one that does not help stays at its default
		k := &tunable[i]
		if k.number.get(best.w, k.role).From != Derived {
			continue
		}
		w := *best.w
		k.number.set(&w, k.role, k.number.get(p.w, k.role))
		if tried, ok := with(w); ok {
			best = tried
		}
	}
	return best
}

// grown gives the record cache what is left of the heap: not beyond half of the memtables, and not by less than a MiB.
func (p *planner) grown(load Load, policy Policy, limit Bytes) *planner {
	cache := p.w.Clients.RecordCache
	_, pinned := policy.Pins[RegionRecordCache]
	if cache.From != Default || cache.Value <= 0 || pinned || !p.caches() || p.w.Application.LiveSet.From == Assumed {
		return p
	}
	r := p.limits().at(limit)
	onHeap := p.cacheOnHeap(MiB)
	more := min(Bytes(0).Sub(r.heapShort)/max(onHeap, 1), (r.cache.memtables/2).Sub(cache.Value)/MiB)
	if more < 1 {
		return p
	}
	w := *p.w
	w.Clients.RecordCache = Known(cache.Value.Add(MiB.Mul(Count(more))), Derived)
	return newPlanner(&w, load, policy)
}

// derivedConfigs are the configs of Kafka Streams that the plan chose, each with the prefix that wins over all others.
func (p *planner) derivedConfigs() []Config {
	var all []Config
	for i := range tunable {
		s := &tunable[i]
		if value := s.number.get(p.w, s.role); value.From == Derived {
			all = append(all, Config{Kind: Property, Name: streamsPrefix + s.planName(p.version), Value: strconv.FormatInt(value.Value, 10), From: Derived})
		}
	}
	return all
}

// streamsPrefix marks the properties of a plan that are configs of Kafka Streams.
const streamsPrefix = "streams."

// memtable is write_buffer_size for a write buffer manager, 0 where RocksDB's default does. The manager flushes when memtables take 7/8
// of it, and then the store that happens to write, however little that has. With a quarter of it at most, a busy store flushes itself
// before. A store is not given less than leastMemtable: then the manager flushes small memtables, and writes stall.
func (p *planner) memtable(manager Bytes) Bytes {
	if p.w.RocksDB.WriteBuffer.From != Default || manager/4 >= p.w.RocksDB.WriteBuffer.Value {
		return 0
	}
	return max((manager / 4).alignDown(MiB), leastMemtable)
}
