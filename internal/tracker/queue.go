// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"context"
	"slices"
	"sync"
)

// queue delivers keys in the order of their first change. Each key waits at most once.
type queue struct {
	out    chan string
	signal chan struct{}

	mu      sync.Mutex
	pending []string
}

func newQueue() *queue {
	return &queue{out: make(chan string), signal: make(chan struct{}, 1)}
}

// add appends a key that is not waiting yet. It never blocks.
func (q *queue) add(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Contains(q.pending, key) {
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
