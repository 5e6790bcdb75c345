// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// findings returns the warnings of a plan: the two of the top-down split first, then those of configs, version and lines.
func (r *layout) findings(plan *Plan, lines notes) []string {
	var n notes
	n.ofSplit(plan.Split)
	n.ofConfigs(r, plan)
	n.ofSetter(r.client)
	n.ofVersion(r.workload)
	return append(n, lines...)
}

// ofSplit adds the warnings of the top-down split: Cache or State is negative.
func (n *notes) ofSplit(s Split) {
	if s.Cache < 0 {
		n.warn("the heap may be too small: producers, consumers and record queues exceed it by %s per thread, even without a record cache", short(-s.Cache))
	}
	if s.State < 0 {
		n.warn("native memory may be too small: the JVM exceeds it by %s, even without a state store", short(-s.State))
	}
}

// ofConfigs adds warnings about configs that cannot work, or cost more than necessary.
func (n *notes) ofConfigs(of *layout, plan *Plan) {
	cfg := &of.workload.Clients.Producer
	jvm := &of.workload.JVM
	if cfg.BufferMemory.Value < cfg.BatchSize.Value {
		n.warn("buffer.memory of %v is less than batch.size of %v: the producer throws IllegalArgumentException; raise buffer.memory",
			cfg.BufferMemory.Value, cfg.BatchSize.Value)
	}
	if largest := of.workload.Records.Largest; largest.From != Assumed && largest.Value > cfg.BufferMemory.Value {
		n.warn("the largest record of %v does not fit buffer.memory of %v: the producer throws RecordTooLargeException; raise buffer.memory",
			largest.Value, cfg.BufferMemory.Value)
	}
	if of.workload.Guarantee.Value == ExactlyOnceV1 && !of.has(eosV1Gone) {
		n.warn("exactly_once has a producer for each active task: use exactly_once_v2, with one for each stream thread")
	}
	if jvm.HeapMode == HeapFixed && plan.Heap >= plan.Limit {
		n.warn("the heap of %v is not below the limit of %v: the container is killed before the heap is full; lower -Xmx or raise the limit", plan.Heap, plan.Limit)
	}
}

// ofSetter adds warnings about an application's own rocksdb.config.setter. Its effect is not known. A setter that makes a cache or a filter
// must close the replaced one, or each opened store leaks it (confluentinc/ksql #10096); before 2.3 it could not (KAFKA-8324).
func (n *notes) ofSetter(of *client) {
	cfg := &of.workload.RocksDB
	if cfg.Setter.Value == "" {
		return
	}
	if before(of.version, Version{2, 3, 0}) {
		n.warn("rocksdb.config.setter %s: before 2.3 the objects of a setter are never closed, and leak with each opened store; upgrade", cfg.Setter.Value)
		return
	}
	if !of.workload.Bounded && cfg.BlockCache.From == Default && cfg.WriteBuffer.From == Default {
		n.warn("rocksdb.config.setter %s may change the caches and memtables, which count with the defaults of Kafka Streams: set their sizes, "+
			"and make sure that it closes the cache that it replaces", cfg.Setter.Value)
	}
}
