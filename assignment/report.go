// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

// ReportSchema is the version of the report that this package reads. The agent names it in the path, /v1/report. A field may be added
// within a version; a field never changes its meaning or its unit.
const ReportSchema = 1

// ReportPath is where the agent serves its report.
const ReportPath = "/v1/report"

// Report is what the agent in a pod's JVM says of its process: the one place where the schema is documented. All amounts are bytes, all
// times milliseconds since 1970. An amount that the agent could not read is left out, and is 0 here. It holds no secrets: of the
// application's settings only those of an allow-list are told.
//
// GET /v1/report answers with the present report. GET /v1/report?after=SEQ&wait=25s answers as soon as the report's seq is not SEQ, and
// with 204 and no body after the wait.
type Report struct {
	// Schema is ReportSchema.
	Schema int `json:"schema"`
	// Agent is the agent's version.
	Agent string `json:"agent"`
	// Seq grows with each change that is told: of tasks, stores, clients, the plan, findings. Figures alone do not change it. It begins
	// with the time of the start, so that two processes of a pod never share one.
	Seq int64 `json:"seq"`
	// PodUID is the UID that the pod was given in STREAMWEIR_POD_UID; empty outside of a pod.
	PodUID string `json:"podUID"`
	// Started is when the process started.
	Started int64 `json:"started"`
	// Bounded says whether the shared cache is in force in this process. It is decided once, before the first store opens.
	Bounded Boundedness `json:"bounded"`
	// Plan is what the process has read of the plan.
	Plan ReportedPlan `json:"plan"`
	// RocksDB is what all stores of the process share.
	RocksDB ReportedRocksDB `json:"rocksdb"`
	// Clients are the KafkaStreams objects of the process that are not closed.
	Clients []ReportedClient `json:"clients"`
	// JVM is the process's virtual machine.
	JVM ReportedJVM `json:"jvm"`
	// Cgroup is what the kernel accounts for the container.
	Cgroup ReportedCgroup `json:"cgroup"`
	// Allocator is the C library's allocator, or the one that took its place.
	Allocator ReportedAllocator `json:"allocator"`
	// Findings are what a person should know, at most 50, each once.
	Findings []ReportedFinding `json:"findings"`
}

// Boundedness says whether RocksDB is bounded in a process.
type Boundedness string

const (
	// BoundedPending: no store has been opened yet.
	BoundedPending Boundedness = "Pending"
	// BoundedInForce: every store that was opened shares the one cache, or has one of the application's own that is listed.
	BoundedInForce Boundedness = "Active"
	// BoundedOff: the bounds could not be set, and stores are as Kafka Streams ships them. A finding says why.
	BoundedOff Boundedness = "Off"
)

// ReportedPlan is the state of the plan in a process.
type ReportedPlan struct {
	// OnDisk is the generation of the mounted plan as it is now; InForce is the one that the process read last. Both are empty where
	// there is no plan.
	OnDisk  string `json:"onDisk"`
	InForce string `json:"active"`
	// Source is where the bounds came from: the plan, the plan clamped to the cgroup's limit, or the agent's own bootstrap bounds.
	Source PlanSource `json:"source"`
}

// PlanSource is where a process took its bounds from.
type PlanSource string

const (
	// PlanMounted: from the mounted plan.
	PlanMounted PlanSource = "Plan"
	// PlanClamped: from the mounted plan, made smaller, since the process has less memory than it was made for.
	PlanClamped PlanSource = "Clamped"
	// PlanBootstrap: from the cgroup's limit and the heap, since there was no readable plan.
	PlanBootstrap PlanSource = "Bootstrap"
)

// ReportedRocksDB is what the RocksDB instances of a process share.
type ReportedRocksDB struct {
	// CacheCapacity is the capacity of the shared block cache; CacheUsage and CachePinned are its present use. Usage is not known before
	// Kafka Streams 3.0 (RocksJava 5.18).
	CacheCapacity int64 `json:"cacheCapacity"`
	CacheUsage    int64 `json:"cacheUsage,omitempty"`
	CachePinned   int64 `json:"cachePinned,omitempty"`
	// WriteBufferManager is the limit of all memtables, charged to the cache.
	WriteBufferManager int64 `json:"writeBufferManager"`
	// ArenaBlock and WriteBuffer are what the next store will be opened with.
	ArenaBlock  int64 `json:"arenaBlock"`
	WriteBuffer int64 `json:"writeBuffer"`
	// Opened and Closed count the RocksDB instances (segments included) since the start of the process.
	Opened int64 `json:"opened"`
	Closed int64 `json:"closed"`
	// OwnCaches are the caches that the application's own RocksDBConfigSetter has put in place of the shared one.
	OwnCaches []ReportedCache `json:"ownCaches"`
}

// ReportedCache is a block cache of the application.
type ReportedCache struct {
	// Capacity is the capacity that it was made with; 0: not known.
	Capacity int64 `json:"capacity"`
	// Stores is the number of RocksDB instances that use it now.
	Stores int `json:"stores"`
}

