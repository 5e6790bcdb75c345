// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"streamweir.dev/streamweir/internal/tracker"
)

// Describer describes groups of one Kafka cluster. [Cluster] implements it.
type Describer interface {
	// Describe describes groups in one batch and returns one result for each of them. An error is an [*Error]; one without the name of a
	// group concerns the whole cluster and is the result of all groups.
	Describe(ctx context.Context, groups []string) map[string]Result
	// Close ends all connections.
	Close()
}

// Result is the result of describing one group: a Group or an error.
type Result struct {
	Group Group
	Err   error
}

// Intervals are the polling intervals of a [Monitor].
type Intervals struct {
	// Slow is the time between two polls of a group without events. Each is longer by up to a tenth, at random.
	Slow time.Duration
	// Fast is the time between two polls of a hurried group with up to 50 members. It grows with the members.
	Fast time.Duration
	// HurryFor is the duration of fast polling after an event.
	HurryFor time.Duration
	// Timeout bounds one poll of one cluster.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the pause after polls that failed for the whole cluster. It doubles with each failure.
	BackoffMin, BackoffMax time.Duration
}

// DefaultIntervals poll quickly for a minute after a pod event and slowly otherwise. Kafka moves the tasks of a silent member after
// session.timeout.ms, 45 s by default (KIP-735), so the rebalance after a dead pod falls into the minute.
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

// Observation is the latest knowledge of a group.
type Observation struct {
	// Group is the newest description with an assignment, nil before the first. It is kept while the group rebalances and while polls fail.
	// It is shared and must not be changed.
	Group *Group
	// GroupAt is the time at which Group was read.
	GroupAt time.Time
	// State is the broker's name of the group's state at the last successful poll, empty before the first.
	State string
	// Err is the error of the last poll, nil if it succeeded. [ClassOf] returns its class.
	Err error
	// At is the time of the last poll, zero before the first.
	At time.Time
}

// Monitor polls the tracked groups and reports changes. Each Kafka cluster has a client and a poll of its own, so that a slow cluster does
// not delay the others. All methods are safe for concurrent use.
type Monitor struct {
	connect   func(ClusterConfig) (Describer, error)
	intervals Intervals
	log       logr.Logger
	tracker   *tracker.Tracker

	mu       sync.Mutex
	clusters map[string]ClusterConfig
	tracked  map[string]Ref          // By key.
	polls    map[string]*clusterPoll // By clusterKey.
}

// MonitorOptions configure a [Monitor].
type MonitorOptions struct {
	// Clusters are the configured clusters, of [ParseClusters].
	Clusters []ClusterConfig
	// Connect returns a client of a cluster. Nil means [NewCluster].
	Connect func(ClusterConfig) (Describer, error)
	// Intervals of polling. Zero means [DefaultIntervals].
	Intervals Intervals
	// Log receives failures and recoveries of clusters. The zero value discards them.
	Log logr.Logger
}

// NewMonitor returns a monitor that tracks no groups.
func NewMonitor(o MonitorOptions) *Monitor {
	m := &Monitor{
		clusters:  map[string]ClusterConfig{},
		connect:   o.Connect,
		intervals: cmp.Or(o.Intervals, DefaultIntervals()),
		log:       o.Log,
		tracker:   tracker.New("the monitor of Kafka groups"),
		tracked:   map[string]Ref{},
		polls:     map[string]*clusterPoll{},
	}
	for _, cluster := range o.Clusters {
		m.clusters[cluster.Name] = cluster
	}
	if m.connect == nil {
		m.connect = func(config ClusterConfig) (Describer, error) { return NewCluster(config) }
	}
	return m
}

// Start polls until the context ends, and then closes all connections. It may be called once.
func (m *Monitor) Start(ctx context.Context) error { return m.tracker.Start(ctx) }

// Cluster returns a configured cluster by name, for [ClusterConfig.Permits].
func (m *Monitor) Cluster(name string) (ClusterConfig, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	config, ok := m.clusters[name]
	return config, ok
}

