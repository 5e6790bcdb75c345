// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report defines the report that the agent in a pod's JVM serves, and decodes it.
package report

// Schema is the version of the report. The path of the report, /v1/report, contains it. A version may gain fields; the meaning and the unit
// of a field never change.
const Schema = 1

// Path is the path of the report.
const Path = "/v1/report"

// Authorization returns the value of the header Authorization for the token of a plan (see planfile.TokenKey).
func Authorization(token string) string { return "Bearer " + token }

// Port is the default port of the agent. Services in pods rarely listen on it.
const Port = 7907

// Report describes the process of an agent. This type is the only documentation of the schema. All amounts are bytes and all times are
// milliseconds since 1970. An amount is 0 if the agent could not read it. A report contains no secrets: application settings pass an
// allow-list.
//
// GET /v1/report returns the report at once. GET /v1/report?after=SEQ&wait=25s returns it as soon as its seq differs from SEQ; after the
// wait the response is 204 without a body. Both require the token of the mounted plan in the header Authorization: see [Authorization].
// Without it the response is 401 with {"schema":1}, which only shows that the agent runs.
type Report struct {
	// Schema is the constant of the same name.
	Schema int `json:"schema"`
	// Agent is the agent's version.
	Agent string `json:"agent"`
	// Seq grows with each change of tasks, stores, clients, plan or findings, but not with figures alone. It starts at the time of the process
	// start, so that two processes of a pod never have the same value.
	Seq int64 `json:"seq"`
	// PodUID is the value of STREAMWEIR_POD_UID, empty outside of a pod.
	PodUID string `json:"podUID"`
	// Started is the start time of the process.
	Started int64 `json:"started"`
	// Bounded is the state of RocksDB's bounds in this process. Off is final.
	Bounded Boundedness `json:"bounded"`
	// Truncated: tasks, stores or clients of the process are omitted, so the report does not show the assignment.
	Truncated bool `json:"truncated"`
	// Plan is the state of the mounted plan in this process.
	Plan Plan `json:"plan"`
	// RocksDB is the state of the resources that all stores of the process share.
	RocksDB RocksDB `json:"rocksdb"`
	// Clients are the open KafkaStreams objects of the process.
	Clients []Client `json:"clients"`
	// JVM is the state of the virtual machine.
	JVM JVM `json:"jvm"`
	// Cgroup is the memory accounting of the container.
	Cgroup Cgroup `json:"cgroup"`
	// Allocator is the native memory allocator.
	Allocator Allocator `json:"allocator"`
	// Findings are problems for a person to look at: at most 50, without duplicates.
	Findings []Finding `json:"findings"`
}

// Boundedness is the state of RocksDB's bounds in a process.
type Boundedness string

const (
	// BoundedPending: no store is open yet.
	BoundedPending Boundedness = "Pending"
	// BoundedActive: all stores that were opened share one cache, except those with a listed cache of the application. The capacity of the
	// cache was read from each open store.
	BoundedActive Boundedness = "Active"
	// BoundedOff: at least one store has neither. A finding gives the reason.
	BoundedOff Boundedness = "Off"
)

// Plan is the state of the mounted plan in a process. Without a plan both revisions are empty.
type Plan struct {
	// OnDisk is the revision of the mounted plan.
	OnDisk string `json:"onDisk"`
	// Active is the revision of the plan that was loaded last.
	Active string `json:"active"`
	// Source is the origin of the bounds.
	Source PlanSource `json:"source"`
}

// PlanSource is the origin of the bounds of a process.
type PlanSource string

const (
	// PlanMounted: the mounted plan.
	PlanMounted PlanSource = "Plan"
	// PlanClamped: the mounted plan, reduced because the process has less memory than the plan was made for.
	PlanClamped PlanSource = "Clamped"
	// PlanBootstrap: the cgroup's limit and the heap, in the absence of a readable plan.
	PlanBootstrap PlanSource = "Bootstrap"
)

// RocksDB is the state of the resources that all RocksDB instances of a process share.
type RocksDB struct {
	// CacheCapacity is the capacity of the shared block cache.
	CacheCapacity int64 `json:"cacheCapacity"`
	// CacheUsage and CachePinned are its present use. They are unknown before Kafka Streams 3.0 (RocksJava 5.18).
	CacheUsage  int64 `json:"cacheUsage,omitempty"`
	CachePinned int64 `json:"cachePinned,omitempty"`
	// WriteBufferManager is the limit of all memtables, which are charged to the cache.
	WriteBufferManager int64 `json:"writeBufferManager"`
	// ArenaBlock and WriteBuffer are the sizes for the next store to open.
	ArenaBlock  int64 `json:"arenaBlock"`
	WriteBuffer int64 `json:"writeBuffer"`
	// Opened and Closed count RocksDB instances, segments included, since the start of the process. A failed open does not count.
	Opened int64 `json:"opened"`
	Closed int64 `json:"closed"`
	// OwnCaches are the block caches of the application's own RocksDBConfigSetter.
	OwnCaches []Cache `json:"ownCaches"`
}

// Cache is a block cache of the application.
type Cache struct {
	// Capacity is the capacity at the first use, 0 if unknown.
	Capacity int64 `json:"capacity"`
	// Stores is the number of RocksDB instances that use the cache.
	Stores int `json:"stores"`
}

