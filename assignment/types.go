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
	// Classic is the protocol of all versions: the group's leader assigns the tasks (group.protocol=classic).
	Classic Protocol = "Classic"
	// Streams is the protocol of KIP-1071: the broker assigns the tasks (group.protocol=streams, from 4.1).
	Streams Protocol = "Streams"
)

// Task is one task: a subtopology and a partition.
type Task struct {
	// Subtopology is the subtopology's ID: a number in the classic protocol, a string chosen by the client in the
	// streams protocol (numbers there too, so far).
	Subtopology string
	// Partition is the task's partition, from 0.
	Partition int32
}

// String gives Kafka Streams' own form of a task ID, for instance "0_3".
func (t Task) String() string {
	return t.Subtopology + "_" + strconv.Itoa(int(t.Partition))
}

// CompareTasks orders tasks by subtopology (numbers by value, before names), then by partition.
func CompareTasks(a, b Task) int {
	return cmp.Or(compareSubtopologies(a.Subtopology, b.Subtopology), cmp.Compare(a.Partition, b.Partition))
}

// compareSubtopologies orders IDs: numbers by value, before names in the order of their bytes.
func compareSubtopologies(a, b string) int {
	na, errA := strconv.ParseInt(a, 10, 64)
	nb, errB := strconv.ParseInt(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(na, nb), cmp.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// Tasks is what one process or pod runs. Each list is sorted and names a task once.
type Tasks struct {
	// Active tasks process records.
	Active []Task
	// Standby tasks keep a copy of the state: num.standby.replicas of each stateful task.
	Standby []Task
	// WarmUp tasks are copies beyond the standbys: a task that is being prepared to move here (KIP-441), or one side
	// of a hand-over. They cost the same memory as standbys, and go away with the next rebalance.
	WarmUp []Task
}

// Len is the number of tasks of all three roles.
func (t Tasks) Len() int {
	return len(t.Active) + len(t.Standby) + len(t.WarmUp)
}

// Process is one KafkaStreams client: its stream threads share a process ID.
type Process struct {
	// ID is the process ID, a UUID in text form. It changes with every start, unless the state directory keeps it.
	ID string
	// Host is the address that the broker sees the process at, without slash, zone or port.
	Host string
	// ClientID is the application's client.id, that is the members' without "-StreamThread-N-consumer".
	ClientID string
	// Threads is the number of stream threads: the group's members with this process ID.
	Threads int
	// Static says that the members have a group.instance.id (static membership, KIP-345).
	Static bool
	// Tasks is what the process runs now.
	Tasks Tasks
	// Target is what the process is going to run. Only the streams protocol shows it; nil where it is not known or no
	// different from Tasks.
	Target *Tasks
}

// Topic is a topic with its number of partitions, 0 where that is not known.
type Topic struct {
	Name       string
	Partitions int32
}

// StoreKind is the kind of a state store, as far as its changelog topic shows it.
type StoreKind string

const (
	// KeyValue is a plain or timestamped key-value store: one RocksDB instance, or one in-memory map.
	KeyValue StoreKind = "KeyValue"
	// Window is a window store, or a session store where the source cannot tell: segments.
	Window StoreKind = "Window"
	// Session is a session store: segments.
	Session StoreKind = "Session"
	// JoinWindow is one side of a stream-stream join: segments, never cached.
	JoinWindow StoreKind = "JoinWindow"
	// OuterJoinList is the list of a left or outer stream-stream join's records that have no partner yet (from 3.1).
	OuterJoinList StoreKind = "OuterJoinList"
	// ForeignKeySubscription is the subscription store of a foreign-key join.
	ForeignKeySubscription StoreKind = "ForeignKeySubscription"
	// Suppress is a suppress buffer: on the heap, not RocksDB.
	Suppress StoreKind = "Suppress"
	// Versioned is a versioned key-value store (KIP-889, from 3.5).
	Versioned StoreKind = "Versioned"
)

// Changelog is a store's changelog topic, and what it shows of the store.
type Changelog struct {
	// Topic is the topic's name, <application.id>-<store>-changelog.
	Topic string
	// Store is the store's name.
	Store string
	// Partitions is the topic's number of partitions: the number of tasks that have the store. 0: not known.
	Partitions int32
	// Kind is read from the topic's configs and the store's name.
	Kind StoreKind
	// Retention is how long a window or versioned store keeps its data; 0: not known, or it has none.
	Retention time.Duration
	// Assumed says that several subtopologies may own the store, and that it was counted for the one that has most
	// stores.
	Assumed bool
}

// OpenStore is a state store that is open in a process.
type OpenStore struct {
	// Name is the store's name.
	Name string
	// Kind is read from the scope of its metrics and from its name.
	Kind StoreKind
	// InMemory says that it is on the heap, and not in RocksDB.
	InMemory bool
}

// Subtopology is one subtopology of the application.
type Subtopology struct {
	// ID as in [Task].
	ID string
	// Tasks is the number of its tasks: the largest number of partitions of its source topics.
	Tasks int32
	// Stateful says that it is known to have a store with a changelog; false: it has none, or it is not known.
	Stateful bool
	// SourceTopics are the topics it reads, repartition topics included, sorted by name.
	SourceTopics []Topic
	// SinkTopics are the repartition topics it writes, sorted by name. Only the streams protocol shows them.
	SinkTopics []Topic
	// Changelogs of its stores, sorted by store.
	Changelogs []Changelog
	// Stores are all that its tasks have open, sorted by name. Only the pods' reports show them; they do not show changelogs.
	Stores []OpenStore
	// UnloggedStores are stores without a changelog, sorted. Known only where the broker keeps the topology's
	// description (KIP-1331, 4.4, with a plugin).
	UnloggedStores []string
}

// Group is what a source says of one application.
type Group struct {
	// ApplicationID is the group's name.
	ApplicationID string
	// Protocol is the group's rebalance protocol.
	Protocol Protocol
	// State is the group's state in the broker's words: Stable, PreparingRebalance, Reconciling, Empty and so on.
	State string
	// Stable says that State is Stable.
	Stable bool
	// Assigned says that Processes and Subtopologies are known. It is false for a classic group that is not Stable,
	// whose members' bytes the broker keeps back, and for a group without members: then the last known ones count.
	Assigned bool
	// Processes sorted by host, then by ID.
	Processes []Process
	// Subtopologies sorted by ID.
	Subtopologies []Subtopology
	// GlobalStores are the global stores' names, sorted; see UnloggedStores for when they are known.
	GlobalStores []string
	// Standbys is the number of standbys of each stateful task, nil where not known. Streams protocol: the group's
	// config on the broker. Classic: what the assignment shows, so never more than the processes allow.
	Standbys *int32
	// SessionTimeout is how long the broker waits for a silent member; 0: not known (classic).
	SessionTimeout time.Duration
	// NextRebalance is the soonest follow-up rebalance that a member has scheduled (KIP-441): as long as it is set,
	// warm-ups may be on their way. Zero: none.
	NextRebalance time.Time
	// VersionHint is the oldest Kafka Streams release that all members can be, by what they say they support, for
	// instance "3.2"; empty: not known.
	VersionHint string
	// Brokers is the number of brokers of the cluster.
	Brokers int
	// TLS says that the operator itself speaks TLS to the cluster; the application most often does the same.
	TLS bool
	// Warnings are sentences on what is doubtful here, sorted, the same from pass to pass.
	Warnings []string
}

// Ref names a group of a Kafka cluster.
type Ref struct {
	// Cluster is the name of a configured cluster; see [ClusterConfig].
	Cluster string
	// BootstrapServers is used where Cluster is empty: host:port, several with commas between them. Such a cluster
	// is spoken to in plain text, without credentials.
	BootstrapServers string
	// ApplicationID is the group's name.
	ApplicationID string
}

// String gives cluster/application for logs and messages.
func (r Ref) String() string {
	return cmp.Or(r.Cluster, r.BootstrapServers) + "/" + r.ApplicationID
}

// sortTasks sorts and removes duplicates, in place.
func sortTasks(tasks []Task) []Task {
	slices.SortFunc(tasks, CompareTasks)
	return slices.Compact(tasks)
}
