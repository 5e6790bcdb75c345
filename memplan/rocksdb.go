// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// The settings of Kafka Streams for each RocksDB instance (RocksDBStore, the same from 2.4 to 4.5): 98 MiB with 3 write buffers.
const (
	defaultBlockCache      = 50 * MiB
	defaultWriteBuffer     = 16 * MiB
	defaultMaxWriteBuffers = 3
)

// The memory of an open RocksDB instance beside cache and memtables, in bytes (measured): with one column family, with two, and with the
// offsets column family of 4.3 (KIP-1035).
const (
	fixedPlain       Bytes = 171_000
	fixedTimestamped Bytes = 226_000
	fixedOffsets     Bytes = 288_000
)

// manifest is the size that a RocksDB instance allocates for its MANIFEST in advance (manifest_preallocation_size, 4 MiB). It costs nothing
// on a disk, but memory in a directory in memory (measured: 28 instances with 0.6 MiB of data took 113 MiB of a tmpfs).
const manifest = 4 * MiB

// storeTotals are sums over all RocksDB instances that a pod may open.
type storeTotals struct {
	instances, families Count
	fixed               Bytes
}

// rocksDB adds the lines of the state stores: those of default or of bounded RocksDB, and those of both. The layout adds the shared cache.
func (b *builder) rocksDB() {
	totals := b.stores
	fixed := RegionStoreFixed.line(totals.fixed, b.workload.Version.From,
		"the fixed cost of an open instance (measured), and of one more of a segmented store for a moment")
	if unit := totals.fixed.per(totals.instances); unit.Mul(totals.instances) == totals.fixed {
		fixed.Count = totals.instances
		fixed.Unit = unit
	}
	b.add(fixed)
	if b.workload.Bounded {
		b.ownCaches()
	} else {
		b.defaultStores()
	}
	b.iterators()
	b.stateDirectory()
}

// plus returns the sum with the totals of another client.
func (t storeTotals) plus(o storeTotals) storeTotals {
	return storeTotals{
		instances: t.instances.Add(o.instances),
		families:  t.families.Add(o.families),
		fixed:     t.fixed.Add(o.fixed),
	}
}

// storeTotals returns the sums over the tasks of the load and the global stores.
func (c *client) storeTotals() storeTotals {
	tasks := storeTotals{
		instances: worstTotal(c, instances),
		families:  worstTotal(c, dataFamilies),
		fixed:     worstTotal(c, c.fixedCost),
	}
	global := Subtopology{Stores: c.workload.GlobalStores}
	return tasks.plus(storeTotals{instances: instances(&global), families: dataFamilies(&global), fixed: c.fixedCost(&global)})
}

// fixedCost returns the fixed cost of the instances of a task.
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
	if !b.workload.StateDir.InMemory {
		return
	}
	from := Measured
	unknown := 0
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
		b.warn("the state directory is in memory, and its stores of unknown size (%d) are not counted; set their size, or put the directory on a disk", unknown)
	}
}
