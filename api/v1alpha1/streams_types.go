// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// StreamsSpec holds facts of a Kafka Streams application. They count where neither the pods' reports nor Kafka show them.
//
// +kubebuilder:validation:MinProperties=1
type StreamsSpec struct {
	// version of Kafka Streams that the application uses, such as 4.4.0.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+[.][0-9]+$')",message="version must be three numbers, such as 4.4.0"
	Version string `json:"version,omitempty"`

	// threads is the number of stream threads in each process (num.stream.threads).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Threads int32 `json:"threads,omitempty"`

	// standbyReplicas is num.standby.replicas; with the streams protocol the group's streams.num.standby.replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	StandbyReplicas *int32 `json:"standbyReplicas,omitempty"`

	// warmupReplicas is max.warmup.replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	WarmupReplicas *int32 `json:"warmupReplicas,omitempty"`

	// processingGuarantee is processing.guarantee: AtLeastOnce, ExactlyOnce (one producer for each task; before 4.0) or
	// ExactlyOnceV2.
	// +optional
	ProcessingGuarantee ProcessingGuarantee `json:"processingGuarantee,omitempty"`

	// groupProtocol is group.protocol: Classic or Streams (KIP-1071).
	// +optional
	GroupProtocol GroupProtocol `json:"groupProtocol,omitempty"`

	// records holds the sizes of the records that the application reads and writes.
	// +optional
	Records RecordsSpec `json:"records,omitzero"`

	// stores are state stores, by name. What is not set of a store is taken from its changelog topic.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Stores []Store `json:"stores,omitempty"`

	// subtopologies are the parts of the topology, by id.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Subtopologies []Subtopology `json:"subtopologies,omitempty"`

	// ownCaches says what becomes of block caches that the application's own RocksDBConfigSetter sets: Keep leaves and counts
	// them; Replace puts the plan's shared cache in their place. Not set: Keep.
	// +optional
	OwnCaches OwnCaches `json:"ownCaches,omitempty"`

	// configs are properties that the application sets itself and that concern memory, by name, with the prefixes that
	// Kafka Streams knows (main.consumer., restore.consumer., producer. and so on). Never credentials.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Configs []Config `json:"configs,omitempty"`
}

// OwnCaches says what becomes of the application's own block caches.
// +kubebuilder:validation:Enum=Keep;Replace
type OwnCaches string

const (
	// OwnCachesKeep leaves them as they are.
	OwnCachesKeep OwnCaches = "Keep"

	// OwnCachesReplace puts the plan's shared cache in their place.
	OwnCachesReplace OwnCaches = "Replace"
)

// ProcessingGuarantee is a value of processing.guarantee.
// +kubebuilder:validation:Enum=AtLeastOnce;ExactlyOnce;ExactlyOnceV2
type ProcessingGuarantee string

const (
	// AtLeastOnce is at_least_once.
	AtLeastOnce ProcessingGuarantee = "AtLeastOnce"

	// ExactlyOnce is exactly_once, removed in Kafka 4.0: one producer for each active task.
	ExactlyOnce ProcessingGuarantee = "ExactlyOnce"

	// ExactlyOnceV2 is exactly_once_v2: one producer for each stream thread.
	ExactlyOnceV2 ProcessingGuarantee = "ExactlyOnceV2"
)

// GroupProtocol is a value of group.protocol.
// +kubebuilder:validation:Enum=Classic;Streams
type GroupProtocol string

const (
	// ClassicProtocol is the protocol of consumer groups: the members assign.
	ClassicProtocol GroupProtocol = "Classic"

	// StreamsProtocol is the protocol of KIP-1071: the broker assigns.
	StreamsProtocol GroupProtocol = "Streams"
)

