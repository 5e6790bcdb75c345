// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// stalls finds the longest time in which an instance made no progress, by phase. It is fed with what the instances tell ten times a
// second: one that is frozen tells nothing, which shows in the time of its next figures.
type stalls struct {
	mu    sync.Mutex
	phase string
	began int64 // of the phase, in ms
	last  map[string]figures
	worst map[string]int64
}

func newStalls() *stalls { return &stalls{last: map[string]figures{}, worst: map[string]int64{}} }

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
	if !known || f.Processed != last.Processed {
		s.last[name] = *f
	}
	if known {
		s.worst[s.phase] = max(s.worst[s.phase], f.At-max(last.At, s.began))
	}
}

// in is the longest stall of a phase in ms.
func (s *stalls) in(phase string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worst[phase]
}
