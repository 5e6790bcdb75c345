// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// settleTimeout is the time for everything to be right after a start or a storm. The machine is shared.
	settleTimeout = 10 * time.Minute
	// quietFor is the time without a pass or a request after which the operator counts as quiet.
	quietFor = 6 * time.Second
	// stormTime is the time within which every application changes in a storm.
	stormTime = 10 * time.Second
)

// progress prints a line while a long benchmark runs.
func (c *cluster) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().UTC().Format(time.TimeOnly)}, args...)...)
}

// pause waits, or ends the test if its context has ended.
func (c *cluster) pause(d time.Duration) {
	c.tb.Helper()
	select {
	case <-time.After(d):
	case <-c.tb.Context().Done():
		c.tb.Fatal(c.tb.Context().Err())
	}
}

// await waits until a condition holds.
func (c *cluster) await(what string, timeout time.Duration, holds func() bool) {
	c.tb.Helper()
	for deadline := time.Now().Add(timeout); !holds(); c.pause(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.tb.Fatalf("waiting for %s: not after %v", what, timeout)
		}
	}
}

// awaitQuiet waits until the operator has begun no pass and sent no request for a while. It returns the time of the last one.
func (f *fleet) awaitQuiet(o *operator) time.Time {
	f.tb.Helper()
	var last time.Time
	passes, requests := -1, -1
	f.await("a quiet operator", settleTimeout, func() bool {
		passesNow := o.scrape().passes()
		requestsNow := 0
		for _, r := range f.audit.since(0) {
			if !r.background() {
				requestsNow++
			}
		}
		if passesNow != passes || requestsNow != requests {
			passes = passesNow
			requests = requestsNow
			last = time.Now()
		}
		return time.Since(last) > quietFor
	})
	return last
}

// installed is the first start with everything to be written: plans and injections first, then the pods. The operator runs afterwards.
func (f *fleet) install() *operator {
	f.tb.Helper()
	o := f.startOperator(0)
	f.await("the injections", settleTimeout, func() bool {
		o.check()
		for _, a := range f.applications {
			if !a.isInjected() {
				return false
			}
		}
		return true
	})
	f.progress("all applications are injected")
	f.awaitQuiet(o)
	f.createPods()
	f.progress("all pods are created")
	f.awaitRight(settleTimeout)
	f.awaitQuiet(o)
	f.progress("everything is right")
	return o
}

// takeover is the result of a start or a change of the leader while there is nothing to change.
type takeover struct {
	judged, quiet time.Duration
	passes        int
	writes        counts
	moved         []string
	cpu           time.Duration
}

// coldStart starts an operator, with nothing to be changed.
func (f *fleet) coldStart() (*operator, takeover) {
	f.tb.Helper()
	mark := f.audit.mark()
	f.takeMoved()
	o := f.startOperator(0)
	return o, f.takeOver(o, o.started, mark)
}

// handOver starts a standby replica and then stops the leader.
func (f *fleet) handOver(leader *operator) (*operator, takeover) {
	f.tb.Helper()
	standby := f.startOperator(1 - leader.number)
	f.await("the caches of the standby replica", settleTimeout, func() bool { standby.check(); return standby.ready() })
	f.awaitQuiet(standby)
	mark := f.audit.mark()
	f.takeMoved()
	began := time.Now()
	leader.stop()
	return standby, f.takeOver(standby, began, mark)
}

// takeOver waits until an operator has judged every application and is quiet.
func (f *fleet) takeOver(o *operator, began time.Time, mark int) takeover {
	f.tb.Helper()
	f.await("a pass of every application", settleTimeout, func() bool { return o.scrape().judged() >= len(f.applications) })
	t := takeover{judged: time.Since(began)}
	t.quiet = f.awaitQuiet(o).Sub(began)
	t.passes = o.scrape().passes()
	t.writes = writesOf(f.audit.since(mark))
	t.moved = f.takeMoved()
	t.cpu = o.cpu()
	return t
}

// changes are the results of changes of single applications, one after the other.
type changes struct {
	count, passes              int
	pods                       int
	firstResize, resized, done []time.Duration
	writes                     counts
}

// changeEach changes some applications one after the other.
func (f *fleet) changeEach(o *operator, count int) changes {
	f.tb.Helper()
	c := changes{count: min(count, len(f.applications)), writes: counts{}}
	for i := range c.count {
		a := f.applications[i*37%len(f.applications)]
		c.pods += a.pods
		mark := f.audit.mark()
		passes := o.scrape().passes()
		a.raiseLoad()
		f.await("the change of "+a.name, time.Minute, func() bool { return a.problem() == "" })
		f.awaitQuiet(o)
		a.mu.Lock()
		c.done = append(c.done, a.settled.Sub(a.changed))
		if !a.firstResize.IsZero() {
			c.firstResize = append(c.firstResize, a.firstResize.Sub(a.changed))
			c.resized = append(c.resized, a.lastResize.Sub(a.changed))
		}
		a.mu.Unlock()
		c.passes += o.scrape().passes() - passes
		for kind, n := range writesOf(f.audit.since(mark)) {
			c.writes[kind] += n
		}
	}
	return c
}

// storm is the result of a change of every application within stormTime.
type storm struct {
	right    time.Duration
	settled  []time.Duration
	passes   int
	failed   int
	writes   counts
	requests int
	cpu      time.Duration
}

// changeAll changes every application within stormTime.
func (f *fleet) changeAll(o *operator) storm {
	f.tb.Helper()
	mark := f.audit.mark()
	before := o.scrape()
	cpu := o.cpu()
	began := time.Now()
	var group sync.WaitGroup
	group.Go(func() {
		for i, a := range f.applications {
			<-time.After(time.Until(began.Add(stormTime * time.Duration(i) / time.Duration(len(f.applications)))))
			a.raiseLoad()
		}
	})
	group.Wait()
	f.awaitRight(settleTimeout)
	s := storm{right: time.Since(began)}
	for _, a := range f.applications {
		s.settled = append(s.settled, a.settled.Sub(a.changed))
	}
	f.awaitQuiet(o)
	after := o.scrape()
	requests := f.audit.since(mark)
	s.passes = after.passes() - before.passes()
	s.failed = after.failedPasses() - before.failedPasses()
	s.writes = writesOf(requests)
	s.requests = len(requests)
	s.cpu = o.cpu() - cpu
	return s
}

// quiet is the result of a time without changes.
type quiet struct {
	minutes  float64
	passes   int
	requests counts
	cpu      time.Duration
}

// beQuiet observes the operator while nothing changes.
func (f *fleet) beQuiet(o *operator, d time.Duration) quiet {
	f.tb.Helper()
	mark := f.audit.mark()
	passes := o.scrape().passes()
	cpu := o.cpu()
	f.pause(d)
	q := quiet{minutes: d.Minutes(), requests: counts{}, cpu: o.cpu() - cpu}
	for _, r := range f.audit.since(mark) {
		if r.resource == "leases" || !r.background() {
			q.requests[r.kind()]++
		}
	}
	q.passes = o.scrape().passes() - passes
	return q
}
