// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
)

// tracked is a group in a loop.
type tracked struct {
	Observation

	next         time.Time // When it is to be polled; zero: at once.
	hurriedUntil time.Time
}

// loop polls the groups of one cluster. The monitor's mutex guards all but config and the channels.
type loop struct {
	config   ClusterConfig
	groups   map[string]*tracked
	notUntil time.Time // The end of a back-off.
	failures int       // Polls in a row that failed for the whole cluster.
	wake     chan struct{}
	stop     chan struct{}
}

func newLoop(config ClusterConfig) *loop {
	return &loop{config: config, groups: map[string]*tracked{}, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// poke makes the loop look again at what is due.
func (l *loop) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// hurry makes a group due, but no sooner than the fast interval after its last poll: events come in bursts.
func (l *loop) hurry(group string, now time.Time, in Intervals) {
	t := l.groups[group]
	if t == nil {
		return
	}
	t.hurriedUntil = now.Add(in.HurryFor)
	if soonest := t.At.Add(in.Fast); soonest.Before(t.next) {
		t.next = soonest
	}
	l.poke()
}

// due gives the groups that are to be polled now, sorted, and else how long to wait for the first.
func (l *loop) due(now time.Time) ([]string, time.Duration) {
	if len(l.groups) == 0 {
		return nil, time.Hour
	}
	if wait := l.notUntil.Sub(now); wait > 0 {
		return nil, wait
	}
	var due []string
	first := time.Hour
	for _, id := range slices.Sorted(maps.Keys(l.groups)) {
		wait := l.groups[id].next.Sub(now)
		if wait <= 0 {
			due = append(due, id)
		}
		first = min(first, wait)
	}
	return due, first
}

// run starts a cluster's loop.
func (m *Monitor) run(l *loop) {
	ctx, cancel := context.WithCancel(m.started)
	m.running.Go(func() {
		defer cancel()
		var client Describer
		defer func() {
			if client != nil {
				client.Close()
			}
		}()
		for m.wait(ctx, l) {
			client = m.poll(ctx, l, client)
		}
	})
	go func() {
		defer cancel()
		select {
		case <-l.stop:
		case <-ctx.Done():
		}
	}()
}

// wait returns true once groups are due, and false when the loop is to end.
func (m *Monitor) wait(ctx context.Context, l *loop) bool {
	for {
		m.mu.Lock()
		due, wait := l.due(time.Now())
		m.mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		if len(due) > 0 {
			return true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// poll describes all groups of a cluster that are due, in one batch, and stores what came of it. It gives the client to
// use from then on, which it makes if there is none.
func (m *Monitor) poll(ctx context.Context, l *loop, client Describer) Describer {
	m.mu.Lock()
	groups, _ := l.due(time.Now())
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.intervals.Timeout)
	defer cancel()
	var results map[string]Result
	if client == nil {
		var err error
		if client, err = m.connect(l.config); err != nil {
			client, results = nil, resultsOf(groups, clusterError(err))
		}
	}
	if client != nil {
		results = client.Describe(ctx, groups)
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		m.record(l, results, time.Now())
	}
	return client
}

// resultsOf gives every group the same error.
func resultsOf(groups []string, err error) map[string]Result {
	results := make(map[string]Result, len(groups))
	for _, group := range groups {
		results[group] = Result{Err: err}
	}
	return results
}

// record stores results, plans the next polls and sends the keys of what has changed.
func (m *Monitor) record(l *loop, results map[string]Result, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backOff(l, results, now)
	for _, id := range slices.Sorted(maps.Keys(results)) {
		t := l.groups[id]
		if t == nil {
			continue // Forgotten meanwhile.
		}
		before := t.Observation
		t.Observation = before.with(results[id], now)
		if t.next = now.Add(m.interval(t, now)); l.failures > 0 {
			t.next = l.notUntil
		}
		if changed(before, t.Observation) {
			for key, ref := range m.tracked {
				if ref.ApplicationID == id && m.loops[ref.clusterKey()] == l {
					m.changes.Add(key)
				}
			}
		}
	}
}

// interval is the time to a group's next poll.
func (m *Monitor) interval(t *tracked, now time.Time) time.Duration {
	if now.Before(t.hurriedUntil) {
		return m.intervals.Fast
	}
	return m.intervals.Slow + time.Duration(rand.Int64N(int64(m.intervals.Slow)/10+1))
}

// backOff counts polls that failed for the whole cluster, and sets the pause after them: doubled each time, and up to a
// tenth longer at random.
func (m *Monitor) backOff(l *loop, results map[string]Result, now time.Time) {
	var failure *Error
	for _, r := range results {
		if e, ok := errors.AsType[*Error](r.Err); ok && e.Group == "" {
			failure = e
		}
	}
	if failure == nil {
		if l.failures > 0 {
			m.log.Info("Reached the Kafka cluster again", "cluster", l.config.Name, "failures", l.failures)
		}
		l.failures, l.notUntil = 0, time.Time{}
		return
	}
	l.failures++
	if l.failures == 1 {
		m.log.Error(failure, "Describing the groups of a Kafka cluster failed; trying again with growing pauses", "cluster", l.config.Name)
	}
	pause := m.intervals.BackoffMax
	if doublings := l.failures - 1; doublings < 30 {
		pause = min(pause, m.intervals.BackoffMin<<doublings)
	}
	l.notUntil = now.Add(pause + time.Duration(rand.Int64N(int64(pause)/10+1)))
}

// with gives the observation after another result: what was known stays where the result has nothing better.
func (o Observation) with(r Result, now time.Time) Observation {
	o.At, o.Err = now, r.Err
	if r.Err != nil {
		return o
	}
	o.State = r.Group.State
	if r.Group.Assigned {
		o.Group, o.GroupAt = &r.Group, now
	}
	return o
}

// changed says whether there is something for the reconciler in a new observation.
func changed(a, b Observation) bool {
	return a.At.IsZero() || a.State != b.State || ClassOf(a.Err) != ClassOf(b.Err) || !reflect.DeepEqual(a.Group, b.Group)
}
