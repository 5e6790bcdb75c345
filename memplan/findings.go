// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "fmt"

// warn notes something for people.
func (p *planner) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// findings are the warnings of a plan: the two of the top-down split first, then what the configs and the version bring.
func (p *planner) findings(plan Plan) []string {
	lines := p.warnings
	p.warnings = nil
	p.splitWarnings(plan.Split)
	p.configWarnings(plan)
	p.versionWarnings()
	return append(p.warnings, lines...)
}

// splitWarnings are the warnings of the top-down split: Cache or State is negative.
func (p *planner) splitWarnings(s Split) {
	if s.Cache < 0 {
		p.warn("this instance may not have enough heap: producer, consumers and record queues take %s a thread more than there is, "+
			"before any record cache", short(-s.Cache))
	}
	if s.State < 0 {
		p.warn("this instance may not have enough native memory: the JVM takes %s more than there is, before any state store", short(-s.State))
	}
}

// configWarnings are about configs that cannot work or cost more than they should.
func (p *planner) configWarnings(plan Plan) {
	cfg, jvm := &p.w.Clients.Producer, &p.w.JVM
	if cfg.BufferMemory.Value < cfg.BatchSize.Value {
		p.warn("buffer.memory of %v is less than batch.size of %v: the producer throws IllegalArgumentException; raise buffer.memory",
			cfg.BufferMemory.Value, cfg.BatchSize.Value)
	}
	if largest := p.w.Records.Largest; largest.From != Assumed && largest.Value > cfg.BufferMemory.Value {
		p.warn("the largest record of %v does not fit buffer.memory of %v: the producer throws RecordTooLargeException; raise buffer.memory",
			largest.Value, cfg.BufferMemory.Value)
	}
	p.setterWarnings()
	if p.w.Guarantee.Value == ExactlyOnceV1 && !p.has(eosV1Gone) {
		p.warn("exactly_once has a producer for each active task: use exactly_once_v2, which has one for each stream thread")
	}
	if jvm.HeapMode == HeapFixed && plan.Heap >= plan.Limit {
		p.warn("the heap of %v is not below the limit of %v: the container is killed before the heap is full; lower -Xmx or raise the limit", plan.Heap, plan.Limit)
	}
}

// setterWarnings are about an application's own rocksdb.config.setter: what it does cannot be seen. One that makes a cache, or a filter,
// must close what it replaces, or each opened store leaks it (confluentinc/ksql #10096); before 2.3 it had no way to (KAFKA-8324).
func (p *planner) setterWarnings() {
	cfg := &p.w.RocksDB
	if cfg.Setter.Value == "" {
		return
	}
	if before(p.version, Version{2, 3, 0}) {
		p.warn("rocksdb.config.setter %s: before 2.3 what a setter makes is never closed, and leaks with each opened store; upgrade", cfg.Setter.Value)
		return
	}
	if !p.w.Bounded && cfg.BlockCache.From == Default && cfg.WriteBuffer.From == Default {
		p.warn("rocksdb.config.setter %s may change the caches and memtables that are counted here as Kafka Streams sets them: give their sizes, "+
			"and see that it closes the cache that it replaces", cfg.Setter.Value)
	}
}
