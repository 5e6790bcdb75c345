// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Protocol is the rebalance protocol of a group.
type Protocol string

const (
	// Classic is the protocol of all versions (group.protocol=classic): the leader of the group assigns the tasks.
	Classic Protocol = "Classic"
	// Streams is the protocol of KIP-1071 (group.protocol=streams, from 4.1): the broker assigns the tasks.
	Streams Protocol = "Streams"
)

// Task is one task: a subtopology and a partition.
type Task struct {
	// Subtopology is the ID of the subtopology: a number in the classic protocol, a string of the client in the streams protocol (so far a
	// number there too).
	Subtopology string
	// Partition is the partition of the task, from 0.
	Partition int32
}

// String returns the form of Kafka Streams for a task ID, such as "0_3".
func (t Task) String() string {
	return t.Subtopology + "_" + strconv.Itoa(int(t.Partition))
}

// CompareTasks orders tasks by subtopology (numbers by value, before names), then by partition.
func CompareTasks(a, b Task) int {
	return cmp.Or(compareSubtopologies(a.Subtopology, b.Subtopology), cmp.Compare(a.Partition, b.Partition))
}

// compareSubtopologies orders IDs: numbers by value, before names in the order of their bytes.
func compareSubtopologies(a, b string) int {
	numberA, errA := strconv.ParseInt(a, 10, 64)
	numberB, errB := strconv.ParseInt(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(numberA, numberB), cmp.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// Tasks are the tasks of one process or pod. Each list is sorted and without duplicates.
type Tasks struct {
	// Active tasks process records.
	Active []Task
	// Standby tasks keep a copy of the state: num.standby.replicas for each stateful task.
	Standby []Task
	// WarmUp tasks are copies in addition to the standbys: tasks in preparation for a move (KIP-441), or one side of a hand-over. They take as
	// much memory as standbys and end with the next rebalance.
	WarmUp []Task
}

// Len returns the number of tasks of all three roles.
func (t Tasks) Len() int {
	return len(t.Active) + len(t.Standby) + len(t.WarmUp)
}

// Process is one KafkaStreams client. Its stream threads share a process ID.
type Process struct {
	// ID is the process ID, a UUID in text form. It changes with every start, unless the state directory preserves it.
	ID string
	// Host is the address of the process from the view of the broker, without slash, zone or port.
	Host string
	// ClientID is the application's client.id: that of the members without "-StreamThread-N-consumer".
	ClientID string
	// Threads is the number of stream threads: the group's members with this process ID.
	Threads int
	// Static is true if the members have a group.instance.id (static membership, KIP-345).
	Static bool
	// Tasks are the current tasks.
	Tasks Tasks
	// Target are the future tasks, nil if unknown or equal to Tasks. Only the streams protocol shows them.
	Target *Tasks
}

// Topic is a topic with its number of partitions, 0 if unknown.
type Topic struct {
	// Name is the name of the topic.
	Name string
	// Partitions is its number of partitions.
	Partitions int32
}

// StoreKind is the kind of a state store.
type StoreKind string

const (
	// KeyValue is a plain or timestamped key-value store: one RocksDB instance or one in-memory map.
	KeyValue StoreKind = "KeyValue"
	// Window is a window store with segments, or a session store from a source without the distinction.
	Window StoreKind = "Window"
	// Session is a session store with segments.
	Session StoreKind = "Session"
	// JoinWindow is one side of a stream-stream join, with segments and never cached.
	JoinWindow StoreKind = "JoinWindow"
	// OuterJoinList is the store for records without a partner in a left or outer stream-stream join (from 3.1).
	OuterJoinList StoreKind = "OuterJoinList"
	// ForeignKeySubscription is the subscription store of a foreign-key join.
	ForeignKeySubscription StoreKind = "ForeignKeySubscription"
	// Suppress is a suppress buffer, on the heap.
	Suppress StoreKind = "Suppress"
	// Versioned is a versioned key-value store (KIP-889, from 3.5).
	Versioned StoreKind = "Versioned"
)

// Changelog is the changelog topic of a store, with the properties of the store.
type Changelog struct {
	// Topic is the name of the topic, <application.id>-<store>-changelog.
	Topic string
	// Store is the name of the store.
	Store string
	// Partitions is the number of partitions of the topic, equal to the number of tasks with the store; 0 if unknown.
	Partitions int32
	// Kind is derived from the configs of the topic and the name of the store.
	Kind StoreKind
	// Retention is the retention of a window or versioned store, 0 if unknown or not applicable.
	Retention time.Duration
	// Assumed is true if several subtopologies may own the store. It then counts for the one with the most stores.
	Assumed bool
}

// OpenStore is an open state store of a process.
type OpenStore struct {
	// Name is the name of the store.
	Name string
	// Kind is derived from the scope of its metrics and from its name.
	Kind StoreKind
	// InMemory is true for a store on the heap, and false for RocksDB.
	InMemory bool
}

// Subtopology is one subtopology of the application.
type Subtopology struct {
	// ID is the ID in [Task].
	ID string
	// Tasks is the number of its tasks: the largest number of partitions of its source topics.
	Tasks int32
	// Stateful is true if a store with a changelog is known. Otherwise there is none, or none is known.
	Stateful bool
	// SourceTopics are its input topics, repartition topics included, sorted by name.
	SourceTopics []Topic
	// SinkTopics are its repartition topics for output, sorted by name. Only the streams protocol shows them.
	SinkTopics []Topic
	// Changelogs are the changelogs of its stores, sorted by store.
	Changelogs []Changelog
	// Stores are the open stores of its tasks, sorted by name. They come from reports, which do not show changelogs.
	Stores []OpenStore
	// UnloggedStores are the stores without a changelog, sorted. They are known only if the broker stores the description of the topology
	// (KIP-1331, 4.4, with a plugin).
	UnloggedStores []string
}

// Group is the view of one source on an application.
type Group struct {
	// ApplicationID is the name of the group.
	ApplicationID string
	// Protocol is the rebalance protocol of the group.
	Protocol Protocol
	// State is the broker's name of the state: Stable, PreparingRebalance, Reconciling, Empty and others.
	State string
	// Stable is true if State is Stable.
	Stable bool
	// Assigned is true if Processes and Subtopologies are known. It is false for a classic group outside of the state Stable, without member
	// metadata from the broker, and for a group without members.
	Assigned bool
	// Processes are sorted by host, then by ID.
	Processes []Process
	// Subtopologies are sorted by ID.
	Subtopologies []Subtopology
	// GlobalStores are the names of the global stores, sorted. They are known under the same conditions as UnloggedStores.
	GlobalStores []string
	// Standbys is the number of standbys of each stateful task, nil if unknown. It is the group's config on the broker in the streams
	// protocol. In the classic protocol it is derived from the assignment and limited by the number of processes.
	Standbys *int32
	// SessionTimeout is the time after which the broker removes a silent member, 0 if unknown (classic).
	SessionTimeout time.Duration
	// NextRebalance is the time of the first scheduled follow-up rebalance (KIP-441), zero for none. Before it there may be warm-ups.
	NextRebalance time.Time
	// VersionHint is the oldest possible Kafka Streams release of all members, derived from their metadata, such as "3.2"; empty if unknown.
	VersionHint string
	// Brokers is the number of brokers of the cluster.
	Brokers int
	// TLS is true if the operator uses TLS for the cluster. The application usually does the same.
	TLS bool
	// Warnings are sentences on doubtful results, sorted. They are the same in each pass.
	Warnings []string
}

// Ref identifies a group of a Kafka cluster.
type Ref struct {
	// Cluster is the name of a configured cluster; see [ClusterConfig].
	Cluster string
	// BootstrapServers identify the cluster if Cluster is empty: host:port, separated by commas. The connection is in plain text and without
	// credentials.
	BootstrapServers string
	// ApplicationID is the name of the group.
	ApplicationID string
}

// String returns cluster/application for logs and messages.
func (r Ref) String() string {
	return cmp.Or(r.Cluster, r.BootstrapServers) + "/" + r.ApplicationID
}

// sortTasks sorts tasks and removes duplicates, in place.
func sortTasks(tasks []Task) []Task {
	slices.SortFunc(tasks, CompareTasks)
	return slices.Compact(tasks)
}
