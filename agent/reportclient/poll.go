// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"context"
	"math/rand/v2"
	"time"

	"streamweir.dev/streamweir/agent/report"
)

const (
	// maxShortPolls is how many of the pods without a long-poll are asked at the same time.
	maxShortPolls = 32
	// turn is the pause between two requests to a pod without a long-poll.
	turn = 10 * time.Second
	// longestWait is how long a pod may hold a request when nothing changes; up to a tenth shorter, at random, so that pods that were
	// connected together do not stay together.
	longestWait = 25 * time.Second
	// freshFor is how old a pod's figures may get: then the whole report is asked for, although nothing has changed that is told.
	freshFor = time.Minute
	// young is how long a container counts as starting. Kafka Streams is up well before; a JVM with a large class path under a small CPU
	// limit takes the longest.
	young = 2 * time.Minute
	// firstPause and longestPause bound the pause after a failure, which doubles each time; while a container is young it is firstPause.
	firstPause, longestPause = time.Second, 30 * time.Second
	// burst and refill limit the requests to a pod that answers at once each time: so many without a pause, then one each refill. A
	// rebalance is a handful of changes within a second: an assignment, then stores as they open.
	burst, refill = 5, time.Second
	// spreadEach and longestSpread bound the time over which the first requests to a key's pods are spread, so that thousands of reports
	// do not arrive at once when the operator starts.
	spreadEach, longestSpread = 2 * time.Millisecond, 5 * time.Second
)

// podPoll asks one pod. The mutex of its [Client] guards it, but not the channel.
type podPoll struct {
	key      string
	endpoint Endpoint
	state    report.PodReport
	failures int                // In a row.
	read     time.Time          // When the whole report was read; zero: not yet, or not since a failure.
	cancel   context.CancelFunc // Ends the poll; nil while it is not running.
	wake     chan struct{}      // Ends a pause.
}

func newPodPoll(key string, e Endpoint) *podPoll {
	return &podPoll{key: key, endpoint: e, wake: make(chan struct{}, 1)}
}

// update takes a pod's name and start. A later start ends a pause.
func (p *podPoll) update(e Endpoint) {
	restarted := e.Since.After(p.endpoint.Since)
	p.endpoint = e
	p.state.Pod, p.state.UID = e.Name, e.UID
	if restarted {
		p.failures = 0
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// end ends the poll for good.
func (p *podPoll) end() {
	if p.cancel != nil {
		p.cancel()
	}
}

// spread is the pause before the first request to one of so many pods.
func spread(pods int) time.Duration {
	return rand.N(min(time.Duration(pods)*spreadEach, longestSpread) + 1)
}

// run starts the poll of a pod that has an address.
func (r *Client) run(p *podPoll, pods int) {
	if p.endpoint.Address == "" {
		return
	}
	ctx, cancel := context.WithCancel(r.started)
	p.cancel = cancel
	pause := spread(pods)
	r.running.Go(func() {
		defer cancel()
		r.follow(ctx, p, pause)
	})
}

// follow asks a pod again and again until the context ends. Once the pod has one of the long-polls it keeps it.
func (r *Client) follow(ctx context.Context, p *podPoll, pause time.Duration) {
	long := false
	defer func() {
		if long {
			<-r.long
		}
	}()
	var pace pacer
	for p.sleep(ctx, pause) {
		if !long {
			select {
			case r.long <- struct{}{}:
				long = true
			default:
			}
		}
		a, ok := r.request(ctx, p, long)
		if !ok {
			return
		}
		pause = r.record(p, a, time.Now())
		switch {
		case a.err != nil:
		case long:
			pause = pace.pause(time.Now())
		default:
			pause = stretched(turn)
		}
	}
}

// sleep waits for a pause, or until it is woken; false: the poll is to end.
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

// request asks a pod once, with a short poll when its turn comes if it has no long one; false: the poll is to end.
func (r *Client) request(ctx context.Context, p *podPoll, long bool) (answer, bool) {
	if !long {
		select {
		case r.short <- struct{}{}:
		case <-ctx.Done():
			return answer{}, false
		}
		defer func() { <-r.short }()
	}
	a := r.ask(ctx, r.question(p, long, time.Now()))
	return a, ctx.Err() == nil
}

// question is what a pod is asked now: for news, or for the whole report where its figures get old, or where it has not yet shown, or not
// since a failure, that it is the right pod.
func (r *Client) question(p *podPoll, long bool, now time.Time) question {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := question{address: p.endpoint.Address, uid: p.endpoint.UID}
	fresh := freshFor - now.Sub(p.read)
	if fresh < time.Second {
		return q
	}
	q.news, q.after = true, p.state.Report.Seq
	if long {
		q.wait = min(longestWait-rand.N(longestWait/10), fresh)
	}
	return q
}

// record stores an answer, sends the key if something has changed, and gives the pause that a failure asks for.
func (r *Client) record(p *podPoll, a answer, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tracked[p.key][p.endpoint.UID] != p {
		return 0 // Forgotten meanwhile.
	}
	before := p.state
	p.state = after(before, a, now)
	turned := !before.Err.SameAs(p.state.Err)
	if turned && a.err != nil {
		r.log.V(1).Info("A pod's report cannot be read", "app", p.key, "pod", p.endpoint.Name, "cause", a.err.Error())
	}
	if turned || report.Changed(before.Report, p.state.Report) {
		r.changes.Add(p.key)
	}
	if a.report != nil {
		p.read = now
	}
	if a.err == nil {
		p.failures = 0
		return 0
	}
	p.read = time.Time{}
	p.failures++
	if now.Sub(p.endpoint.Since) < young {
		return stretched(firstPause)
	}
	return stretched(min(firstPause<<min(p.failures-1, 10), longestPause))
}

// after returns the state after another answer, which keeps all that the answer does not replace.
func after(s report.PodReport, a answer, now time.Time) report.PodReport {
	if s.Err = a.err; a.err != nil {
		if s.Since.IsZero() {
			s.Since = now
		}
		if a.silent && s.Gone.IsZero() {
			s.Gone = now
		}
		return s
	}
	s.Since, s.Gone = time.Time{}, time.Time{}
	if a.report != nil {
		s.Report, s.At = a.report, now
	}
	return s
}

// stretched is a pause that is up to a tenth longer, at random.
func stretched(pause time.Duration) time.Duration { return pause + rand.N(pause/10) }

// pacer bounds the requests to one pod.
type pacer struct {
	next time.Time // When the next request would come if all came evenly.
}

// pause is called after each request, and gives the pause before the next one.
func (p *pacer) pause(now time.Time) time.Duration {
	if earliest := now.Add(-burst * refill); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(refill)
	return max(0, p.next.Sub(now))
}
