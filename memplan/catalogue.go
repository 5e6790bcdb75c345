// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// kafkaConfig is a row of the catalogue: one config of Kafka Streams or of its clients that affects memory.
type kafkaConfig struct {
	// name is the present name. oldName is an older name that stays valid.
	name, oldName string
	// since is the first version with the present name; older versions ignore it. The zero version means all versions.
	since Version
	// value has the place of the config in a workload, its default, and its range.
	value value
	// floor returns the smallest value that a plan may choose for a load. It is nil where a plan never lowers the config.
	floor func(*client, role) int64
}

// catalogue has the Kafka configs that affect memory. Defaults, parsing, checks and lowering follow from it. A plan lowers configs in the
// order of the catalogue: those first whose bytes are worth least. Sources: StreamsConfig, ProducerConfig and ConsumerConfig of 2.4 to 4.4.
var catalogue = []kafkaConfig{
	{name: "fetch.max.bytes", floor: (*client).leastResponse,
		value: size(50*MiB, 0, ofConsumers(func(c *Consumer) *Fact[Bytes] { return &c.FetchMaxBytes }))},
	{name: "max.partition.fetch.bytes", floor: (*client).leastPartitionFetch,
		value: size(1*MiB, 0, ofConsumers(func(c *Consumer) *Fact[Bytes] { return &c.MaxPartitionFetchBytes }))},
	{name: "buffered.records.per.partition", floor: (*client).leastPolled,
		value: count(1000, 0, ofStreams(func(w *Workload) *Fact[int] { return &w.Clients.BufferedRecordsPerPartition }))},
	{name: "max.poll.records", floor: (*client).leastPolled, // the default of Kafka Streams; that of the consumer is 500
		value: count(1000, 1, ofConsumers(func(c *Consumer) *Fact[int] { return &c.MaxPollRecords }))},
	{name: "buffer.memory", floor: (*client).leastBuffer,
		value: size(32*MiB, 0, ofProducer(func(p *Producer) *Fact[Bytes] { return &p.BufferMemory }))},
	recordCacheConfig,

	{name: "num.stream.threads", value: count(1, 1, ofStreams(func(w *Workload) *Fact[int] { return &w.Threads }))},
	{name: "num.standby.replicas", value: count(0, 0, ofStreams(func(w *Workload) *Fact[int] { return &w.Standbys }))},
	{name: "max.warmup.replicas", since: Version{2, 6, 0},
		value: count(2, 1, ofStreams(func(w *Workload) *Fact[int] { return &w.WarmUps })).orZero()}, // the streams protocol has no warm-ups
	{name: "statestore.uncommitted.max.bytes", since: since[transactionalStores],
		value: size(defaultUncommitted, -1, ofStreams(func(w *Workload) *Fact[Bytes] { return &w.Clients.Uncommitted }))},
	{name: "enable.transactional.statestores", since: since[transactionalStores],
		value: choice(Fact[bool]{}, boolOf, ofStreams(func(w *Workload) *Fact[bool] { return &w.Clients.TransactionalStores }))},
	{name: "processing.guarantee",
		value: choice(Known(AtLeastOnce, Default), oneOf(guarantees), ofStreams(func(w *Workload) *Fact[Guarantee] { return &w.Guarantee }))},
	{name: "group.protocol", since: Version{4, 1, 0}, // KIP-1071
		value: choice(Known(Classic, Default), oneOf(protocols), ofStreams(func(w *Workload) *Fact[Protocol] { return &w.Protocol }))},
	{name: "dsl.store.format", since: Version{4, 3, 0}, // older stores have rows of the old format
		value: choice(Fact[bool]{}, oneOf(formats), ofStreams(func(w *Workload) *Fact[bool] { return &w.RocksDB.FormatUpgrade }))},
	{name: "rocksdb.config.setter", value: choice(Fact[string]{}, textOf, ofStreams(func(w *Workload) *Fact[string] { return &w.RocksDB.Setter }))},
	{name: "security.protocol", value: choice(Known(false, Default), oneOf(encrypted), ofStreams(func(w *Workload) *Fact[bool] { return &w.TLS }))},

	{name: "batch.size", value: size(16*KiB, 0, ofProducer(func(p *Producer) *Fact[Bytes] { return &p.BatchSize }))},
	{name: "max.request.size", value: size(1*MiB, 0, ofProducer(func(p *Producer) *Fact[Bytes] { return &p.MaxRequestSize }))},
	{name: "compression.type",
		value: choice(Known(NoCompression, Default), oneOf(codecs), ofProducer(func(p *Producer) *Fact[Compression] { return &p.Compression }))},
	{name: "compression.zstd.level", since: Version{3, 8, 0}, // KIP-390
		value: choice(Known(3, Default), levelOf, ofProducer(func(p *Producer) *Fact[int] { return &p.CompressionLevel }))},
	{name: "send.buffer.bytes", value: size(128*KiB, -1, ofProducer(func(p *Producer) *Fact[Bytes] { return &p.SendBuffer }))},
	{name: "receive.buffer.bytes", value: size(32*KiB, -1, ofProducer(func(p *Producer) *Fact[Bytes] { return &p.ReceiveBuffer }))},

	{name: "send.buffer.bytes", value: size(128*KiB, -1, ofConsumers(func(c *Consumer) *Fact[Bytes] { return &c.SendBuffer }))},
	{name: "receive.buffer.bytes", value: size(64*KiB, -1, ofConsumers(func(c *Consumer) *Fact[Bytes] { return &c.ReceiveBuffer }))},
}

