// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"streamweir.dev/streamweir/controllers/decision"
)

// volatileMemory holds the part of each StreamApp's memory that is lost when the operator restarts.
type volatileMemory struct {
	mu    sync.Mutex
	byKey map[string]decision.Volatile
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
}
