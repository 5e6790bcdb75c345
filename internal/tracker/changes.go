// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker holds the parts that the pollers of Kafka groups and of pods' reports share.
package tracker

import (
	"context"
	"slices"
	"sync"
)

// Changes is a queue of keys. Each key is queued at most once.
type Changes struct {
	out    chan string
	signal chan struct{}

	mu      sync.Mutex
	pending []string
}

// NewChanges returns an empty queue.
func NewChanges() *Changes {
	return &Changes{out: make(chan string), signal: make(chan struct{}, 1)}
}

// C returns the channel that delivers the keys. It is never closed.
func (c *Changes) C() <-chan string { return c.out }

// Add queues a key. It never blocks.
func (c *Changes) Add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.pending, key) {
		c.pending = append(c.pending, key)
	}
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// next removes the first key and returns it.
func (c *Changes) next() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return "", false
	}
	key := c.pending[0]
	c.pending = c.pending[1:]
	return key, true
}

// Run delivers keys until the context ends.
func (c *Changes) Run(ctx context.Context) {
	for {
		key, ok := c.next()
		if !ok {
			select {
			case <-c.signal:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case c.out <- key:
		case <-ctx.Done():
			return
		}
	}
}
