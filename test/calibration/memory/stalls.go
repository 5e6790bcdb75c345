// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// stalls finds the longest time without progress of an instance, by phase, and separately the longest one that includes a rebalance. Its
// input is the figures that the instances print ten times a second. A frozen instance prints nothing; its next figures show the time.
type stalls struct {
	mu    sync.Mutex
	phase string
	began int64 // of the phase, in ms
	last  map[string]progress
	worst map[string]int64
}

// progress is the last progress of an instance.
type progress struct {
	at, processed int64
	// rebalanced is set if the instance has not been RUNNING all the time since then.
	rebalanced bool
}

// inRebalance is the key of the stalls that include a rebalance, in any phase.
const inRebalance = "rebalance"

func newStalls() *stalls { return &stalls{last: map[string]progress{}, worst: map[string]int64{}} }

// enter begins a phase at a time in ms. A stall that began before counts from there.
func (s *stalls) enter(phase string, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.began = phase, at
}

// note processes the figures of an instance. Records that a moved task processes again count as progress.
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

// in is the longest stall of a phase, or of inRebalance, in ms.
func (s *stalls) in(phase string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worst[phase]
}