// RecordsSpec holds sizes of records.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.averageSize) || !has(self.largestSize) || quantity(string(self.averageSize)).compareTo(quantity(string(self.largestSize))) <= 0",message="averageSize must not be larger than largestSize"
type RecordsSpec struct {
	// averageSize of a record, key and value, uncompressed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="averageSize must be larger than 0"
	AverageSize *resource.Quantity `json:"averageSize,omitempty"`

	// largestSize of a record, key and value, uncompressed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="largestSize must be larger than 0"
	LargestSize *resource.Quantity `json:"largestSize,omitempty"`

	// largestBatchSize of a batch of records in the topics that the application reads, as stored: compressed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="largestBatchSize must be larger than 0"
	LargestBatchSize *resource.Quantity `json:"largestBatchSize,omitempty"`
}

// Store holds facts of one state store.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || self.kind != 'Global' || !has(self.subtopology)",message="a store of kind Global has no subtopology: every process holds all of it"
// +kubebuilder:validation:XValidation:rule="!has(self.retentionSeconds) || !has(self.kind) || !(self.kind in ['KeyValue', 'ForeignKeySubscription', 'TimeOrderedBuffer', 'Suppress', 'Global'])",message="retentionSeconds must not be set for a store of this kind: it keeps everything"
// +kubebuilder:validation:XValidation:rule="!has(self.segmentSeconds) || has(self.retentionSeconds)",message="segmentSeconds needs retentionSeconds: the number of segments follows from both"
type Store struct {
	// name of the store, as in the name of its changelog topic: <application id>-<name>-changelog.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=249
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="name must consist of letters, digits, '.', '_' and '-', as names of topics do"
	Name string `json:"name,omitempty"`

	// kind of the store: it decides how many RocksDB instances a task opens for it.
	// +optional
	Kind StoreKind `json:"kind,omitempty"`

	// subtopology is the id of the subtopology that the store belongs to.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Subtopology *int32 `json:"subtopology,omitempty"`

	// retentionSeconds is how long a store with time keeps its records.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	RetentionSeconds int32 `json:"retentionSeconds,omitempty"`

	// segmentSeconds is the segment interval of a store with segments. Not set: half of the retention, at least 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	SegmentSeconds int32 `json:"segmentSeconds,omitempty"`

	// storage is Persistent (RocksDB) or InMemory (on the heap). Not set: Persistent.
	// +optional
	Storage Storage `json:"storage,omitempty"`

	// caching says whether the store uses the record cache.
	// +optional
	Caching Caching `json:"caching,omitempty"`

	// size is what one task holds in this store, keys and values, uncompressed. 0 or less: not known. (A rule that says so
	// for each of 256 stores would cost more than the API server grants.)
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}

// StoreKind is a kind of state store.
// +kubebuilder:validation:Enum=KeyValue;Window;Session;Versioned;JoinWindow;OuterJoinList;ForeignKeySubscription;TimeOrderedBuffer;TimeOrderedWindow;Suppress;Global
type StoreKind string

const (
	// StoreKeyValue is a key-value store, with or without timestamps.
	StoreKeyValue StoreKind = "KeyValue"

	// StoreWindow is a window store, in segments.
	StoreWindow StoreKind = "Window"

	// StoreSession is a session store, in segments.
	StoreSession StoreKind = "Session"

	// StoreVersioned is a versioned store (KIP-889): one instance with logical segments.
	StoreVersioned StoreKind = "Versioned"

	// StoreJoinWindow is one side's window store of a stream-stream join.
	StoreJoinWindow StoreKind = "JoinWindow"

	// StoreOuterJoinList is the list of records without a partner in a left or outer stream-stream join.
	StoreOuterJoinList StoreKind = "OuterJoinList"

	// StoreForeignKeySubscription is the subscription store of a foreign-key join.
	StoreForeignKeySubscription StoreKind = "ForeignKeySubscription"

	// StoreTimeOrderedBuffer is the buffer of a stream-table join with grace (KIP-923).
	StoreTimeOrderedBuffer StoreKind = "TimeOrderedBuffer"

	// StoreTimeOrderedWindow is the store of an aggregation that emits on window close, in segments.
	StoreTimeOrderedWindow StoreKind = "TimeOrderedWindow"

	// StoreSuppress is the buffer of suppress(): on the heap, whatever the storage.
	StoreSuppress StoreKind = "Suppress"

	// StoreGlobal is a GlobalKTable or global store: each process holds all partitions.
	StoreGlobal StoreKind = "Global"
)