// recordCacheConfig is the record cache (KIP-770).
var recordCacheConfig = kafkaConfig{
	name: "statestore.cache.max.bytes", oldName: "cache.max.bytes.buffering", since: Version{3, 4, 0}, floor: (*client).leastRecordCache,
	value: size(10*MiB, 0, ofStreams(func(w *Workload) *Fact[Bytes] { return &w.Clients.RecordCache })),
}

// defaultUncommitted is statestore.uncommitted.max.bytes (StreamsConfig 4.4).
const defaultUncommitted = 64 * MiB

// The values of configs with names, in lower case.
var (
	guarantees = map[string]Guarantee{
		"at_least_once": AtLeastOnce, "exactly_once": ExactlyOnceV1, "exactly_once_beta": ExactlyOnceV2, "exactly_once_v2": ExactlyOnceV2,
	}
	protocols = map[string]Protocol{"classic": Classic, "streams": Streams}
	encrypted = map[string]bool{"plaintext": false, "sasl_plaintext": false, "ssl": true, "sasl_ssl": true}
	formats   = map[string]bool{"default": false, "headers": true}
	codecs    = map[string]Compression{"none": NoCompression, "gzip": Gzip, "snappy": Snappy, "lz4": LZ4, "zstd": Zstd}
)

// role is the consumer that a config belongs to. Other configs have no role.
type role uint8

// The roles. Configs of consumers are lowered in this order.
const (
	noRole role = iota
	restoreRole
	globalRole
	mainRole
)

// String returns the consumer's name.
func (r role) String() string {
	return [...]string{"", "restore consumer", "global consumer", "main consumer"}[r]
}

// prefix returns the prefix of the configs of one consumer.
func (r role) prefix() string {
	return [...]string{"", "restore.consumer.", "global.consumer.", "main.consumer."}[r]
}

// of returns the configs of the consumer.
func (r role) of(w *Workload) *Consumer {
	switch r {
	case restoreRole:
		return &w.Clients.Restore
	case globalRole:
		return &w.Clients.Global
	default:
		return &w.Clients.Main
	}
}

// setting is a config as one client has it: a config of consumers is a setting of each of the three.
type setting struct {
	kafkaConfig
	role role
	// number is the value of a config with a number, nil for others.
	number numeric
}

// settings are the rows of the catalogue, those of consumers by role.
var settings = settingsOf(catalogue)

func settingsOf(catalogue []kafkaConfig) []setting {
	var all []setting
	for _, config := range catalogue {
		number, _ := config.value.(numeric)
		for _, role := range config.value.roles() {
			all = append(all, setting{kafkaConfig: config, role: role, number: number})
		}
	}
	return all
}

// nameIn returns the name of the config in a version.
func (c *kafkaConfig) nameIn(v Version) string {
	if c.oldName != "" && before(v, c.since) {
		return c.oldName
	}
	return c.name
}

// validNames returns the names of the config in a version, the one that wins first. An assumed version may be too old.
func (c *kafkaConfig) validNames(v Fact[Version]) []string {
	var names []string
	if v.From == Assumed || !before(effectiveVersion(v), c.since) {
		names = append(names, c.name)
	}
	if c.oldName != "" {
		names = append(names, c.oldName)
	}
	return names
}

// label returns the name of the setting for messages.
func (s *setting) label() string {
	if s.role == noRole {
		return s.name
	}
	return s.name + " of the " + s.role.String()
}

// planName returns the name under which a plan sets the config. A config of the producer has no prefix: only producers have it, and a
// value that the application sets later, with or without a prefix, then wins.
func (s *setting) planName(v Version) string { return s.role.prefix() + s.nameIn(v) }
