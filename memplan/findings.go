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
	if p.w.Guarantee.Value == ExactlyOnceV1 && !p.has(eosV1Gone) {
		p.warn("exactly_once has a producer for each active task: use exactly_once_v2, which has one for each stream thread")
	}
	if jvm.HeapMode == HeapFixed && plan.Heap >= plan.Limit {
		p.warn("the heap of %v is not below the limit of %v: the container is killed before the heap is full; lower -Xmx or raise the limit", plan.Heap, plan.Limit)
	}
}
