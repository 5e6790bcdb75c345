// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package operatorconfig

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// pollInterval is the time between two reads of the file. The kubelet replaces a mounted ConfigMap by a symbolic link up to 85 s after its
// change, so a shorter time gains nothing.
const pollInterval = 10 * time.Second

// File is the configuration file of the operator. A fault in the file keeps the last good configuration. All methods are safe for concurrent
// use.
type File struct {
	options Options
	changed chan struct{}

	mu      sync.Mutex
	read    bool   // the file was read at least once
	content []byte // as last read, with or without a fault
	failure string // of the last read, as text
	current Config
	fault   error
}

// Options configure a [File].
type Options struct {
	// Path of the file; empty for none.
	Path string
	// Interval between two reads. Zero means every 10 s.
	Interval time.Duration
	// Apply is called with each new configuration, the first one included.
	Apply func(Config)
	// Report is called with the result of each read of new content.
	Report func(successful bool)
	// Log receives faults. The zero value discards them.
	Log logr.Logger
}

// Open reads the file for the first time. A fault is no error: without a last good configuration there are no clusters.
func Open(o Options) *File {
	o.Interval = cmp.Or(o.Interval, pollInterval)
	f := &File{options: o, changed: make(chan struct{}, 1)}
	f.load()
	f.apply()
	return f
}

// apply passes the configuration on.
func (f *File) apply() {
	if f.options.Apply != nil {
		f.options.Apply(f.Current())
	}
}

// Current returns the last good configuration. If the file has a fault and its key hold can be read nevertheless, that value counts.
func (f *File) Current() Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Fault returns the fault of the file; nil if it is good.
func (f *File) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// Changes returns a channel that delivers after each change of the configuration or of its fault. A waiting change is not queued again.
func (f *File) Changes() <-chan struct{} { return f.changed }

// NeedLeaderElection returns false: a standby replica has the configuration when it takes over.
func (*File) NeedLeaderElection() bool { return false }

// Start reads the file again and again until the context ends.
func (f *File) Start(ctx context.Context) error {
	ticker := time.NewTicker(f.options.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if !f.load() {
			continue
		}
		f.apply()
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// load reads the file and returns whether it changed. The content is compared: a mounted ConfigMap is a symbolic link, whose time of change
// may be older than that of the file before it.
func (f *File) load() bool {
	if f.options.Path == "" {
		return false
	}
	content, err := readOptional(f.options.Path)
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read && bytes.Equal(content, f.content) && failure == f.failure {
		return false
	}
	f.read = true
	f.content = content
	f.failure = failure
	next := Config{}
	if err == nil {
		next, err = Parse(content)
	}
	f.fault = err
	if err == nil {
		f.current = next
		f.options.Log.Info("Read the configuration", "file", f.options.Path, "clusters", len(next.Clusters), "hold", next.Hold)
	} else {
		f.current.Hold = cmp.Or(holdOf(content), f.current.Hold)
		f.options.Log.Error(err, "The configuration has a fault; the last good one stays active", "file", f.options.Path)
	}
	if f.options.Report != nil {
		f.options.Report(err == nil)
	}
	return true
}
