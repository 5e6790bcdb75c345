// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// StreamsSpec contains facts of a Kafka Streams application. They are used if neither the pods' reports nor Kafka
// provide them.
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

	// standbyReplicas is num.standby.replicas; with the streams protocol, the group's streams.num.standby.replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	StandbyReplicas *int32 `json:"standbyReplicas,omitempty"`

	// warmupReplicas is max.warmup.replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	WarmupReplicas *int32 `json:"warmupReplicas,omitempty"`

	// processingGuarantee is processing.guarantee: AtLeastOnce, ExactlyOnce (one producer per task; before 4.0) or
	// ExactlyOnceV2.
	// +optional
	ProcessingGuarantee ProcessingGuarantee `json:"processingGuarantee,omitempty"`

	// groupProtocol is group.protocol: Classic or Streams (KIP-1071).
	// +optional
	GroupProtocol GroupProtocol `json:"groupProtocol,omitempty"`

	// records contains the sizes of the records that the application reads and writes.
	// +optional
	Records RecordsSpec `json:"records,omitzero"`

	// stores are state stores, by name. Values that are not set are taken from the changelog topic of the store.
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

	// ownCaches is the policy for block caches that the application's own RocksDBConfigSetter creates: Keep leaves
	// them in place and counts them; Replace replaces them with the plan's shared cache. If not set, the policy is
	// Keep.
	// +optional
	OwnCaches OwnCaches `json:"ownCaches,omitempty"`

	// configs are properties that the application sets itself and that affect memory, by name, with the prefixes of
	// Kafka Streams (main.consumer., restore.consumer., producer. and so on). They must not contain credentials.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Configs []Config `json:"configs,omitempty"`
}

// OwnCaches is the policy for the application's own block caches.
// +kubebuilder:validation:Enum=Keep;Replace
type OwnCaches string

const (
	// OwnCachesKeep leaves them in place.
	OwnCachesKeep OwnCaches = "Keep"

	// OwnCachesReplace replaces them with the plan's shared cache.
	OwnCachesReplace OwnCaches = "Replace"
)

// ProcessingGuarantee is a value of processing.guarantee.
// +kubebuilder:validation:Enum=AtLeastOnce;ExactlyOnce;ExactlyOnceV2
type ProcessingGuarantee string

const (
	// AtLeastOnce is at_least_once.
	AtLeastOnce ProcessingGuarantee = "AtLeastOnce"

	// ExactlyOnce is exactly_once, removed in Kafka 4.0: one producer per active task.
	ExactlyOnce ProcessingGuarantee = "ExactlyOnce"

	// ExactlyOnceV2 is exactly_once_v2: one producer per stream thread.
	ExactlyOnceV2 ProcessingGuarantee = "ExactlyOnceV2"
)

// GroupProtocol is a value of group.protocol.
// +kubebuilder:validation:Enum=Classic;Streams
type GroupProtocol string

const (
	// ClassicProtocol is the protocol of consumer groups: a member assigns the tasks.
	ClassicProtocol GroupProtocol = "Classic"

	// StreamsProtocol is the protocol of KIP-1071: the broker assigns the tasks.
	StreamsProtocol GroupProtocol = "Streams"
)

// RecordsSpec contains sizes of records.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.averageSize) || !has(self.largestSize) || quantity(string(self.averageSize)).compareTo(quantity(string(self.largestSize))) <= 0",message="averageSize must not be larger than largestSize"
type RecordsSpec struct {
	// averageSize of a record, key and value, uncompressed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="averageSize must be larger than 0"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="averageSize must be at most 16Ti"
	AverageSize *resource.Quantity `json:"averageSize,omitempty"`

	// largestSize of a record, key and value, uncompressed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="largestSize must be larger than 0"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="largestSize must be at most 16Ti"
	LargestSize *resource.Quantity `json:"largestSize,omitempty"`

	// largestBatchSize of a batch of records in the topics that the application reads, as stored (compressed).
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="largestBatchSize must be larger than 0"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="largestBatchSize must be at most 16Ti"
	LargestBatchSize *resource.Quantity `json:"largestBatchSize,omitempty"`
}

