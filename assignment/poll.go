// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"streamweir.dev/streamweir/internal/tracker"
)

// groupPoll is the state of one group within the poll of its cluster.
type groupPoll struct {
	Observation

	next         time.Time // The time of the next poll; zero polls at once.
	hurriedUntil time.Time
}

// clusterPoll is the poll of the groups of one cluster. The mutex of the monitor guards all fields but config and the channel.
type clusterPoll struct {
	config   ClusterConfig
	groups   map[string]*groupPoll
	notUntil time.Time     // The end of a back-off.
	failures int           // Failures of the whole cluster in a row.
	wake     chan struct{} // Ends a wait.
	stop     func()        // Ends the poll for good.
}

func newClusterPoll(config ClusterConfig) *clusterPoll {
	return &clusterPoll{config: config, groups: map[string]*groupPoll{}, wake: make(chan struct{}, 1)}
}

// signal makes the poll look for due groups again.
func (p *clusterPoll) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// membersPerFastPoll is the number of members up to which a hurried group is polled at the fast interval. The response of a broker contains
// the metadata of all members, so that of 500 members is requested every 20 s instead of every 2 s.
const membersPerFastPoll = 50

// fastInterval returns the time between two polls of a hurried group. It grows with the members up to the slow interval.
func (g *groupPoll) fastInterval(intervals Intervals) time.Duration {
	members := 0
	if g.Group != nil {
		for i := range g.Group.Processes {
			members += max(1, g.Group.Processes[i].Threads)
		}
	}
	factor := max(1, (members+membersPerFastPoll-1)/membersPerFastPoll)
	return min(intervals.Fast*time.Duration(factor), max(intervals.Slow, intervals.Fast))
}

// hurry makes a group due, but no sooner than the fast interval after its last poll: events come in bursts.
func (p *clusterPoll) hurry(id string, now time.Time, intervals Intervals) {
	group := p.groups[id]
	if group == nil {
		return
	}
	group.hurriedUntil = now.Add(intervals.HurryFor)
	if soonest := group.At.Add(group.fastInterval(intervals)); soonest.Before(group.next) {
		group.next = soonest
		p.signal()
	}
}

// due returns the groups to poll now, sorted, or the time until the first is due.
func (p *clusterPoll) due(now time.Time) ([]string, time.Duration) {
	if len(p.groups) == 0 {
		return nil, time.Hour
	}
	if wait := p.notUntil.Sub(now); wait > 0 {
		return nil, wait
	}
	var due []string
	first := time.Hour
	for _, id := range slices.Sorted(maps.Keys(p.groups)) {
		wait := p.groups[id].next.Sub(now)
		if wait <= 0 {
			due = append(due, id)
		}
		first = min(first, wait)
	}
	return due, first
}

// follow polls a cluster until the context ends, and then closes its client.
func (m *Monitor) follow(ctx context.Context, poll *clusterPoll) {
	var client Describer
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for m.wait(ctx, poll) {
		client = m.describe(ctx, poll, client)
	}
}

// wait returns true once groups are due, and false once the context has ended.
func (m *Monitor) wait(ctx context.Context, poll *clusterPoll) bool {
	for {
		m.mu.Lock()
		due, wait := poll.due(time.Now())
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
		case <-poll.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// describe describes all due groups of a cluster in one batch and records the results. It connects if client is nil, and returns the client
// for the next call.
func (m *Monitor) describe(ctx context.Context, poll *clusterPoll, client Describer) Describer {
	m.mu.Lock()
	groups, _ := poll.due(time.Now())
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.intervals.Timeout)
	defer cancel()
	var results map[string]Result
	if client == nil {
		connected, err := m.connect(poll.config)
		if err != nil {
			results = resultsOf(groups, clusterError(err))
		} else {
			client = connected
		}
	}
	if client != nil {
		results = client.Describe(ctx, groups)
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		m.record(poll, results, time.Now())
	}
	return client
}

// resultsOf returns the same error for every group.
func resultsOf(groups []string, err error) map[string]Result {
	results := make(map[string]Result, len(groups))
	for _, group := range groups {
		results[group] = Result{Err: err}
	}
	return results
}

// record stores results, schedules the next polls and queues the keys of changed groups.
func (m *Monitor) record(poll *clusterPoll, results map[string]Result, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backOff(poll, results, now)
	for _, id := range slices.Sorted(maps.Keys(results)) {
		group := poll.groups[id]
		if group == nil {
			continue // Forgotten during the poll.
		}
		before := group.Observation
		group.Observation = before.with(results[id], now)
		group.next = now.Add(m.interval(group, now))
		if poll.failures > 0 {
			group.next = poll.notUntil
		}
		if !changed(before, group.Observation) {
			continue
		}
		for _, key := range m.keysOf(poll, id) {
			m.tracker.Changed(key)
		}
	}
}

// interval returns the time to the next poll of a group.
func (m *Monitor) interval(group *groupPoll, now time.Time) time.Duration {
	if now.Before(group.hurriedUntil) {
		return group.fastInterval(m.intervals)
	}
	return tracker.Jitter(m.intervals.Slow)
}

// backOff counts failures of the whole cluster and sets the pause after them.
func (m *Monitor) backOff(poll *clusterPoll, results map[string]Result, now time.Time) {
	var failure *Error
	for _, result := range results {
		if err, ok := errors.AsType[*Error](result.Err); ok && err.Group == "" {
			failure = err
		}
	}
	if failure == nil {
		if poll.failures > 0 {
			m.log.Info("Reached the Kafka cluster again", "cluster", poll.config.Name, "failures", poll.failures)
		}
		poll.failures = 0
		poll.notUntil = time.Time{}
		return
	}
	poll.failures++
	if poll.failures == 1 {
		m.log.Error(failure, "Describing the groups of a Kafka cluster failed; retrying with growing pauses", "cluster", poll.config.Name)
	}
	backoff := tracker.Backoff{Min: m.intervals.BackoffMin, Max: m.intervals.BackoffMax}
	poll.notUntil = now.Add(backoff.Pause(poll.failures))
}

// with returns the observation after another result. The result replaces only those parts of the observation that it carries.
func (o Observation) with(r Result, now time.Time) Observation {
	o.At = now
	o.Err = r.Err
	if r.Err != nil {
		return o
	}
	o.State = r.Group.State
	if r.Group.Assigned {
		o.Group = &r.Group
		o.GroupAt = now
	}
	return o
}

// changed returns whether an observation differs from the one before it in a way that matters to the reconciler.
func changed(before, now Observation) bool {
	return before.At.IsZero() || before.State != now.State || ClassOf(before.Err) != ClassOf(now.Err) ||
		!reflect.DeepEqual(before.Group, now.Group)
}
