// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// What Kafka Streams sets for each RocksDB instance (RocksDBStore, the same from 2.4 to 4.5): 98 MiB with 3 write buffers.
const (
	shippedBlockCache      = 50 * MiB
	shippedWriteBuffer     = 16 * MiB
	shippedMaxWriteBuffers = 3
)

// Memory of a RocksDB instance beside cache and memtables, in bytes.
const (
	// fixedPlain, fixedTimestamped and fixedOffsets are an open instance with one column family, with two, and with the offsets column
	// family of 4.3 (KIP-1035) (measured).
	fixedPlain       Bytes = 171_000
	fixedTimestamped Bytes = 226_000
	fixedOffsets     Bytes = 288_000
)

// manifest is what a RocksDB instance allocates for its MANIFEST beforehand (manifest_preallocation_size, 4 MiB): on a disk it is free,
// in memory it is taken (measured: 28 instances with 0.6 MiB of data took 113 MiB of a tmpfs).
const manifest = 4 * MiB

// rocksTotals are sums over all RocksDB instances that a pod may open.
type rocksTotals struct {
	instances, families Count
	fixed               Bytes
}

// stores adds the state stores: RocksDB as shipped, or the fixed part of the bounded cost (the layout chooses the rest), and what both
// have.
func (p *planner) stores() {
	t := p.totals
	fixed := RegionStoreFixed.line(t.fixed, p.w.Version.From,
		"the fixed cost of an open instance (measured), and of one more of a segmented store for a moment")
	if unit := t.fixed.per(t.instances); unit.Mul(t.instances) == t.fixed {
		fixed.Count, fixed.Unit = t.instances, unit
	}
	p.add(fixed)
	if p.w.Bounded {
		p.ownCaches(t)
	} else {
		p.storesAsShipped(t)
	}
	p.iterators(t)
	p.stateDirectory()
}

// plus adds the totals of another client.
func (t rocksTotals) plus(o rocksTotals) rocksTotals {
	return rocksTotals{
		instances: t.instances.Add(o.instances),
		families:  t.families.Add(o.families),
		fixed:     t.fixed.Add(o.fixed),
	}
}

// rocksTotals sums what the tasks of the load and the global stores of the application open.
func (p *planner) rocksTotals() rocksTotals {
	t := rocksTotals{
		instances: worstTotal(p, instances),
		families:  worstTotal(p, dataFamilies),
		fixed:     worstTotal(p, p.fixedCost),
	}
	global := Subtopology{Stores: p.w.GlobalStores}
	return t.plus(rocksTotals{instances: instances(&global), families: dataFamilies(&global), fixed: p.fixedCost(&global)})
}

// fixedCost is the fixed cost of the instances of a task.
func (p *planner) fixedCost(s *Subtopology) Bytes {
	sum := Bytes(0)
	for i := range s.Stores {
		unit := fixedPlain
		switch {
		case p.has(offsetsFamily):
			unit = fixedOffsets
		case s.Stores[i].families() > 1:
			unit = fixedTimestamped
		}
		sum = sum.Add(unit.Mul(s.Stores[i].opened()))
	}
	return sum
}

// stateDirectory adds the files of a state directory in memory.
func (p *planner) stateDirectory() {
	if !p.w.StateDir.InMemory {
		return
	}
	from, unknown := Measured, 0
	bound := p.storeSum(func(s Store) Bytes {
		if s.Instances() == 0 {
			return 0
		}
		if s.Size.Value <= 0 {
			unknown++
		}
		from = weakest(from, s.Size.From)
		return s.Size.Value
	})
	bound = bound.Add(manifest.Mul(p.totals.instances))
	p.add(RegionStateDirectory.line(bound, from, "tasks x the size of their stores, and 4 MiB for each instance"))
	if unknown > 0 {
		p.warn("the state directory is in memory, and stores without a known size (%d) count as nothing: give their size or put the directory on a disk", unknown)
	}
}

// storeSum is the worst sum of a cost over the stores of the tasks and the global stores.
func (p *planner) storeSum(cost func(Store) Bytes) Bytes {
	sum := worstTotal(p, func(s *Subtopology) Bytes {
		perTask := Bytes(0)
		for i := range s.Stores {
			perTask = perTask.Add(cost(s.Stores[i]))
		}
		return perTask
	})
	for i := range p.w.GlobalStores {
		sum = sum.Add(cost(p.w.GlobalStores[i]))
	}
	return sum
}