// Storage says where a store keeps its data.
// +kubebuilder:validation:Enum=Persistent;InMemory
type Storage string

const (
	// StoragePersistent keeps data in RocksDB.
	StoragePersistent Storage = "Persistent"

	// StorageInMemory keeps data on the heap.
	StorageInMemory Storage = "InMemory"
)

// Caching says whether a store uses the record cache.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Caching string

const (
	// CachingEnabled: writes go through the record cache.
	CachingEnabled Caching = "Enabled"

	// CachingDisabled: writes go to the store at once.
	CachingDisabled Caching = "Disabled"
)

// Subtopology holds facts of one part of the topology.
type Subtopology struct {
	// id of the subtopology: the first number of its tasks' ids.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	ID *int32 `json:"id,omitempty"`

	// tasks is how many tasks the subtopology has: the largest number of partitions of its input topics.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Tasks int32 `json:"tasks,omitempty"`

	// inputPartitionsPerTask is how many partitions a task reads: usually the number of its input topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	InputPartitionsPerTask int32 `json:"inputPartitionsPerTask,omitempty"`

	// writtenPartitions is how many partitions a task may write beside its changelogs: all of its sink and repartition
	// topics.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	WrittenPartitions *int32 `json:"writtenPartitions,omitempty"`
}

// Config is a property of the application.
//
// +kubebuilder:validation:XValidation:rule="!self.name.contains('password') && !self.name.endsWith('sasl.jaas.config') && !self.name.endsWith('.key')",message="configs must not hold credentials: they concern memory only"
type Config struct {
	// name of the property, with its prefix.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="name must consist of letters, digits, '.', '_' and '-', as names of properties do"
	Name string `json:"name,omitempty"`

	// value of the property, as in a properties file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Value string `json:"value,omitempty"`
}

// JVMSpec holds facts of the JVM that the operator cannot read from the pod template.
//
// +kubebuilder:validation:MinProperties=1
type JVMSpec struct {
	// optionsVariable is the environment variable that takes the plan: JDK_JAVA_OPTIONS, which the java launcher reads (JDK
	// 9 and newer), or JAVA_TOOL_OPTIONS, for JVMs that are started otherwise. Not set: JDK_JAVA_OPTIONS.
	// +optional
	OptionsVariable OptionsVariable `json:"optionsVariable,omitempty"`

	// ownOptions is the value that the variable has already where the operator cannot read it: from a Secret by envFrom, or
	// from the image. $(JDK_JAVA_OPTIONS) keeps what envFrom gives. Empty: nothing is set there.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.contains('/etc/streamweir/')",message="ownOptions must not name the plan's own files"
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\n')",message="ownOptions must be a single line"
	OwnOptions *string `json:"ownOptions,omitempty"`

	// version is the major version of the JVM, such as 21.
	// +optional
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=99
	Version int32 `json:"version,omitempty"`

	// applicationHeap is what the application's own code keeps alive on the heap, without Kafka Streams.
	// +optional
	ApplicationHeap *resource.Quantity `json:"applicationHeap,omitempty"`

	// applicationNative is what the application's own code uses outside the heap, without Kafka Streams.
	// +optional
	ApplicationNative *resource.Quantity `json:"applicationNative,omitempty"`
}

// OptionsVariable is an environment variable from which a JVM takes options.
// +kubebuilder:validation:Enum=JDK_JAVA_OPTIONS;JAVA_TOOL_OPTIONS
type OptionsVariable string

const (
	// JDKJavaOptions is read by the java launcher (JDK 9 and newer).
	JDKJavaOptions OptionsVariable = "JDK_JAVA_OPTIONS"

	// JavaToolOptions is read by every JVM.
	JavaToolOptions OptionsVariable = "JAVA_TOOL_OPTIONS"
)
