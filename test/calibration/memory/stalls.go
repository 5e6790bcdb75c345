// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// stalls finds the longest time in which an instance made no progress, by phase, and apart from that the longest one with a rebalance in
// it. It is fed with what the instances tell ten times a second: one that is frozen tells nothing, which shows in the time of its next
// figures.
type stalls struct {
	mu    sync.Mutex
	phase string
	began int64 // of the phase, in ms
	last  map[string]progress
	worst map[string]int64
}

// progress is when an instance processed something last.
type progress struct {
	at, processed int64
	// rebalanced says that it was not RUNNING since then.
	rebalanced bool
}

// inRebalance stands for the stalls with a rebalance in them, whatever the phase.
const inRebalance = "rebalance"

func newStalls() *stalls { return &stalls{last: map[string]progress{}, worst: map[string]int64{}} }

// enter begins a phase at a time in ms. What began before counts from there.
func (s *stalls) enter(phase string, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.began = phase, at
}

// note takes the figures of an instance. Records that a task processes again after it has moved are progress too.
func (s *stalls) note(name string, f *figures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[name]
	last.rebalanced = last.rebalanced || f.State != "RUNNING"
	if known {
		phase := s.phase
		if last.rebalanced {
			phase = inRebalance
		}
		s.worst[phase] = max(s.worst[phase], f.At-max(last.at, s.began))
	}
	if !known || f.Processed != last.processed {
		last = progress{at: f.At, processed: f.Processed, rebalanced: f.State != "RUNNING"}
	}
	s.last[name] = last
}

// in is the longest stall of a phase, or inRebalance, in ms.
func (s *stalls) in(phase string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worst[phase]
}
