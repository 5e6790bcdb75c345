// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// setting is one property that costs memory and what it does to a workload.
type setting struct {
	// names are the property and its older aliases, the one that wins first.
	names []string
	// since is the first version that knows the first of the names; older ones ignore it. The zero version means all.
	since Version
	scope scope
	apply func(w *Workload, consumer *Consumer, value string) error
}

// scope says which prefixes a property may have, and in which order they win.
type scope uint8

const (
	// streamsScope is a property of Kafka Streams itself, without a prefix.
	streamsScope scope = iota
	// producerScope: producer. beats none.
	producerScope
	// consumerScope: main.consumer., restore.consumer. and global.consumer. beat consumer., which beats none.
	consumerScope
)

// defaultUncommitted is statestore.uncommitted.max.bytes (StreamsConfig 4.4).
const defaultUncommitted = 64 * MiB

// settings are the properties that the planner reads. Sources: StreamsConfig, ProducerConfig, ConsumerConfig 2.4 to 4.4.
var settings = []setting{
	{names: []string{"num.stream.threads"}, apply: streams(wholeNumber(1), func(w *Workload) *Fact[int] { return &w.Threads })},
	{names: []string{"num.standby.replicas"}, apply: streams(wholeNumber(0), func(w *Workload) *Fact[int] { return &w.Standbys })},
	{names: []string{"max.warmup.replicas"}, since: Version{2, 6, 0}, apply: streams(wholeNumber(1), func(w *Workload) *Fact[int] { return &w.WarmUps })},
	{names: []string{"buffered.records.per.partition"},
		apply: streams(wholeNumber(0), func(w *Workload) *Fact[int] { return &w.Clients.BufferedRecordsPerPartition })},
	{names: []string{"statestore.cache.max.bytes", "cache.max.bytes.buffering"}, since: Version{3, 4, 0}, // KIP-770
		apply: streams(bytesOf(0), func(w *Workload) *Fact[Bytes] { return &w.Clients.RecordCache })},
	{names: []string{"statestore.uncommitted.max.bytes"}, since: since[transactionalStores],
		apply: streams(bytesOf(-1), func(w *Workload) *Fact[Bytes] { return &w.Clients.Uncommitted })},
	{names: []string{"enable.transactional.statestores"}, since: since[transactionalStores],
		apply: streams(boolOf, func(w *Workload) *Fact[bool] { return &w.Clients.TransactionalStores })},
	{names: []string{"processing.guarantee"}, apply: streams(oneOf(guarantees), func(w *Workload) *Fact[Guarantee] { return &w.Guarantee })},
	{names: []string{"group.protocol"}, since: Version{4, 1, 0}, // KIP-1071
		apply: streams(oneOf(protocols), func(w *Workload) *Fact[Protocol] { return &w.Protocol })},
	{names: []string{"dsl.store.format"}, since: Version{4, 3, 0}, // stores from before have rows of the old format
		apply: streams(oneOf(formats), func(w *Workload) *Fact[bool] { return &w.RocksDB.FormatUpgrade })},
	{names: []string{"rocksdb.config.setter"}, apply: streams(textOf, func(w *Workload) *Fact[string] { return &w.RocksDB.Setter })},
	{names: []string{"security.protocol"}, apply: streams(oneOf(encrypted), func(w *Workload) *Fact[bool] { return &w.TLS })},

	{names: []string{"buffer.memory"}, scope: producerScope, apply: producer(bytesOf(0), func(p *Producer) *Fact[Bytes] { return &p.BufferMemory })},
	{names: []string{"batch.size"}, scope: producerScope, apply: producer(bytesOf(0), func(p *Producer) *Fact[Bytes] { return &p.BatchSize })},
	{names: []string{"max.request.size"}, scope: producerScope,
		apply: producer(bytesOf(0), func(p *Producer) *Fact[Bytes] { return &p.MaxRequestSize })},
	{names: []string{"compression.type"}, scope: producerScope,
		apply: producer(oneOf(codecs), func(p *Producer) *Fact[Compression] { return &p.Compression })},
	{names: []string{"compression.zstd.level"}, since: Version{3, 8, 0}, scope: producerScope, // KIP-390
		apply: producer(levelOf, func(p *Producer) *Fact[int] { return &p.CompressionLevel })},
	{names: []string{"send.buffer.bytes"}, scope: producerScope, apply: producer(bytesOf(-1), func(p *Producer) *Fact[Bytes] { return &p.SendBuffer })},
	{names: []string{"receive.buffer.bytes"}, scope: producerScope,
		apply: producer(bytesOf(-1), func(p *Producer) *Fact[Bytes] { return &p.ReceiveBuffer })},

	{names: []string{"fetch.max.bytes"}, scope: consumerScope, apply: consumer(bytesOf(0), func(c *Consumer) *Fact[Bytes] { return &c.FetchMaxBytes })},
	{names: []string{"max.partition.fetch.bytes"}, scope: consumerScope,
		apply: consumer(bytesOf(0), func(c *Consumer) *Fact[Bytes] { return &c.MaxPartitionFetchBytes })},
	{names: []string{"max.poll.records"}, scope: consumerScope, apply: consumer(wholeNumber(1), func(c *Consumer) *Fact[int] { return &c.MaxPollRecords })},
	{names: []string{"send.buffer.bytes"}, scope: consumerScope, apply: consumer(bytesOf(-1), func(c *Consumer) *Fact[Bytes] { return &c.SendBuffer })},
	{names: []string{"receive.buffer.bytes"}, scope: consumerScope,
		apply: consumer(bytesOf(-1), func(c *Consumer) *Fact[Bytes] { return &c.ReceiveBuffer })},
}