// Client is one KafkaStreams object.
type Client struct {
	// ApplicationID is application.id.
	ApplicationID string `json:"applicationID"`
	// ClientID is client.id, the prefix of the names of its threads.
	ClientID string `json:"clientID"`
	// Version is the version of Kafka Streams.
	Version string `json:"version"`
	// State is a value of KafkaStreams.State, such as RUNNING.
	State string `json:"state"`
	// Topology is the text of Topology#describe().
	Topology string `json:"topology"`
	// Settings are the effective settings that affect memory or rebalancing, prefixes included. All others have their defaults.
	Settings []Setting `json:"settings"`
	// Threads are its stream threads.
	Threads []Thread `json:"threads"`
	// GlobalStores are the stores of its global thread.
	GlobalStores []Store `json:"globalStores"`
	// Brokers is the number of brokers with an open connection, 0 if unknown.
	Brokers int `json:"brokers"`
	// Records are the measured sizes of records.
	Records Records `json:"records"`
	// StateDir is its state directory.
	StateDir StateDir `json:"stateDir"`
}

// Setting is one setting of an application.
type Setting struct {
	// Name includes the prefix of the client, if it has one.
	Name  string `json:"name"`
	Value string `json:"value"`
	// By is the origin of the value.
	By SettingBy `json:"by"`
}

// SettingBy is the origin of a setting.
type SettingBy string

const (
	// SetByApp: the application.
	SetByApp SettingBy = "App"
	// SetByPlan: the agent, from the plan.
	SetByPlan SettingBy = "Plan"
)

// Thread is a stream thread with its assigned tasks.
type Thread struct {
	// Name is <client.id>-StreamThread-<n>.
	Name string `json:"name"`
	// Tasks are its assigned tasks.
	Tasks []Task `json:"tasks"`
}

// Task is a task of a thread.
type Task struct {
	// ID is <subtopology>_<partition>, or <topology>__<subtopology>_<partition> with named topologies.
	ID string `json:"id"`
	// Role is Active or Standby. Warm-ups count as standbys.
	Role TaskRole `json:"role"`
	// Stores are the open stores. They appear one by one after an assignment.
	Stores []Store `json:"stores"`
}

// TaskRole is the role of a task in a process.
type TaskRole string

// The roles.
const (
	RoleActive  TaskRole = "Active"
	RoleStandby TaskRole = "Standby"
)

// Store is a state store.
type Store struct {
	// Name is the name of the store in the topology.
	Name string `json:"name"`
	// Scope is the scope of the store's metrics in Kafka Streams, such as rocksdb-state, rocksdb-window-state, rocksdb-session-state or
	// in-memory-state.
	Scope string `json:"scope"`
}

// Records are measurements of the producers and consumers of a client.
type Records struct {
	// AverageSize and LargestSize are the sizes of written records (record-size-avg and record-size-max of the producers).
	AverageSize int64 `json:"averageSize,omitempty"`
	LargestSize int64 `json:"largestSize,omitempty"`
}

// StateDir is a state directory.
type StateDir struct {
	// Type is the type of its file system, such as ext4, overlay or tmpfs.
	Type string `json:"type"`
	// Bytes is the usage of its file system. It is set for a file system in memory only, and for one of several directories on the same file
	// system.
	Bytes int64 `json:"bytes,omitempty"`
}

// JVM is a virtual machine.
type JVM struct {
	// Version is the feature release, such as 17.
	Version int `json:"version"`
	// Vendor and Name are java.vm.vendor and java.vm.name.
	Vendor string `json:"vendor"`
	Name   string `json:"name"`
	// Collectors are the names of the garbage collectors, such as "G1 Young Generation".
	Collectors []string `json:"collectors"`
	// HeapMax is the maximum heap and HeapUsed its present usage.
	HeapMax  int64 `json:"heapMax"`
	HeapUsed int64 `json:"heapUsed"`
	// HeapLive is the usage after the last collection of the whole heap. Single figures of G1 include much garbage, so it is the smallest of
	// the last ten there. It is 0 before the first such collection; G1 may run for hours without one.
	HeapLive int64 `json:"heapLive,omitempty"`
	// Metaspace, class space included, and CodeCache are committed sizes.
	Metaspace int64 `json:"metaspace"`
	CodeCache int64 `json:"codeCache"`
	// Direct is the size of all direct buffers.
	Direct int64 `json:"direct"`
	// Threads is the number of live Java threads and ThreadsPeak its maximum.
	Threads     int `json:"threads"`
	ThreadsPeak int `json:"threadsPeak"`
	// Flags are the memory flags of the command line and the environment, from an allow-list.
	Flags []string `json:"flags"`
}

// Cgroup is the accounting of a memory cgroup.
type Cgroup struct {
	// Version is 1 or 2, or 0 without a cgroup.
	Version int `json:"version"`
	// Limit is the memory limit, 0 for none.
	Limit int64 `json:"limit"`
	// High is the amount above which the kernel throttles the container (memory.high of version 2), 0 for none.
	High int64 `json:"high,omitempty"`
	// Usage counts against the limit. Anon, File and Kernel are its parts: anonymous memory, files, and memory of the kernel.
	Usage  int64 `json:"usage"`
	Anon   int64 `json:"anon"`
	File   int64 `json:"file"`
	Kernel int64 `json:"kernel,omitempty"`
	// Peak is the largest Usage so far, as recorded by the kernel.
	Peak int64 `json:"peak,omitempty"`
	// OOMKills is the number of processes of the cgroup killed by the kernel.
	OOMKills int64 `json:"oomKills"`
}

// Allocator is an allocator of native memory.
type Allocator struct {
	// Name is glibc, musl, jemalloc, tcmalloc or mimalloc, empty if unknown.
	Name string `json:"name"`
	// Arenas is MALLOC_ARENA_MAX, 0 if it is not set.
	Arenas int `json:"arenas,omitempty"`
}

// Finding is a problem for a person to look at.
type Finding struct {
	// Reason is one word, such as PortTaken.
	Reason string `json:"reason"`
	// Message is a sentence with the problem and its remedy.
	Message string `json:"message"`
}
