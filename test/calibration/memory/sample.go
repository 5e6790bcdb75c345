// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"streamweir.dev/streamweir/agent/report"
)

const (
	// sampleEvery is the interval at which the memory of an instance is read, reportEvery that of the agent's report.
	sampleEvery = 50 * time.Millisecond
	reportEvery = time.Second
)

// sample is one reading of an instance. The agent's figures are up to reportEvery older.
type sample struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Phase    string    `json:"phase"`
	memory
	figures
	CacheUsage  int64 `json:"cacheUsage,omitempty"`
	CachePinned int64 `json:"cachePinned,omitempty"`
	Stores      int64 `json:"stores,omitempty"`
}

// peaks are the largest values of each figure in a phase, over all instances and all readings.
type peaks struct {
	Samples   int64 `json:"samples"`
	Anon      int64 `json:"anon"`
	File      int64 `json:"file"`
	LeastFile int64 `json:"leastFile"`
	Kernel    int64 `json:"kernel"`
	HeapUsed  int64 `json:"heapUsed"`
	Metaspace int64 `json:"metaspace"`
	CodeCache int64 `json:"codeCache"`
	Direct    int64 `json:"direct"`
	Threads   int64 `json:"threads"`
	Cache     int64 `json:"cache"`
	Pinned    int64 `json:"pinned"`
	Stores    int64 `json:"stores"`
}

// add adds a reading.
func (p *peaks) add(s *sample) {
	if p.Samples++; p.Samples == 1 || s.File < p.LeastFile {
		p.LeastFile = s.File
	}
	for _, pair := range []struct {
		peak *int64
		now  int64
	}{
		{&p.Anon, s.Anon}, {&p.File, s.File}, {&p.Kernel, s.Kernel}, {&p.HeapUsed, s.HeapUsed}, {&p.Metaspace, s.Metaspace},
		{&p.CodeCache, s.CodeCache}, {&p.Direct, s.Direct}, {&p.Threads, int64(s.Threads)}, {&p.Cache, s.CacheUsage},
		{&p.Pinned, s.CachePinned}, {&p.Stores, s.Stores},
	} {
		*pair.peak = max(*pair.peak, pair.now)
	}
}

// merge adds the peaks of other readings.
func (p *peaks) merge(o *peaks) {
	least := p.LeastFile
	if p.Samples == 0 || (o.Samples > 0 && o.LeastFile < least) {
		least = o.LeastFile
	}
	count := p.Samples + o.Samples
	p.add(&sample{
		memory:     memory{Anon: o.Anon, File: o.File, Kernel: o.Kernel},
		figures:    figures{HeapUsed: o.HeapUsed, Metaspace: o.Metaspace, CodeCache: o.CodeCache, Direct: o.Direct, Threads: int(o.Threads)},
		CacheUsage: o.Cache, CachePinned: o.Pinned, Stores: o.Stores,
	})
	p.Samples, p.LeastFile = count, least
}

// watch samples the memory of instances, by phase.
type watch struct {
	// log receives samples as lines of JSON: one of each instance every logEvery.
	log      io.Writer
	logEvery time.Duration

	mu     sync.Mutex
	phase  string
	order  []string
	phases map[string]*peaks
}

func newWatch(log io.Writer, logEvery time.Duration) *watch {
	return &watch{log: log, logEvery: logEvery, phases: map[string]*peaks{}}
}

// enter begins a phase.
func (w *watch) enter(phase string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phases[phase] == nil {
		w.phases[phase] = &peaks{}
		w.order = append(w.order, phase)
	}
	w.phase = phase
}

// take adds a reading to the current phase.
func (w *watch) take(s *sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Phase = w.phase; s.Phase != "" {
		w.phases[s.Phase].add(s)
	}
}

// follow samples an instance until it ends or the context is done. It logs the reading with the most anonymous memory since the previous
// log line.
func (w *watch) follow(ctx context.Context, i *instance) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	var latest *report.Report
	var most *sample
	reported, logged := time.Time{}, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.Done():
			return
		case <-ticker.C:
		}
		if i.address != "" && time.Since(reported) >= reportEvery {
			reported = time.Now()
			if got, err := i.report(ctx); err == nil {
				latest = got
			}
		}
		now := i.sample(latest)
		if now == nil {
			continue
		}
		w.take(now)
		if most == nil || now.Anon > most.Anon {
			most = now
		}
		if time.Since(logged) >= w.logEvery {
			logged = time.Now()
			w.write(most)
			most = nil
		}
	}
}

// write logs a reading.
func (w *watch) write(s *sample) {
	line, err := json.Marshal(s)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.log.Write(append(line, '\n'))
}

// sample reads an instance. It returns nil if its cgroup cannot be read.
func (i *instance) sample(latest *report.Report) *sample {
	m, err := i.cgroup.read()
	if err != nil {
		return nil
	}
	s := &sample{At: time.Now().UTC(), Instance: i.Name, memory: m, figures: *i.latest.Load()}
	if latest != nil {
		s.CacheUsage = latest.RocksDB.CacheUsage
		s.CachePinned = latest.RocksDB.CachePinned
		s.Stores = latest.RocksDB.Opened - latest.RocksDB.Closed
	}
	return s
}
