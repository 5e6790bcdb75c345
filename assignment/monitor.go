// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"streamweir.dev/streamweir/internal/tracker"
)

// Describer describes groups of one Kafka cluster. [Cluster] is the real one.
type Describer interface {
	// Describe describes groups in one batch. There is one result for each group asked for. An error is an [*Error];
	// one without a group's name is that of the whole cluster, and is every group's result.
	Describe(ctx context.Context, groups []string) map[string]Result
	// Close ends all connections.
	Close()
}

// Result is what came of describing one group: a Group, or an error.
type Result struct {
	Group Group
	Err   error
}

// Intervals is how often a [Monitor] asks.
type Intervals struct {
	// Slow is the time between two polls of a group when nothing happens; each is up to a tenth longer, at random.
	Slow time.Duration
	// Fast is the time between two polls of a group that was hurried.
	Fast time.Duration
	// HurryFor is how long a group stays hurried.
	HurryFor time.Duration
	// Timeout of one poll of one cluster.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the pause after polls that failed for the whole cluster; it doubles each time.
	BackoffMin, BackoffMax time.Duration
}

// DefaultIntervals poll quickly for a minute after a pod event and slowly otherwise. Kafka moves the tasks of a silent
// member after session.timeout.ms, 45 s by default (KIP-735), so what follows a dead pod falls into the minute.
func DefaultIntervals() Intervals {
	return Intervals{
		Slow:       30 * time.Second,
		Fast:       2 * time.Second,
		HurryFor:   time.Minute,
		Timeout:    10 * time.Second,
		BackoffMin: 2 * time.Second,
		BackoffMax: 2 * time.Minute,
	}
}

// Observation is what a [Monitor] knows of a group.
type Observation struct {
	// Group is the newest description that had the assignment; nil: none so far. While the group rebalances, or cannot
	// be asked, it stays the last one. It is shared: read only.
	Group *Group
	// GroupAt is when Group was read.
	GroupAt time.Time
	// State is the group's state in the broker's words at the last poll that succeeded; empty: none has.
	State string
	// Err is the error of the last poll, nil if it succeeded. [ClassOf] tells its class.
	Err error
	// At is the time of the last poll; zero: not polled yet.
	At time.Time
}

// Monitor polls the groups that are tracked and tells of changes. Each Kafka cluster has one client and one loop of its
// own, so that a slow one holds up no other. All methods may be called at any time, from any goroutine.
type Monitor struct {
	clusters  map[string]ClusterConfig
	connect   func(ClusterConfig) (Describer, error)
	intervals Intervals
	log       logr.Logger
	changes   *tracker.Changes

	mu      sync.Mutex
	started context.Context // Nil until Start.
	tracked map[string]Ref  // By key.
	loops   map[string]*loop
	running sync.WaitGroup
}

// MonitorOptions are a [Monitor]'s settings.
type MonitorOptions struct {
	// Clusters by name, from [LoadClusters].
	Clusters []ClusterConfig
	// Connect makes a cluster's client; nil: [NewCluster].
	Connect func(ClusterConfig) (Describer, error)
	// Intervals of polling; zero: [DefaultIntervals].
	Intervals Intervals
	// Log takes what happens to clusters; the zero value discards.
	Log logr.Logger
}

// NewMonitor makes a monitor that tracks nothing yet.
func NewMonitor(o MonitorOptions) *Monitor {
	m := &Monitor{
		clusters:  map[string]ClusterConfig{},
		connect:   o.Connect,
		intervals: cmp.Or(o.Intervals, DefaultIntervals()),
		log:       o.Log,
		changes:   tracker.NewChanges(),
		tracked:   map[string]Ref{},
		loops:     map[string]*loop{},
	}
	for _, c := range o.Clusters {
		m.clusters[c.Name] = c
	}
	if m.connect == nil {
		m.connect = func(c ClusterConfig) (Describer, error) { return NewCluster(c) }
	}
	return m
}

