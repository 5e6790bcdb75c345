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

// The codecs of the Kafka producer. The empty string counts as none.
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

// StoreKind is the kind of a state store: it decides how many RocksDB instances a task opens for it.
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
	// OuterJoinList is the list store that the two sides of a left or outer stream-stream join share (KAFKA-10847): one instance.
	OuterJoinList
	// ForeignKeySubscription is the subscription store of a foreign-key join: one instance.
	ForeignKeySubscription
	// TimeOrderedBuffer is the buffer of a stream-table join with grace (KIP-923): one instance.
	TimeOrderedBuffer
	// TimeOrderedWindow is the store of an aggregation that emits on window close: base and index share the segments.
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
	// SegmentIntervalMs is the segment interval in milliseconds. 0 means the default: max(retention/2, 60 s).
	SegmentIntervalMs Fact[int64]
	// InMemory stores live on the heap.
	InMemory bool
	// Caching says whether the record cache is on for it. Where that is not known, it counts as on.
	Caching bool
	// Unlogged stores have no changelog, so nothing restores them.
	Unlogged bool
	// Size is the data that one task's store holds (all partitions for a global store). 0 means not known.
	Size Fact[Bytes]
	// Partitions of the source topic of a global store. 0 means not known.
	Partitions int
	// MaxSuppress is the maxBytes of a suppress buffer. 0 means unbounded or not known.
	MaxSuppress Fact[Bytes]
}

// Subtopology is a part of the topology: a task runs it for one partition.
type Subtopology struct {
	// ID as the group knows it ("0", "1", ...).
	ID string
	// Tasks is the number of tasks: the largest partition count of its source topics.
	Tasks int
	// InputPartitions a task reads: one of each source topic.
	InputPartitions int
	// WrittenPartitions are all partitions of its sink and repartition topics: any of its tasks may write to each of them. Changelogs
	// are not in it, they are counted from the stores.
	WrittenPartitions int
	// Stores of one task. A store that two processors name is one store.
	Stores []Store
}

// Stateful says whether a task of it has a state store.
func (s Subtopology) Stateful() bool { return len(s.Stores) > 0 }

// Records describes what flows through the application, in uncompressed serialized bytes.
type Records struct {
	// Average size of a record: key, value and headers.
	Average Fact[Bytes]
	// Largest record that may occur.
	Largest Fact[Bytes]
	// LargestBatch that a broker may hold (message.max.bytes of the source topics): a fetch returns it even where limits are smaller.
	LargestBatch Fact[Bytes]
}

// Consumer holds the configs of one consumer role that cost memory.
type Consumer struct {
	FetchMaxBytes          Fact[Bytes]
	MaxPartitionFetchBytes Fact[Bytes]
	MaxPollRecords         Fact[int]
	SendBuffer             Fact[Bytes]
	ReceiveBuffer          Fact[Bytes]
}

// Producer holds the producer configs that cost memory.
type Producer struct {
	BufferMemory     Fact[Bytes]
	BatchSize        Fact[Bytes]
	MaxRequestSize   Fact[Bytes]
	Compression      Fact[Compression]
	CompressionLevel Fact[int]
	SendBuffer       Fact[Bytes]
	ReceiveBuffer    Fact[Bytes]
}

// Clients holds the configs of the Kafka clients and of Kafka Streams that cost memory.
type Clients struct {
	Producer Producer
	// Main, Restore and Global are the consumers of Kafka Streams, each with its own effective configs.
	Main, Restore, Global Consumer
	// BufferedRecordsPerPartition pauses an input partition (buffered.records.per.partition).
	BufferedRecordsPerPartition Fact[int]
	// RecordCache is the record cache of the instance (statestore.cache.max.bytes, before 3.4 cache.max.bytes.buffering).
	RecordCache Fact[Bytes]
	// TransactionalStores says whether enable.transactional.statestores is on (KIP-892, 4.4).
	TransactionalStores Fact[bool]
	// Uncommitted is statestore.uncommitted.max.bytes of the instance (4.4); -1 switches the bound off.
	Uncommitted Fact[Bytes]
}

// StateDir is the state directory.
type StateDir struct {
	// InMemory is true for tmpfs and emptyDir with medium Memory: its files count as memory in full.
	InMemory bool
	// Persistent directories survive the pod, so an old copy of any task may be on it.
	Persistent bool
}

// RocksDB holds the settings of the stores. Kafka Streams sets the first three per instance, unless a rocksdb.config.setter changes
// them.
type RocksDB struct {
	BlockCache, WriteBuffer Fact[Bytes]
	MaxWriteBuffers         Fact[int]
	// Setter is the application's own rocksdb.config.setter, if it has one.
	Setter Fact[string]
	// FormatUpgrade says that stores may hold rows of an older format (dsl.store.format=HEADERS on stores from before).
	FormatUpgrade Fact[bool]
	// OpenIterators is the most iterators that are open at once (num-open-iterators). 0 means one a stream thread.
	OpenIterators Fact[int]
	// SharedCache is the capacity of the shared block cache, WriteBufferLimit the part of it that memtables may take. 0 leaves the
	// choice to the plan.
	SharedCache, WriteBufferLimit Fact[Bytes]
	// OwnCache is the capacity of the block cache that the application's own setter keeps in a bounded process, beside the shared one: of
	// the one that stores share, or of each where OwnCaches says that every instance has its own. 0: it keeps none.
	OwnCache Fact[Bytes]
	// OwnCaches: every RocksDB instance has a cache of the application of its own.
	OwnCaches bool
}

// ApplicationMemory is what the process holds besides Kafka Streams.
type ApplicationMemory struct {
	// LiveSet is the application's own live objects on the heap.
	LiveSet Fact[Bytes]
	// Native is its own native use: other agents, JNI libraries, direct buffers of its own.
	Native Fact[Bytes]
}

// Workload is everything about an application that is the same for all its pods.
type Workload struct {
	// Version of kafka-streams.
	Version  Fact[Version]
	Protocol Fact[Protocol]
	// Guarantee is the processing guarantee.
	Guarantee Fact[Guarantee]
	// Threads is num.stream.threads, for pods whose threads have not been seen.
	Threads Fact[int]
	// Standbys is num.standby.replicas, or the group config streams.num.standby.replicas for the streams protocol.
	Standbys Fact[int]
	// WarmUps is max.warmup.replicas, of the whole group. The streams protocol has none.
	WarmUps Fact[int]
	// Brokers that lead partitions which the application reads.
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
	// Bounded says that the shared block cache and write buffer manager are in force in the process.
	Bounded bool
}

// Client is a KafkaStreams client that shares the JVM with the planned one: an application of its own, with its own id, threads, tasks
// and configs. Its JVM, allocator, state directory and bounds are those of the process, so the workload's own do not count.
type Client struct {
	ApplicationID string
	Workload      Workload
	// Load that it may have in this process at the same time.
	Load Load
}

// Tasks is the number of tasks of all subtopologies.
func (w Workload) Tasks() int {
	tasks := 0
	for _, s := range w.Subtopologies {
		tasks += clampCount(s.Tasks)
	}
	return tasks
}
