// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "fmt"

// notes are warnings for people.
type notes []string

// warn adds a warning.
func (n *notes) warn(format string, args ...any) { *n = append(*n, fmt.Sprintf(format, args...)) }

// entries are lines, their sums by term of the split, and warnings.
type entries struct {
	notes
	lines []Line
	sums  [termCount]Bytes
	// pins replace the amounts of regions.
	pins map[Region]Bytes
}

// add appends a line, or the pin of its region. It leaves out empty lines.
func (e *entries) add(line Line) {
	if pin, ok := e.pins[line.Region]; ok {
		line = Line{Region: line.Region, Pool: line.Pool, Name: line.Name, Client: line.Client, Bound: pin, Expected: pin, From: Spec, Why: "pinned"}
	}
	line.Bound = max(line.Bound, 0)
	line.Expected = min(max(line.Expected, 0), line.Bound)
	if line.Bound == 0 {
		return
	}
	at := line.term()
	e.sums[at] = e.sums[at].Add(line.Bound)
	e.lines = append(e.lines, line)
}

// builder adds the lines of one client.
type builder struct {
	*client
	entries
}

func (c *client) newBuilder(pins map[Region]Bytes, lines int) *builder {
	return &builder{client: c, entries: entries{lines: make([]Line, 0, lines), pins: pins}}
}

// tunableLines adds the lines that depend on tunable settings.
func (b *builder) tunableLines() {
	b.producers()
	b.consumers()
	b.records()
	b.directMemory()
}

// fixedLines adds the lines that do not depend on tunable settings.
func (b *builder) fixedLines() {
	b.sockets()
	b.rocksDB()
}

// process is a JVM process with a load. It has the lines that depend neither on the limit nor on tunable settings.
type process struct {
	// client is the planned client, with the settings of the application.
	*client
	policy Policy
	// others are the other KafkaStreams clients of the process.
	others []*client
	// opened are the RocksDB instances of all clients.
	opened storeTotals
	fixed  entries
	// lowerable are the settings that a plan may lower.
	lowerable []lowerable
}

// newProcess computes the fixed lines of the planned client, of the other clients, and of the process itself.
func newProcess(w *Workload, load Load, policy Policy) *process {
	p := &process{client: newClient(w, load), policy: validPolicy(policy)}
	p.opened = p.stores
	b := p.newBuilder(p.policy.Pins, 18)
	b.fixedLines()
	for i := range w.Others {
		p.join(b, &w.Others[i])
	}
	p.compactions(b)
	b.application()
	p.regions(b)
	p.fixed = b.entries
	p.lowerable = p.findLowerable()
	return p
}

// join adds the lines of another client, except those of pinned regions: a pin is the amount of the whole process. JVM, allocator, state
// directory and shared cache are those of the planned client.
func (p *process) join(b *builder, other *Client) {
	w := other.Workload
	w.JVM = p.workload.JVM
	w.Allocator = p.workload.Allocator
	w.StateDir = p.workload.StateDir
	w.Bounded = p.workload.Bounded
	joined := newClient(&w, other.Load)
	all := joined.newBuilder(nil, 40)
	all.tunableLines()
	all.fixedLines()
	for _, line := range all.lines {
		if _, pinned := p.policy.Pins[line.Region]; !pinned {
			line.Client = other.ApplicationID
			b.add(line.labelled(line.Name + " of " + other.ApplicationID))
		}
	}
	for _, warning := range all.notes {
		b.warn("%s: %s", other.ApplicationID, warning)
	}
	p.opened = p.opened.plus(joined.stores)
	p.others = append(p.others, joined)
}

// pinned returns the pin of a region, or else the value.
func (p *process) pinned(region Region, value Bytes) Bytes {
	if pin, ok := p.policy.Pins[region]; ok {
		return max(pin, 0)
	}
	return value
}

// ledger has all lines of a load that do not depend on the limit. It does not change once it is built.
type ledger struct {
	// client is the planned client with the tunable settings of this ledger.
	*client
	process *process
	tunable entries
	// sums are the bounds of all lines by term of the split; heap is the sum of the heap lines.
	sums [termCount]Bytes
	heap Bytes
	// leastHeap is the smallest heap that holds the heap lines with room for the collector, and not below JVM.LeastHeap.
	leastHeap Bytes
	// smallest is the smallest shared cache for the load.
	smallest sharedCache
}

// ledger returns the lines of the process with the tunable settings of a workload.
func (p *process) ledger(w *Workload) *ledger {
	l := &ledger{client: p.client, process: p}
	if w != p.workload {
		l.client = p.with(w)
	}
	b := l.newBuilder(p.policy.Pins, 10)
	b.tunableLines()
	l.tunable = b.entries
	for t := range l.sums {
		l.sums[t] = l.tunable.sums[t].Add(p.fixed.sums[t])
	}
	for _, t := range heapTerms {
		l.heap = l.heap.Add(l.sums[t])
	}
	l.leastHeap = alignHeap(max(l.heap.over(liveShare), w.JVM.LeastHeap))
	if w.Bounded {
		l.smallest = p.smallestCache()
	}
	return l
}

// heapTerms are the terms of the heap side.
var heapTerms = [...]term{termProducer, termConsumer, termBuffer, termCache, termProcess}