// Names that properties may have, in lower case.
var (
	guarantees = map[string]Guarantee{
		"at_least_once": AtLeastOnce, "exactly_once": ExactlyOnceV1, "exactly_once_beta": ExactlyOnceV2, "exactly_once_v2": ExactlyOnceV2,
	}
	protocols = map[string]Protocol{"classic": Classic, "streams": Streams}
	encrypted = map[string]bool{"plaintext": false, "sasl_plaintext": false, "ssl": true, "sasl_ssl": true}
	formats   = map[string]bool{"default": false, "headers": true}
	codecs    = map[string]Compression{"none": NoCompression, "gzip": Gzip, "snappy": Snappy, "lz4": LZ4, "zstd": Zstd}
)

// NewWorkload is a workload with the documented defaults of a version, each with its provenance. It has no subtopologies. A version
// that is not known (0.0.0) counts as the newest that the planner knows.
func NewWorkload(version Fact[Version]) Workload {
	consumer := Consumer{
		FetchMaxBytes:          Known(50*MiB, Default),
		MaxPartitionFetchBytes: Known(1*MiB, Default),
		MaxPollRecords:         Known(1000, Default), // Kafka Streams' own default; the consumer's is 500
		SendBuffer:             Known(128*KiB, Default),
		ReceiveBuffer:          Known(64*KiB, Default),
	}
	return Workload{
		Version:   version,
		Protocol:  Known(Classic, Default),
		Guarantee: Known(AtLeastOnce, Default),
		Threads:   Known(1, Default),
		Standbys:  Known(0, Default),
		WarmUps:   Known(2, Default),
		Brokers:   Known(3, Assumed),
		TLS:       Known(false, Default),
		Records: Records{
			Average:      Known(1*KiB, Assumed),
			Largest:      Known(1*MiB, Assumed),
			LargestBatch: Known(Bytes(1_048_588), Default), // message.max.bytes of the broker
		},
		Clients: Clients{
			Producer: Producer{
				BufferMemory:     Known(32*MiB, Default),
				BatchSize:        Known(16*KiB, Default),
				MaxRequestSize:   Known(1*MiB, Default),
				Compression:      Known(NoCompression, Default),
				CompressionLevel: Known(3, Default),
				SendBuffer:       Known(128*KiB, Default),
				ReceiveBuffer:    Known(32*KiB, Default),
			},
			Main: consumer, Restore: consumer, Global: consumer,
			BufferedRecordsPerPartition: Known(1000, Default),
			RecordCache:                 Known(10*MiB, Default),
			Uncommitted:                 Known(defaultUncommitted, Default),
		},
		RocksDB: RocksDB{
			BlockCache:      Known(shippedBlockCache, Default),
			WriteBuffer:     Known(shippedWriteBuffer, Default),
			MaxWriteBuffers: Known(shippedMaxWriteBuffers, Default),
		},
		JVM: NewJVM(),
		// A small application after a full collection held 36 MiB (a field report of 2026); the rest is margin.
		Application: ApplicationMemory{LiveSet: Known(48*MiB, Assumed)},
	}
}

