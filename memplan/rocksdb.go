// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// What Kafka Streams sets for each RocksDB instance (RocksDBStore, the same from 2.4 to 4.5): 98 MiB with 3 write buffers.
const (
	defaultBlockCache      = 50 * MiB
	defaultWriteBuffer     = 16 * MiB
	defaultMaxWriteBuffers = 3
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

// storeTotals are sums over all RocksDB instances that a pod may open.
type storeTotals struct {
	instances, families Count
	fixed               Bytes
}

// stores adds the state stores: RocksDB as shipped, or the fixed part of the bounded cost (the layout chooses the rest), and what both
// have.
func (b *builder) rocksDB() {
	t := b.stores
	fixed := RegionStoreFixed.line(t.fixed, b.w.Version.From,
		"the fixed cost of an open instance (measured), and of one more of a segmented store for a moment")
	if unit := t.fixed.per(t.instances); unit.Mul(t.instances) == t.fixed {
		fixed.Count, fixed.Unit = t.instances, unit
	}
	b.add(fixed)
	if b.w.Bounded {
		b.ownCaches()
	} else {
		b.defaultStores()
	}
	b.iterators()
	b.stateDirectory()
}

// plus adds the totals of another client.
func (t storeTotals) plus(o storeTotals) storeTotals {
	return storeTotals{
		instances: t.instances.Add(o.instances),
		families:  t.families.Add(o.families),
		fixed:     t.fixed.Add(o.fixed),
	}
}

// storeTotals sums what the tasks of the load and the global stores of the application open.
func (c *client) storeTotals() storeTotals {
	t := storeTotals{
		instances: worstTotal(c, instances),
		families:  worstTotal(c, dataFamilies),
		fixed:     worstTotal(c, c.fixedCost),
	}
	global := Subtopology{Stores: c.w.GlobalStores}
	return t.plus(storeTotals{instances: instances(&global), families: dataFamilies(&global), fixed: c.fixedCost(&global)})
}

// fixedCost is the fixed cost of the instances of a task.
func (c *client) fixedCost(s *Subtopology) Bytes {
	sum := Bytes(0)
	for i := range s.Stores {
		unit := fixedPlain
		switch {
		case c.has(offsetsFamily):
			unit = fixedOffsets
		case s.Stores[i].families() > 1:
			unit = fixedTimestamped
		}
		sum = sum.Add(unit.Mul(s.Stores[i].opened()))
	}
	return sum
}

// stateDirectory adds the files of a state directory in memory.
func (b *builder) stateDirectory() {
	if !b.w.StateDir.InMemory {
		return
	}
	from, unknown := Measured, 0
	bound := b.worstStores(func(s *Store) Bytes {
		if s.Instances() == 0 {
			return 0
		}
		if s.Size.Value <= 0 {
			unknown++
		}
		from = weakest(from, s.Size.From)
		return s.Size.Value
	})
	bound = bound.Add(manifest.Mul(b.stores.instances))
	b.add(RegionStateDirectory.line(bound, from, "tasks x the size of their stores, and 4 MiB for each instance"))
	if unknown > 0 {
		b.warn("the state directory is in memory, and stores without a known size (%d) count as nothing: give their size or put the directory on a disk", unknown)
	}
}
