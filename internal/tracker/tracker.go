// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker runs polls in the background and delivers the keys of changed state. The pollers of Kafka groups and of the pods'
// reports share it.
package tracker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Tracker runs polls from its start to the end of its context. All methods are safe for concurrent use.
type Tracker struct {
	name  string
	queue *queue

	mu      sync.Mutex
	started context.Context // Nil before Start.
	ended   bool
	waiting []*poll // Polls added before Start.
	running sync.WaitGroup
	soon    map[string]*time.Timer // By key: changes that wait to be queued.
}

// poll is one function in the background.
type poll struct {
	run    func(context.Context)
	cancel context.CancelFunc // Nil before the poll runs.
}

// New returns a tracker without polls. Its name appears in errors.
func New(name string) *Tracker {
	return &Tracker{name: name, queue: newQueue(), soon: map[string]*time.Timer{}}
}

// Start runs all polls until the context ends, and returns once the last one has returned. It may be called once.
func (t *Tracker) Start(ctx context.Context) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.queue.run(ctx)
	t.end()
	t.running.Wait()
	return nil
}

// end prevents further polls from running, so that the wait group does not grow during the wait.
func (t *Tracker) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// begin runs the polls added before the start.
func (t *Tracker) begin(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started != nil {
		return fmt.Errorf("%s was already started", t.name)
	}
	t.started = ctx
	for _, p := range t.waiting {
		t.run(p)
	}
	t.waiting = nil
	return nil
}

// Run runs a poll in the background, after Start at the earliest. The poll's context ends with that of Start, or when stop is called.
func (t *Tracker) Run(run func(context.Context)) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &poll{run: run}
	if t.started == nil {
		t.waiting = append(t.waiting, p)
	} else {
		t.run(p)
	}
	return func() { t.stop(p) }
}

// run starts the goroutine of a poll, unless the tracker has ended.
func (t *Tracker) run(p *poll) {
	if t.ended {
		return
	}
	ctx, cancel := context.WithCancel(t.started)
	p.cancel = cancel
	t.running.Go(func() {
		defer cancel()
		p.run(ctx)
	})
}

// stop ends the context of a poll, or removes a poll before its start.
func (t *Tracker) stop(p *poll) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
		return
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(other *poll) bool { return other == p })
}

// Changed queues a key for [Tracker.Changes]. It never blocks.
func (t *Tracker) Changed(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.soon[key]; timer != nil {
		timer.Stop()
		delete(t.soon, key)
	}
	t.queue.add(key)
}

// ChangedSoon queues a key after a pause, in which further changes of the key gather. The pause begins with the first of them. It never blocks.
func (t *Tracker) ChangedSoon(key string, pause time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.soon[key] == nil {
		t.soon[key] = time.AfterFunc(pause, func() { t.Changed(key) })
	}
}

// Changes returns the channel of changed keys. A key that is waiting is not queued again. The channel is never closed.
func (t *Tracker) Changes() <-chan string { return t.queue.out }