// ApplyProperties puts the application's own properties onto the workload, with provenance App. Aliases and prefixes are decided as
// Kafka Streams does; a property that the version does not know yet is ignored, as Kafka Streams ignores it. Bad values
// give an error that names the property and what must be true; the rest is applied all the same.
// Properties that cost no memory are ignored.
func (w *Workload) ApplyProperties(properties map[string]string) error {
	var errs []error
	for _, s := range settings {
		for _, target := range s.targets(w) {
			name, value, ok := lookUp(properties, target.prefixes, s.namesIn(w.Version))
			if !ok {
				continue
			}
			if err := s.apply(w, target.consumer, strings.TrimSpace(value)); err != nil {
				errs = append(errs, fmt.Errorf("property %s=%q: %w", name, value, err))
			}
		}
	}
	if err := w.checkGuarantee(properties); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(unique(errs)...)
}

// target is where a property goes, and the prefixes it may have there, the one that wins first.
type target struct {
	prefixes []string
	consumer *Consumer
}

// targets of a property.
func (s setting) targets(w *Workload) []target {
	switch s.scope {
	case producerScope:
		return []target{{prefixes: []string{"producer.", ""}}}
	case consumerScope:
		return []target{
			{prefixes: []string{"main.consumer.", "consumer.", ""}, consumer: &w.Clients.Main},
			{prefixes: []string{"restore.consumer.", "consumer.", ""}, consumer: &w.Clients.Restore},
			{prefixes: []string{"global.consumer.", "consumer.", ""}, consumer: &w.Clients.Global},
		}
	case streamsScope:
	}
	return []target{{prefixes: []string{""}}}
}

// namesIn are the names that a version knows. One that is only assumed may be newer than it seems.
func (s setting) namesIn(v Fact[Version]) []string {
	if v.From != Assumed && before(effectiveVersion(v), s.since) {
		return s.names[1:]
	}
	return s.names
}

// lookUp finds the property that is in force.
func lookUp(properties map[string]string, prefixes, names []string) (name, value string, ok bool) {
	for _, prefix := range prefixes {
		for _, n := range names {
			if value, ok = properties[prefix+n]; ok {
				return prefix + n, value, true
			}
		}
	}
	return "", "", false
}

// checkGuarantee refuses what the version no longer has.
func (w *Workload) checkGuarantee(properties map[string]string) error {
	value := strings.TrimSpace(properties["processing.guarantee"])
	removed := strings.EqualFold(value, "exactly_once") || strings.EqualFold(value, "exactly_once_beta")
	if removed && hasFeature(effectiveVersion(w.Version), eosV1Gone) && w.Version.Value != (Version{}) {
		return fmt.Errorf("property processing.guarantee=%q: Kafka Streams %v does not have it; it must be exactly_once_v2 since 4.0", value, w.Version.Value)
	}
	return nil
}

// unique removes errors of the same text: one property may go to several consumers.
func unique(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(err error) bool {
		double := seen[err.Error()]
		seen[err.Error()] = true
		return double
	})
}
