// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"context"
	"math/rand/v2"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/internal/tracker"
)

const (
	// maxShortPolls is the number of concurrent requests to pods without a long poll.
	maxShortPolls = 32
	// maxFailingPolls is the number of concurrent requests to pods whose last request failed. Such a request may take as long as connecting
	// to an address that drops every packet, so it takes no place of a pod that responds.
	maxFailingPolls = 32
	// shortPollInterval is the pause between two requests to a pod without a long poll.
	shortPollInterval = 10 * time.Second
	// longestWait is the longest time without a response while nothing changes. It is shortened by up to a tenth, at random, so that pods
	// that were connected together spread out.
	longestWait = 25 * time.Second
	// freshFor is the maximum age of a pod's figures. The whole report is requested after it, even without a change.
	freshFor = time.Minute
	// startupWindow is the time that a container may take to start. Kafka Streams takes much less; a JVM with a large class path under a
	// small CPU limit takes the longest.
	startupWindow = 2 * time.Minute
	// A pod that responds at once each time gets burst requests without a pause, and one request per refill after them. A rebalance is a
	// handful of changes within a second: an assignment, then stores as they open.
	burst  = 5
	refill = time.Second
	// gatherFor is the time in which the changes of one rebalance gather: all pods report theirs within a fraction of a second.
	gatherFor = 200 * time.Millisecond
	// The first requests to the pods of a key are spread over spreadPerPod for each pod, and over longestSpread at most, so that thousands
	// of reports do not arrive at once when the operator starts.
	spreadPerPod  = 2 * time.Millisecond
	longestSpread = 5 * time.Second
)

// failureBackoff bounds the pause after failures. It does not grow during the startup window.
var failureBackoff = tracker.Backoff{Min: time.Second, Max: 30 * time.Second}

// podPoll is the poll of one pod. The mutex of its [Client] guards all fields but the channel.
type podPoll struct {
	key      string
	endpoint Endpoint
	state    report.PodReport
	failures int           // In a row.
	read     time.Time     // When the whole report was read; zero before the first one and after a failure.
	stop     func()        // Ends the poll for good.
	wake     chan struct{} // Ends a pause.
}

func newPodPoll(key string, endpoint Endpoint) *podPoll {
	return &podPoll{key: key, endpoint: endpoint, stop: func() {}, wake: make(chan struct{}, 1)}
}

// update sets the pod's name, token and start. A later start and another token end a pause.
func (p *podPoll) update(endpoint Endpoint) {
	restarted := endpoint.Started.After(p.endpoint.Started) || endpoint.Token != p.endpoint.Token
	p.endpoint = endpoint
	p.state.Pod = endpoint.Name
	p.state.UID = endpoint.UID
	if restarted {
		p.failures = 0
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// spread returns a random pause before the first request to one of a number of pods.
func spread(pods int) time.Duration {
	return rand.N(min(time.Duration(pods)*spreadPerPod, longestSpread) + 1)
}

// follow polls a pod until the context ends. A pod keeps its long poll until a request fails.
func (c *Client) follow(ctx context.Context, poll *podPoll, pause time.Duration) {
	var long, failing bool
	giveBack := func() {
		if long {
			<-c.long
			long = false
		}
	}
	defer giveBack()
	var pace pacer
	for poll.sleep(ctx, pause) {
		places := c.short
		switch {
		case failing:
			places = c.failing
		case long || tryTake(c.long):
			long = true
			places = nil
		}
		received, ok := c.poll(ctx, poll, places)
		if !ok {
			return
		}
		pause = c.record(poll, received, time.Now())
		recovered := failing && received.err == nil
		failing = received.err != nil
		switch {
		case failing:
			giveBack()
		case long, recovered:
			pause = pace.pause(time.Now())
		default:
			pause = tracker.Jitter(shortPollInterval)
		}
	}
}

// tryTake takes a place if one is free.
func tryTake(places chan<- struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// sleep waits for the end of a pause or for wake. It returns false if the context has ended.
func (p *podPoll) sleep(ctx context.Context, pause time.Duration) bool {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.wake:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// poll sends one request to a pod. It first waits for a place among the requests in progress; nil places are those of long polls, which need
// none. It returns false if the context has ended.
func (c *Client) poll(ctx context.Context, poll *podPoll, places chan struct{}) (response, bool) {
	long := places == nil
	if !long {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return response{}, false
		}
		defer func() { <-places }()
	}
	received := c.send(ctx, c.nextRequest(poll, long, time.Now()))
	return received, ctx.Err() == nil
}

// nextRequest returns the next request to a pod. It waits for a change, unless the figures become too old or no report has confirmed the
// pod's UID since the start or since a failure: then it requests the whole report.
func (c *Client) nextRequest(poll *podPoll, long bool, now time.Time) request {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := request{address: poll.endpoint.Address, uid: poll.endpoint.UID, token: poll.endpoint.Token}
	fresh := freshFor - now.Sub(poll.read)
	if fresh < time.Second {
		return next
	}
	next.onChange = true
	next.after = poll.state.Report.Seq
	if long {
		next.wait = min(longestWait-rand.N(longestWait/10), fresh)
	}
	return next
}

// record stores a response and queues the key if something has changed. It returns the pause after a failure.
func (c *Client) record(poll *podPoll, received response, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pods[poll.key][poll.endpoint.UID] != poll {
		return 0 // Forgotten during the request.
	}
	before := poll.state
	poll.state = after(before, received, now)
	turned := !before.Err.SameAs(poll.state.Err)
	if turned && received.err != nil {
		c.log.V(1).Info("Reading a pod's report failed", "app", poll.key, "pod", poll.endpoint.Name, "cause", received.err.Error())
	}
	switch {
	case received.dead:
		c.tracker.Changed(poll.key) // a failed pod must not wait
	case turned || report.Changed(before.Report, poll.state.Report):
		c.tracker.ChangedSoon(poll.key, gatherFor)
	}
	if received.report != nil {
		poll.read = now
	}
	if received.err == nil {
		poll.failures = 0
		return 0
	}
	poll.read = time.Time{}
	poll.failures++
	if now.Sub(poll.endpoint.Started) < startupWindow {
		return failureBackoff.Pause(1)
	}
	return failureBackoff.Pause(poll.failures)
}

// after returns the state after a response. The response replaces only those parts of the state that it carries.
func after(state report.PodReport, received response, now time.Time) report.PodReport {
	state.Err = received.err
	if received.err != nil {
		if state.Since.IsZero() {
			state.Since = now
		}
		if received.dead && state.Gone.IsZero() {
			state.Gone = now
		}
		return state
	}
	state.Since = time.Time{}
	state.Gone = time.Time{}
	if received.report != nil {
		state.Report = received.report
		state.At = now
	}
	return state
}

// pacer limits the rate of the requests to one pod.
type pacer struct {
	next time.Time // The time of the next request if all came evenly.
}

// pause returns the pause before the next request. It is called after each request.
func (p *pacer) pause(now time.Time) time.Duration {
	if earliest := now.Add(-burst * refill); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(refill)
	return max(0, p.next.Sub(now))
}
