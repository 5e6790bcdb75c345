// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "fmt"

// newestVersion is the newest version of Kafka Streams whose memory the planner knows.
var newestVersion = Version{Major: 4, Minor: 4}

// effectiveVersion is the version to plan with: one that is not known counts as the newest.
func effectiveVersion(v Fact[Version]) Version {
	if v.Value == (Version{}) {
		return newestVersion
	}
	return v.Value
}

// leak is memory that some versions lose. It is never sized for: no limit is large enough.
type leak struct {
	// from is the first version that has it, fixed the first of its line that has not.
	from, fixed Version
	issue, what string
	// applies says whether the workload can meet it; nil means always.
	applies func(*Workload) bool
}

// leaks are the known leaks and unbounded growths of Kafka Streams and its clients, by the Apache Kafka issue.
var leaks = []leak{
	{fixed: Version{2, 3, 0}, issue: "KAFKA-8637 and KAFKA-8323", what: "native memory leaks with each restore and each opened store"},
	{fixed: Version{2, 5, 0}, issue: "KAFKA-9700", what: "compressed batches grow without bound", applies: compressed},
	{fixed: Version{2, 6, 0}, issue: "KAFKA-9703", what: "a split batch keeps 0.3 MB of heap and 0.8 MB of native memory for each part", applies: zstd},
	{fixed: Version{2, 8, 0}, issue: "KAFKA-12500", what: "the cache of a closed stream thread leaks"},
	{from: Version{4, 0, 0}, fixed: Version{4, 2, 1}, issue: "KAFKA-20398", what: "each replaced stream thread leaks a metrics reporter"},
	{from: Version{4, 1, 0}, fixed: Version{4, 1, 1}, issue: "KAFKA-19748", what: "range scans, session and sliding windows and joins leak native memory"},
	{from: Version{4, 3, 0}, fixed: Version{4, 3, 1}, issue: "KAFKA-20616, KAFKA-20688 and KAFKA-20663", what: "each opened store leaks native memory"},
	{from: Version{4, 0, 0}, fixed: Version{4, 3, 0}, issue: "KAFKA-17411 and KAFKA-19434",
		what: "every task directory that is not empty is open from the start to the first assignment", applies: persistent},
}

func compressed(w *Workload) bool {
	return w.Clients.Producer.Compression.Value != NoCompression && w.Clients.Producer.Compression.Value != ""
}

func persistent(w *Workload) bool { return w.StateDir.Persistent }

func zstd(w *Workload) bool { return w.Clients.Producer.Compression.Value == Zstd }

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
	if p.w.Guarantee.Value == ExactlyOnceV1 && !p.version.AtLeast(4, 0) {
		p.warn("exactly_once has a producer for each active task: use exactly_once_v2, which has one for each stream thread")
	}
	if jvm.HeapMode == HeapFixed && plan.Heap >= plan.Limit {
		p.warn("the heap of %v is not below the limit of %v: the container is killed before the heap is full; lower -Xmx or raise the limit", plan.Heap, plan.Limit)
	}
}

// versionWarnings are the known leaks of the version.
func (p *planner) versionWarnings() {
	v := p.w.Version.Value
	if v == (Version{}) {
		return
	}
	for _, l := range leaks {
		met := !before(v, l.from) && before(v, l.fixed)
		if met && (l.applies == nil || l.applies(p.w)) {
			p.warn("Kafka Streams %v has %s: %s; upgrade to %v, no limit is sized for it", v, l.issue, l.what, l.fixed)
		}
	}
}

// before says whether a is older than b.
func before(a, b Version) bool { return a.Before(b.Major, b.Minor, b.Patch) }