// Start polls until the context ends, and then closes all connections. It may be called once.
func (m *Monitor) Start(ctx context.Context) error {
	m.mu.Lock()
	if m.started != nil {
		m.mu.Unlock()
		return errors.New("the monitor of Kafka groups was started before")
	}
	m.started = ctx
	for _, l := range m.loops {
		m.run(l)
	}
	m.mu.Unlock()
	m.changes.Run(ctx)
	m.running.Wait()
	return nil
}

// Cluster gives a configured cluster by name, for [ClusterConfig.Permits].
func (m *Monitor) Cluster(name string) (ClusterConfig, bool) {
	c, ok := m.clusters[name]
	return c, ok
}

// Track makes the monitor poll a group and send the key through [Monitor.Changes] when it changes. A key tracks one
// group; another ref replaces it. Several keys may track the same group.
func (m *Monitor) Track(key string, ref Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.tracked[key]; ok {
		if old == ref {
			return
		}
		m.forget(key)
	}
	m.tracked[key] = ref
	l := m.loopFor(ref)
	if l != nil && l.groups[ref.ApplicationID] == nil {
		l.groups[ref.ApplicationID] = &tracked{}
		l.poke()
	}
}

// Forget ends what [Monitor.Track] began. A group that no key tracks is polled no more, and what was known is dropped.
func (m *Monitor) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(key)
}

// Hurry polls a tracked group at once, and quickly for a while: for when something has happened to a pod.
func (m *Monitor) Hurry(ref Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.loops[ref.clusterKey()]; l != nil {
		l.hurry(ref.ApplicationID, time.Now(), m.intervals)
	}
}

// Latest gives what is known of a tracked group; zero for one that is not tracked.
func (m *Monitor) Latest(ref Ref) Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.config(ref); !ok {
		return Observation{Err: &Error{Class: ClassUnknownCluster, Group: ref.ApplicationID}}
	}
	if l := m.loops[ref.clusterKey()]; l != nil && l.groups[ref.ApplicationID] != nil {
		return l.groups[ref.ApplicationID].Observation
	}
	return Observation{}
}

// Changes sends the keys whose group has changed: its assignment, its state or the class of its error. A key that waits
// to be received is there once. The channel is never closed.
func (m *Monitor) Changes() <-chan string { return m.changes.C() }

// clusterKey tells clusters apart, configured ones and those given by their servers.
func (r Ref) clusterKey() string {
	if r.Cluster != "" {
		return "name " + r.Cluster
	}
	return "servers " + r.BootstrapServers
}

// config gives the configuration of a ref's cluster.
func (m *Monitor) config(ref Ref) (ClusterConfig, bool) {
	if ref.Cluster == "" && ref.BootstrapServers != "" {
		return ClusterConfig{Name: ref.BootstrapServers, BootstrapServers: strings.Split(ref.BootstrapServers, ",")}, true
	}
	c, ok := m.clusters[ref.Cluster]
	return c, ok
}

// loopFor gives the loop of a ref's cluster, and starts it where there is none; nil for an unknown cluster.
func (m *Monitor) loopFor(ref Ref) *loop {
	key := ref.clusterKey()
	if l := m.loops[key]; l != nil {
		return l
	}
	config, ok := m.config(ref)
	if !ok {
		return nil
	}
	l := newLoop(config)
	m.loops[key] = l
	if m.started != nil {
		m.run(l)
	}
	return l
}

// forget drops a key, its group if no other key tracks it, and the cluster's loop if no group is left.
func (m *Monitor) forget(key string) {
	ref, ok := m.tracked[key]
	if !ok {
		return
	}
	delete(m.tracked, key)
	l := m.loops[ref.clusterKey()]
	if l == nil || len(m.keysOf(ref)) > 0 {
		return
	}
	delete(l.groups, ref.ApplicationID)
	if len(l.groups) == 0 {
		close(l.stop)
		delete(m.loops, ref.clusterKey())
	}
}

// keysOf gives the keys that track a group, sorted.
func (m *Monitor) keysOf(ref Ref) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(m.tracked)) {
		if t := m.tracked[key]; t.clusterKey() == ref.clusterKey() && t.ApplicationID == ref.ApplicationID {
			keys = append(keys, key)
		}
	}
	return keys
}
