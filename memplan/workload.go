// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Protocol is the group protocol (group.protocol).
type Protocol uint8

// The group protocols. Classic is the default of all versions up to 4.4.
const (
	Classic Protocol = iota
	// Streams is the protocol of KIP-1071.
	Streams
)

// Guarantee is the processing guarantee (processing.guarantee).
type Guarantee uint8

// The guarantees.
const (
	AtLeastOnce Guarantee = iota
	// ExactlyOnceV2 has one producer per stream thread, as at-least-once has.
	ExactlyOnceV2
	// ExactlyOnceV1 has one producer per active task; deprecated in 3.0, removed in 4.0.
	ExactlyOnceV1
)

// Compression is a producer's compression.type.
type Compression string

// The codecs of the Kafka producer. The empty string counts as no compression.
const (
	NoCompression Compression = "none"
	Gzip          Compression = "gzip"
	Snappy        Compression = "snappy"
	LZ4           Compression = "lz4"
	Zstd          Compression = "zstd"
)

// Allocator is the malloc of the process.
type Allocator uint8

// The allocators that matter for RocksDB.
const (
	// Glibc is the default of most images: up to 8 arenas per core unless MALLOC_ARENA_MAX is set.
	Glibc Allocator = iota
	// GlibcArenas is glibc with MALLOC_ARENA_MAX set.
	GlibcArenas
	Jemalloc
	Musl
)

// StoreKind is the kind of a state store. It determines the number of RocksDB instances for one task.
type StoreKind uint8

// The store kinds of Kafka Streams.
const (
	// KeyValue is a plain key-value store. It is the zero value.
	KeyValue StoreKind = iota
	// TimestampedKeyValue is the default of the DSL: two data column families.
	TimestampedKeyValue
	// Window is a window store: one RocksDB instance per live segment.
	Window
	// Session is a session store: segments as a window store.
	Session
	// Versioned is a versioned store (KIP-889): one instance, its segments are logical.
	Versioned
	// JoinWindow is one side of a stream-stream join: segments as a window store, never cached.
	JoinWindow
	// OuterJoinList is the shared list store of the two sides of a left or outer stream-stream join (KAFKA-10847): one instance.
	OuterJoinList
	// ForeignKeySubscription is the subscription store of a foreign-key join: one instance.
	ForeignKeySubscription
	// TimeOrderedBuffer is the buffer of a stream-table join with grace (KIP-923): one instance.
	TimeOrderedBuffer
	// TimeOrderedWindow is the store of an aggregation with emission on window close: base and index share the segments.
	TimeOrderedWindow
	// Suppress is the buffer of suppress(): always on the heap.
	Suppress
)

// Store is a state store of one task, or a global store.
type Store struct {
	Name string
	Kind StoreKind
	// RetentionMs is the retention of a segmented store in milliseconds: window size + grace, or as set with withRetention.
	RetentionMs Fact[int64]
	// SegmentIntervalMs is the segment interval in milliseconds; 0: the default, max(retention/2, 60 s).
	SegmentIntervalMs Fact[int64]
	// InMemory stores live on the heap.
	InMemory bool
	// Caching: the record cache is on for the store, or not known to be off.
	Caching bool
	// Unlogged stores have no changelog, so nothing restores them.
	Unlogged bool
	// Size is the size of the data of one task's store (all partitions for a global store); 0 if it is not known.
	Size Fact[Bytes]
	// Partitions of the source topic of a global store; 0 if it is not known.
	Partitions int
	// MaxSuppress is the maxBytes of a suppress buffer; 0 if it is unbounded or not known.
	MaxSuppress Fact[Bytes]
}

// Subtopology is a part of the topology: a task runs it for one partition.
type Subtopology struct {
	// ID in the group ("0", "1", ...).
	ID string
	// Tasks is the number of tasks: the largest partition count of its source topics.
	Tasks int
	// InputPartitions is the number of partitions that a task reads: one of each source topic.
	InputPartitions int
	// WrittenPartitions is the number of all partitions of its sink and repartition topics: any of its tasks may write to each of them. It
	// excludes changelogs, which are counted from the stores.
	WrittenPartitions int
	// Stores of one task. A store of two processors is one store.
	Stores []Store
}

// Stateful reports whether a task has a state store.
func (s Subtopology) Stateful() bool { return len(s.Stores) > 0 }

// Records are the sizes of the application's records, in uncompressed serialized bytes.
type Records struct {
	// Average is the average size of a record: key, value and headers.
	Average Fact[Bytes]
	// Largest is the size of the largest possible record.
	Largest Fact[Bytes]
	// LargestBatch is the largest batch of a broker (message.max.bytes of the source topics): a fetch returns it even where limits are
	// smaller.
	LargestBatch Fact[Bytes]
}

