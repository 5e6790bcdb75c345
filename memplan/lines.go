// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"slices"
)

// planner computes the lines of one load. It lives for one call.
type planner struct {
	w      *Workload
	load   Load
	policy Policy
	// version is the workload's, or the newest known where it is not known.
	version Version
	lines   []Line
	// totals are the RocksDB instances of the application and of the other clients.
	totals rocksTotals
	others []*planner
	// heapSum and nativeSum are the sums of the lines so far.
	heapSum, nativeSum Bytes
	scratch            []share
	warnings           []string
}

// amount is the type of what tasks add to.
type amount interface{ Bytes | Count }

// share is what one task of a subtopology adds to a line, and how many tasks of it the load allows.
type share struct {
	each int64
	cap  int
}

// newPlanner computes all lines that do not depend on the limit: those of the application, of the other clients in its process, and of
// the process itself.
func newPlanner(w *Workload, load Load, policy Policy) *planner {
	p := newClient(w, load, policy)
	for i := range w.Others {
		p.join(&w.Others[i])
	}
	p.compactions()
	p.application()
	p.process()
	return p
}

// newClient computes the lines of one KafkaStreams client.
func newClient(w *Workload, load Load, policy Policy) *planner {
	p := &planner{load: saneLoad(load, len(w.Subtopologies)), policy: sanePolicy(policy), version: effectiveVersion(w.Version)}
	p.w = w.asIn(p.version)
	p.lines = make([]Line, 0, 40)
	p.scratch = make([]share, 0, len(w.Subtopologies))
	p.totals = p.rocksTotals()
	p.producers()
	p.consumers()
	p.records()
	p.directMemory()
	p.sockets()
	p.stores()
	return p
}

// join adds the lines of another client of the process, except those whose regions the policy pins: a pin is for the process. What
// belongs to the process is as the planned application has it.
func (p *planner) join(other *Client) {
	w := other.Workload
	w.JVM, w.Allocator, w.StateDir, w.Bounded = p.w.JVM, p.w.Allocator, p.w.StateDir, p.w.Bounded
	o := newClient(&w, other.Load, Policy{})
	for _, l := range o.lines {
		if _, pinned := p.policy.Pins[l.Region]; !pinned {
			l.Client, l.Name = other.ApplicationID, l.Name+" of "+other.ApplicationID
			p.add(l)
		}
	}
	for _, warning := range o.warnings {
		p.warn("%s: %s", other.ApplicationID, warning)
	}
	p.totals = p.totals.plus(o.totals)
	p.others = append(p.others, o)
}

// add appends a line, or the pin that the policy has for its region. Lines of nothing are left out.
func (p *planner) add(l Line) {
	if pin, ok := p.policy.Pins[l.Region]; ok {
		l.Bound, l.Expected, l.Count, l.Unit, l.From, l.Why = pin, pin, 0, 0, Spec, "pinned"
	}
	l.Bound = max(l.Bound, 0)
	l.Expected = min(max(l.Expected, 0), l.Bound)
	if l.Bound == 0 {
		return
	}
	p.lines = append(p.lines, l)
	if l.Pool == Heap {
		p.heapSum = p.heapSum.Add(l.Bound)
	} else {
		p.nativeSum = p.nativeSum.Add(l.Bound)
	}
}

// worstActive returns the largest sum of what active tasks add that the load allows.
func worstActive[T amount](p *planner, each func(*Subtopology) T) T {
	return worst(p, each, p.load.Active, func(c Cap) int { return c.Active })
}

// worstTotal returns the largest sum of what tasks of any role add that the load allows.
func worstTotal[T amount](p *planner, each func(*Subtopology) T) T {
	return worst(p, each, p.load.Total, func(c Cap) int { return c.Total })
}

// worst picks the costliest tasks within the caps. Tasks of one subtopology cost the same, so the costliest first is exact.
func worst[T amount](p *planner, each func(*Subtopology) T, tasks int, capOf func(Cap) int) T {
	shares := p.scratch[:0]
	for i := range p.w.Subtopologies {
		if cost := each(&p.w.Subtopologies[i]); cost > 0 {
			shares = append(shares, share{each: int64(cost), cap: capOf(p.load.Caps[i])})
		}
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(b.each, a.each) })
	sum := Bytes(0)
	for _, s := range shares {
		n := min(s.cap, tasks)
		sum = sum.Add(Bytes(s.each).Mul(Count(n)))
		tasks -= n
	}
	return T(sum)
}

// saneLoad holds a load within what can be, with a cap for each subtopology.
func saneLoad(l Load, subtopologies int) Load {
	l.Threads = max(clampCount(l.Threads), 1)
	l.Active, l.Total = clampCount(l.Active), clampCount(l.Total)
	l.Total = max(l.Total, l.Active)
	caps := l.Caps
	l.Caps = make([]Cap, subtopologies)
	for i := range l.Caps {
		if i < len(caps) {
			l.Caps[i] = Cap{Active: clampCount(caps[i].Active), Total: clampCount(max(caps[i].Total, caps[i].Active))}
		}
	}
	return l
}

// sanePolicy holds a policy within what can be.
func sanePolicy(policy Policy) Policy {
	policy.HeadroomPercent = min(max(policy.HeadroomPercent, 0), maxHeadroom)
	policy.PageCachePercent = min(max(policy.PageCachePercent, 0), maxHeadroom)
	policy.PageCacheFloor = max(policy.PageCacheFloor, 0)
	return policy
}