// SetClusters replaces the configured clusters. A changed cluster is connected again, and its groups keep their observations until then.
func (m *Monitor) SetClusters(clusters []ClusterConfig) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.clusters
	m.clusters = map[string]ClusterConfig{}
	for _, cluster := range clusters {
		m.clusters[cluster.Name] = cluster
	}
	observed := map[string]map[string]*groupPoll{}
	for key, poll := range m.polls {
		name, configured := strings.CutPrefix(key, clusterKeyOfName)
		if configured && !reflect.DeepEqual(before[name], m.clusters[name]) {
			poll.stop()
			delete(m.polls, key)
			observed[key] = poll.groups
		}
	}
	for key, ref := range m.tracked {
		poll := m.pollFor(ref)
		if poll == nil || poll.groups[ref.ApplicationID] != nil {
			continue
		}
		group := &groupPoll{}
		if known := observed[ref.clusterKey()][ref.ApplicationID]; known != nil {
			group.Observation = known.Observation
		}
		poll.groups[ref.ApplicationID] = group
		poll.signal()
		m.tracker.Changed(key)
	}
}

// Track replaces the group of a key. [Monitor.Changes] delivers the key when the group changes. Several keys may track the same group.
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
	poll := m.pollFor(ref)
	if poll != nil && poll.groups[ref.ApplicationID] == nil {
		poll.groups[ref.ApplicationID] = &groupPoll{}
		poll.signal()
	}
}

// Forget drops a key. A group without keys is no longer polled, and its observation is dropped.
func (m *Monitor) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(key)
}

// Hurry polls the group of a key at once, and quickly for a while. It is called after an event of a pod.
func (m *Monitor) Hurry(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := m.tracked[key]
	if poll := m.polls[ref.clusterKey()]; poll != nil {
		poll.hurry(ref.ApplicationID, time.Now(), m.intervals)
	}
}

// Latest returns the observation of the group of a key. It is zero for an unknown key and before the first poll.
func (m *Monitor) Latest(key string) Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref, tracked := m.tracked[key]
	if !tracked {
		return Observation{}
	}
	poll := m.polls[ref.clusterKey()]
	if poll == nil {
		return Observation{Err: &Error{Class: ClassUnknownCluster, Group: ref.ApplicationID}}
	}
	return poll.groups[ref.ApplicationID].Observation
}

// Changes returns the channel of the keys whose group has changed: its assignment, its state or the class of its error. A waiting key is
// not queued again. The channel is never closed.
func (m *Monitor) Changes() <-chan string { return m.tracker.Changes() }

// clusterKey distinguishes clusters: configured ones by name, all others by their servers.
func (r Ref) clusterKey() string {
	if r.Cluster != "" {
		return clusterKeyOfName + r.Cluster
	}
	return "servers " + r.BootstrapServers
}

// clusterKeyOfName is the prefix of the keys of configured clusters.
const clusterKeyOfName = "name "

// config returns the configuration of the cluster of a ref.
func (m *Monitor) config(ref Ref) (ClusterConfig, bool) {
	if ref.Cluster == "" && ref.BootstrapServers != "" {
		return ClusterConfig{Name: ref.BootstrapServers, BootstrapServers: strings.Split(ref.BootstrapServers, ",")}, true
	}
	config, ok := m.clusters[ref.Cluster]
	return config, ok
}

// pollFor returns the poll of the cluster of a ref, and begins it if there is none. It is nil for an unknown cluster.
func (m *Monitor) pollFor(ref Ref) *clusterPoll {
	if poll := m.polls[ref.clusterKey()]; poll != nil {
		return poll
	}
	config, ok := m.config(ref)
	if !ok {
		return nil
	}
	poll := newClusterPoll(config)
	poll.stop = m.tracker.Run(func(ctx context.Context) { m.follow(ctx, poll) })
	m.polls[ref.clusterKey()] = poll
	return poll
}

// forget drops a key, its group if no other key tracks it, and the poll of the cluster if no group is left.
func (m *Monitor) forget(key string) {
	ref := m.tracked[key]
	poll := m.polls[ref.clusterKey()] // Nil for an unknown key and for an unknown cluster.
	delete(m.tracked, key)
	if poll == nil || len(m.keysOf(poll, ref.ApplicationID)) > 0 {
		return
	}
	delete(poll.groups, ref.ApplicationID)
	if len(poll.groups) == 0 {
		poll.stop()
		delete(m.polls, ref.clusterKey())
	}
}

// keysOf returns the keys that track a group of a cluster.
func (m *Monitor) keysOf(poll *clusterPoll, applicationID string) []string {
	var keys []string
	for key, ref := range m.tracked {
		if ref.ApplicationID == applicationID && m.polls[ref.clusterKey()] == poll {
			keys = append(keys, key)
		}
	}
	return keys
}