// ReportedClient is one KafkaStreams object.
type ReportedClient struct {
	// ApplicationID is application.id; ClientID the client.id that its threads' names begin with.
	ApplicationID string `json:"applicationID"`
	ClientID      string `json:"clientID"`
	// Version is that of Kafka Streams.
	Version string `json:"version"`
	// State is that of KafkaStreams.State, for instance RUNNING.
	State string `json:"state"`
	// Topology is the text of Topology#describe().
	Topology string `json:"topology"`
	// Settings are the application's settings that cost memory or say how it rebalances, as they are in force, prefixes included. What is
	// not there is at its default.
	Settings []ReportedSetting `json:"settings"`
	// Threads are its stream threads.
	Threads []ReportedThread `json:"threads"`
	// GlobalStores are the stores of its global thread.
	GlobalStores []ReportedStore `json:"globalStores"`
	// Brokers is the number of brokers that it has connections to, 0 where not known.
	Brokers int `json:"brokers"`
	// Records is what was measured of the records; 0 where nothing was.
	Records ReportedRecords `json:"records"`
	// StateDir is its state directory.
	StateDir ReportedStateDir `json:"stateDir"`
}

// ReportedSetting is one setting of an application.
type ReportedSetting struct {
	Name  string    `json:"name"`
	Value string    `json:"value"`
	By    SettingBy `json:"by"`
}

// SettingBy says who set a setting.
type SettingBy string

const (
	// SetByApp: the application.
	SetByApp SettingBy = "App"
	// SetByPlan: the agent, from the plan.
	SetByPlan SettingBy = "Plan"
)

// ReportedThread is a stream thread with what it was assigned.
type ReportedThread struct {
	// Name is the thread's, <client.id>-StreamThread-<n>.
	Name  string         `json:"name"`
	Tasks []ReportedTask `json:"tasks"`
}

// ReportedTask is a task of a thread.
type ReportedTask struct {
	// ID is the task's, <subtopology>_<partition>, or <topology>__<subtopology>_<partition> with named topologies.
	ID string `json:"id"`
	// Role is Active or Standby; warm-ups count as standbys.
	Role TaskRole `json:"role"`
	// Stores are those that are open. A task that was just assigned shows them as they open.
	Stores []ReportedStore `json:"stores"`
}

// TaskRole is the role of a task in a process.
type TaskRole string

// The roles.
const (
	RoleActive  TaskRole = "Active"
	RoleStandby TaskRole = "Standby"
)

// ReportedStore is a state store.
type ReportedStore struct {
	Name string `json:"name"`
	// Scope is the scope of its metrics in Kafka Streams, for instance rocksdb-state, rocksdb-window-state, rocksdb-session-state,
	// in-memory-state.
	Scope string `json:"scope"`
}

// ReportedRecords is what the producers and consumers of a client have measured.
type ReportedRecords struct {
	// AverageSize and LargestSize are of the records that it has written (record-size-avg, record-size-max of the producers).
	AverageSize int64 `json:"averageSize,omitempty"`
	LargestSize int64 `json:"largestSize,omitempty"`
}

// ReportedStateDir is a state directory.
type ReportedStateDir struct {
	// Type is the type of its file system, for instance ext4, overlay, tmpfs.
	Type string `json:"type"`
	// Bytes is what its file system holds, told for one in memory only, and once where several directories are on it.
	Bytes int64 `json:"bytes,omitempty"`
}

// ReportedJVM is a virtual machine.
type ReportedJVM struct {
	// Version is the feature release, such as 17.
	Version int `json:"version"`
	// Vendor is java.vm.vendor, Name java.vm.name.
	Vendor string `json:"vendor"`
	Name   string `json:"name"`
	// Collectors are the names of the garbage collectors, for instance "G1 Young Generation".
	Collectors []string `json:"collectors"`
	// HeapMax is the heap in force, HeapUsed what it holds, HeapLive what it held after the last collection that looked at all of it; with
	// G1, whose single figures hold much that is dead, the least after its last ten. 0 before the first: G1 may run for hours without.
	HeapMax  int64 `json:"heapMax"`
	HeapUsed int64 `json:"heapUsed"`
	HeapLive int64 `json:"heapLive,omitempty"`
	// Metaspace (class space included), CodeCache: committed.
	Metaspace int64 `json:"metaspace"`
	CodeCache int64 `json:"codeCache"`
	// Direct is what direct buffers hold.
	Direct int64 `json:"direct"`
	// Threads is the number of live Java threads, ThreadsPeak the most there were.
	Threads     int `json:"threads"`
	ThreadsPeak int `json:"threadsPeak"`
	// Flags are the memory flags of the command line and the environment, of an allow-list.
	Flags []string `json:"flags"`
}

// ReportedCgroup is the accounting of a memory cgroup.
type ReportedCgroup struct {
	// Version is 1 or 2; 0: none was found.
	Version int `json:"version"`
	// Limit in force; 0: none.
	Limit int64 `json:"limit"`
	// Usage is all that counts against the limit; Anon and File are its parts without and with a file behind them, Kernel the kernel's.
	Usage  int64 `json:"usage"`
	Anon   int64 `json:"anon"`
	File   int64 `json:"file"`
	Kernel int64 `json:"kernel,omitempty"`
	// Peak is the largest Usage that the kernel has seen.
	Peak int64 `json:"peak,omitempty"`
	// OOMKills is the number of processes of the cgroup that the kernel has killed.
	OOMKills int64 `json:"oomKills"`
}

// ReportedAllocator is an allocator of native memory.
type ReportedAllocator struct {
	// Name is glibc, musl, jemalloc, tcmalloc or mimalloc; empty: not known.
	Name string `json:"name"`
	// Arenas is MALLOC_ARENA_MAX, 0 where it is not set.
	Arenas int `json:"arenas,omitempty"`
}

// ReportedFinding is something that a person should know.
type ReportedFinding struct {
	// Reason is one word, for instance PortTaken.
	Reason string `json:"reason"`
	// Message is a sentence that says what is wrong and what to do.
	Message string `json:"message"`
}