// Consumer has the configs of one consumer role that affect memory.
type Consumer struct {
	FetchMaxBytes          Fact[Bytes]
	MaxPartitionFetchBytes Fact[Bytes]
	MaxPollRecords         Fact[int]
	SendBuffer             Fact[Bytes]
	ReceiveBuffer          Fact[Bytes]
}

// Producer has the producer configs that affect memory.
type Producer struct {
	BufferMemory     Fact[Bytes]
	BatchSize        Fact[Bytes]
	MaxRequestSize   Fact[Bytes]
	Compression      Fact[Compression]
	CompressionLevel Fact[int]
	SendBuffer       Fact[Bytes]
	ReceiveBuffer    Fact[Bytes]
}

// Clients has the configs of the Kafka clients and of Kafka Streams that affect memory.
type Clients struct {
	Producer Producer
	// Main, Restore and Global are the consumers of Kafka Streams, each with its own effective configs.
	Main, Restore, Global Consumer
	// BufferedRecordsPerPartition pauses an input partition (buffered.records.per.partition).
	BufferedRecordsPerPartition Fact[int]
	// RecordCache is the record cache of the instance (statestore.cache.max.bytes, before 3.4 cache.max.bytes.buffering).
	RecordCache Fact[Bytes]
	// TransactionalStores is enable.transactional.statestores (KIP-892, 4.4).
	TransactionalStores Fact[bool]
	// Uncommitted is statestore.uncommitted.max.bytes of the instance (4.4); -1: unbounded.
	Uncommitted Fact[Bytes]
}

// StateDir is the state directory.
type StateDir struct {
	// InMemory is true for tmpfs and emptyDir with medium Memory: its files count as memory in full.
	InMemory bool
	// Persistent directories outlive the pod, so they may have an old copy of any task.
	Persistent bool
}

// RocksDB has the settings of the stores. Kafka Streams sets the first three per instance, unless a rocksdb.config.setter changes them.
type RocksDB struct {
	BlockCache, WriteBuffer Fact[Bytes]
	MaxWriteBuffers         Fact[int]
	// Setter is the application's own rocksdb.config.setter; empty if it has none.
	Setter Fact[string]
	// FormatUpgrade: stores may have rows of an older format (dsl.store.format=HEADERS on older stores).
	FormatUpgrade Fact[bool]
	// OpenIterators is the largest number of iterators open at once (num-open-iterators); 0: one for each stream thread.
	OpenIterators Fact[int]
	// SharedCache is the capacity of the shared block cache, WriteBufferLimit the part of it for memtables; 0 leaves the choice to the plan.
	SharedCache, WriteBufferLimit Fact[Bytes]
	// OwnCache is the capacity of the block cache of the application's own setter in a bounded process, beside the shared one; 0 if there is
	// none. It is that of one cache for all stores, or with OwnCaches that of the cache of each instance.
	OwnCache Fact[Bytes]
	// OwnCaches: every RocksDB instance has its own cache of the application.
	OwnCaches bool
}

// ApplicationMemory is the memory of the process besides Kafka Streams.
type ApplicationMemory struct {
	// LiveSet is the size of the application's own live objects on the heap.
	LiveSet Fact[Bytes]
	// Native is its own native memory: other agents, JNI libraries, its own direct buffers.
	Native Fact[Bytes]
}

// Workload has the facts of an application that are the same for all its pods.
type Workload struct {
	// Version of kafka-streams.
	Version  Fact[Version]
	Protocol Fact[Protocol]
	// Guarantee is the processing guarantee.
	Guarantee Fact[Guarantee]
	// Threads is num.stream.threads, for pods with an unknown number of threads.
	Threads Fact[int]
	// Standbys is num.standby.replicas, or the group config streams.num.standby.replicas for the streams protocol.
	Standbys Fact[int]
	// WarmUps is max.warmup.replicas, of the whole group. The streams protocol has none.
	WarmUps Fact[int]
	// Brokers is the number of brokers that lead input partitions of the application.
	Brokers       Fact[int]
	TLS           Fact[bool]
	Subtopologies []Subtopology
	GlobalStores  []Store
	Records       Records
	Clients       Clients
	RocksDB       RocksDB
	JVM           JVM
	Allocator     Fact[Allocator]
	StateDir      StateDir
	Application   ApplicationMemory
	// Others are the other KafkaStreams clients of the same JVM: their memory adds up, and so do their stores in a shared cache.
	Others []Client
	// Bounded: the shared block cache and write buffer manager are active in the process.
	Bounded bool
}

// Client is a KafkaStreams client sharing the JVM with the planned one: another application, with its own id, threads, tasks and
// configs. JVM, allocator, state directory and bounds are those of the process; those of its workload do not count.
type Client struct {
	ApplicationID string
	Workload      Workload
	// Load is its load in this process at the same time.
	Load Load
}

// Tasks returns the number of tasks of all subtopologies.
func (w Workload) Tasks() int {
	tasks := 0
	for _, s := range w.Subtopologies {
		tasks += clampCount(s.Tasks)
	}
	return tasks
}
