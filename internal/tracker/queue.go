// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"context"
	"sync"
)

// queue delivers keys in the order of their first change. Each key waits at most once.
type queue struct {
	out    chan string
	signal chan struct{}

	mu      sync.Mutex
	pending []string
	waiting map[string]bool // The keys in pending.
}

func newQueue() *queue {
	return &queue{out: make(chan string), signal: make(chan struct{}, 1), waiting: map[string]bool{}}
}

// add appends a key that is not waiting yet. It never blocks.
func (q *queue) add(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.waiting[key] {
		q.waiting[key] = true
		q.pending = append(q.pending, key)
	}
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// next removes the first key and returns it.
func (q *queue) next() (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		return "", false
	}
	key := q.pending[0]
	q.pending = q.pending[1:]
	delete(q.waiting, key)
	return key, true
}

// run delivers keys until the context ends.
func (q *queue) run(ctx context.Context) {
	for {
		key, ok := q.next()
		if !ok {
			select {
			case <-q.signal:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case q.out <- key:
		case <-ctx.Done():
			return
		}
	}
}