// Store contains facts of one state store.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || self.kind != 'Global' || !has(self.subtopology)",message="a store of kind Global has no subtopology: every process holds all partitions"
// +kubebuilder:validation:XValidation:rule="!has(self.retentionSeconds) || !has(self.kind) || !(self.kind in ['KeyValue', 'ForeignKeySubscription', 'TimeOrderedBuffer', 'Suppress', 'Global'])",message="retentionSeconds must not be set for a store of this kind: it keeps all records"
// +kubebuilder:validation:XValidation:rule="!has(self.segmentSeconds) || has(self.retentionSeconds)",message="segmentSeconds requires retentionSeconds: both determine the number of segments"
type Store struct {
	// name of the store, as in the name of its changelog topic: <application id>-<name>-changelog.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=249
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="name must consist of letters, digits, '.', '_' and '-', like the name of a topic"
	Name string `json:"name,omitempty"`

	// kind of the store. It determines the number of RocksDB instances that a task opens for the store.
	// +optional
	Kind StoreKind `json:"kind,omitempty"`

	// subtopology is the id of the subtopology that contains the store.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Subtopology *int32 `json:"subtopology,omitempty"`

	// retentionSeconds is the time for which a windowed, session or versioned store keeps its records.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	RetentionSeconds int32 `json:"retentionSeconds,omitempty"`

	// segmentSeconds is the segment interval of a segmented store. If not set, it is half of the retention, at least
	// 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	SegmentSeconds int32 `json:"segmentSeconds,omitempty"`

	// storage is Persistent (RocksDB) or InMemory (on the heap). If not set, it is Persistent.
	// +optional
	Storage Storage `json:"storage,omitempty"`

	// caching is Enabled if writes to the store go through the record cache, otherwise Disabled.
	// +optional
	Caching Caching `json:"caching,omitempty"`

	// size is the data of one task in this store, keys and values, uncompressed. 0 or less means unknown. (A CEL rule
	// for each of 256 stores would exceed the cost limit of the API server.)
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

	// StoreVersioned is a versioned store (KIP-889): one RocksDB instance with logical segments.
	StoreVersioned StoreKind = "Versioned"

	// StoreJoinWindow is the window store of one side of a stream-stream join.
	StoreJoinWindow StoreKind = "JoinWindow"

	// StoreOuterJoinList is the list of unmatched records of a left or outer stream-stream join.
	StoreOuterJoinList StoreKind = "OuterJoinList"

	// StoreForeignKeySubscription is the subscription store of a foreign-key join.
	StoreForeignKeySubscription StoreKind = "ForeignKeySubscription"

	// StoreTimeOrderedBuffer is the buffer of a stream-table join with grace (KIP-923).
	StoreTimeOrderedBuffer StoreKind = "TimeOrderedBuffer"

	// StoreTimeOrderedWindow is the store of an aggregation that emits on window close, in segments.
	StoreTimeOrderedWindow StoreKind = "TimeOrderedWindow"

	// StoreSuppress is the buffer of suppress(). It is always on the heap.
	StoreSuppress StoreKind = "Suppress"

	// StoreGlobal is a GlobalKTable or global store: each process holds all partitions.
	StoreGlobal StoreKind = "Global"
)

// Storage is the medium of a store.
// +kubebuilder:validation:Enum=Persistent;InMemory
type Storage string

const (
	// StoragePersistent keeps data in RocksDB.
	StoragePersistent Storage = "Persistent"

	// StorageInMemory keeps data on the heap.
	StorageInMemory Storage = "InMemory"
)

// Caching is the use of the record cache by a store.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Caching string

const (
	// CachingEnabled: writes go through the record cache.
	CachingEnabled Caching = "Enabled"

	// CachingDisabled: writes go directly to the store.
	CachingDisabled Caching = "Disabled"
)

// Subtopology contains facts of one part of the topology.
type Subtopology struct {
	// id of the subtopology: the first number of the ids of its tasks.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	ID *int32 `json:"id,omitempty"`

	// tasks is the number of tasks of the subtopology: the largest number of partitions of its input topics.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Tasks int32 `json:"tasks,omitempty"`

	// inputPartitionsPerTask is the number of partitions that a task reads: usually the number of its input topics.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	InputPartitionsPerTask int32 `json:"inputPartitionsPerTask,omitempty"`

	// writtenPartitions is the number of partitions that a task may write besides its changelogs: those of all its
	// sink and repartition topics.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	WrittenPartitions *int32 `json:"writtenPartitions,omitempty"`
}

// Config is a property of the application.
//
// +kubebuilder:validation:XValidation:rule="!self.name.contains('password') && !self.name.endsWith('sasl.jaas.config') && !self.name.endsWith('.key')",message="configs must not contain credentials: they are for settings that affect memory"
type Config struct {
	// name of the property, with its prefix.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="name must consist of letters, digits, '.', '_' and '-', like the name of a property"
	Name string `json:"name,omitempty"`

	// value of the property, as in a properties file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Value string `json:"value,omitempty"`
}

// JVMSpec contains facts of the JVM that the operator cannot read from the pod template.
//
// +kubebuilder:validation:MinProperties=1
type JVMSpec struct {
	// optionsVariable is the environment variable for the options of the plan: JDK_JAVA_OPTIONS, which the java
	// launcher reads (JDK 9 and newer), or JAVA_TOOL_OPTIONS for JVMs with a different launcher. If not set, it is
	// JDK_JAVA_OPTIONS. Only users who may update the target can set it.
	// +optional
	OptionsVariable OptionsVariable `json:"optionsVariable,omitempty"`

	// ownOptions is the existing value of this variable if the operator cannot read it: from a Secret through envFrom,
	// or from the image. $(JDK_JAVA_OPTIONS) keeps the value from envFrom. Empty: there is no such value. Only users who
	// may update the target can set it.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.contains('/etc/streamweir/')",message="ownOptions must not refer to files in /etc/streamweir/"
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\n')",message="ownOptions must be a single line"
	OwnOptions *string `json:"ownOptions,omitempty"`

	// version is the major version of the JVM, such as 21.
	// +optional
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=99
	Version int32 `json:"version,omitempty"`

	// applicationHeap is the live heap of the application's own code, without Kafka Streams.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="applicationHeap must not be negative"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="applicationHeap must be at most 16Ti"
	ApplicationHeap *resource.Quantity `json:"applicationHeap,omitempty"`

	// applicationNative is the native memory of the application's own code, without Kafka Streams.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="applicationNative must not be negative"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="applicationNative must be at most 16Ti"
	ApplicationNative *resource.Quantity `json:"applicationNative,omitempty"`
}

// OptionsVariable is an environment variable from which a JVM reads options.
// +kubebuilder:validation:Enum=JDK_JAVA_OPTIONS;JAVA_TOOL_OPTIONS
type OptionsVariable string

const (
	// JDKJavaOptions is read by the java launcher (JDK 9 and newer).
	JDKJavaOptions OptionsVariable = "JDK_JAVA_OPTIONS"

	// JavaToolOptions is read by every JVM.
	JavaToolOptions OptionsVariable = "JAVA_TOOL_OPTIONS"
)
