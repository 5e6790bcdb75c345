// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"streamweir.dev/streamweir/controllers/decision"
)

// volatileMemory holds the part of each StreamApp's memory that is lost when the operator restarts.
type volatileMemory struct {
	mu    sync.Mutex
	byKey map[string]decision.Volatile
	since map[string]time.Time // the time of the first pass
}

// trackedSince returns the time of the first pass of a StreamApp in this process; now if this is the first one.
func (m *volatileMemory) trackedSince(key string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, tracked := m.since[key]
	if !tracked {
		if m.since == nil {
			m.since = map[string]time.Time{}
		}
		since = now
		m.since[key] = now
	}
	return since
}

func (m *volatileMemory) get(key string) decision.Volatile {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

func (m *volatileMemory) set(key string, volatile decision.Volatile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[string]decision.Volatile{}
	}
	m.byKey[key] = volatile
}

func (m *volatileMemory) delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
	delete(m.since, key)
}
