// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApplyProperties(t *testing.T) {
	all := func(change func(*Consumer)) func(*Workload) {
		return func(w *Workload) {
			change(&w.Clients.Main)
			change(&w.Clients.Restore)
			change(&w.Clients.Global)
		}
	}
	cases := map[string]struct {
		version    Version
		properties map[string]string
		change     func(*Workload)
		wantErr    string
	}{
		"nothing set": {change: func(*Workload) {}},
		"settings that cost no memory are ignored": {
			properties: map[string]string{"bootstrap.servers": "a:1", "linger.ms": "5"}, change: func(*Workload) {},
		},
		"settings of Kafka Streams": {
			properties: map[string]string{"num.stream.threads": "4", "num.standby.replicas": "1", "max.warmup.replicas": "3", "buffered.records.per.partition": " 100 "},
			change: func(w *Workload) {
				w.Threads, w.Standbys, w.WarmUps = Known(4, App), Known(1, App), Known(3, App)
				w.Clients.BufferedRecordsPerPartition = Known(100, App)
			},
		},
		"the record cache": {
			properties: map[string]string{"statestore.cache.max.bytes": "1048576"},
			change:     func(w *Workload) { w.Clients.RecordCache = Known(MiB, App) },
		},
		"the record cache by its old name, switched off": {
			properties: map[string]string{"cache.max.bytes.buffering": "0"},
			change:     func(w *Workload) { w.Clients.RecordCache = Known(Bytes(0), App) },
		},
		"the new name of the record cache wins": {
			properties: map[string]string{"cache.max.bytes.buffering": "0", "statestore.cache.max.bytes": "5"},
			change:     func(w *Workload) { w.Clients.RecordCache = Known(Bytes(5), App) },
		},
		"transactional stores": {
			properties: map[string]string{"enable.transactional.statestores": "TRUE", "statestore.uncommitted.max.bytes": "-1"},
			change: func(w *Workload) {
				w.Clients.TransactionalStores, w.Clients.Uncommitted = Known(true, App), Known(Bytes(-1), App)
			},
		},
		"no transactional stores": {
			properties: map[string]string{"enable.transactional.statestores": "false"},
			change:     func(w *Workload) { w.Clients.TransactionalStores = Known(false, App) },
		},
		"names in any case": {
			properties: map[string]string{"processing.guarantee": "exactly_once_V2", "group.protocol": "STREAMS", "security.protocol": "SASL_SSL", "compression.type": "ZSTD"},
			change: func(w *Workload) {
				w.Guarantee, w.Protocol, w.TLS = Known(ExactlyOnceV2, App), Known(Streams, App), Known(true, App)
				w.Clients.Producer.Compression = Known(Zstd, App)
			},
		},
		"producer. beats none": {
			properties: map[string]string{"batch.size": "1", "producer.batch.size": "2", "buffer.memory": "3"},
			change: func(w *Workload) {
				w.Clients.Producer.BatchSize, w.Clients.Producer.BufferMemory = Known(Bytes(2), App), Known(Bytes(3), App)
			},
		},
		"consumer. beats none and goes to all consumers": {
			properties: map[string]string{"fetch.max.bytes": "1", "consumer.fetch.max.bytes": "2"},
			change:     all(func(c *Consumer) { c.FetchMaxBytes = Known(Bytes(2), App) }),
		},
		"none goes to all consumers": {
			properties: map[string]string{"max.partition.fetch.bytes": "7", "max.poll.records": "9"},
			change:     all(func(c *Consumer) { c.MaxPartitionFetchBytes, c.MaxPollRecords = Known(Bytes(7), App), Known(9, App) }),
		},
		"main.consumer. beats consumer. for the main consumer only": {
			properties: map[string]string{"consumer.max.poll.records": "2", "main.consumer.max.poll.records": "3"},
			change: func(w *Workload) {
				all(func(c *Consumer) { c.MaxPollRecords = Known(2, App) })(w)
				w.Clients.Main.MaxPollRecords = Known(3, App)
			},
		},
		"restore and global consumers have their own prefixes": {
			properties: map[string]string{"restore.consumer.fetch.max.bytes": "1", "global.consumer.fetch.max.bytes": "2"},
			change: func(w *Workload) {
				w.Clients.Restore.FetchMaxBytes, w.Clients.Global.FetchMaxBytes = Known(Bytes(1), App), Known(Bytes(2), App)
			},
		},
		"socket buffers without a prefix go to all clients": {
			properties: map[string]string{"receive.buffer.bytes": "-1"},
			change: func(w *Workload) {
				all(func(c *Consumer) { c.ReceiveBuffer = Known(Bytes(-1), App) })(w)
				w.Clients.Producer.ReceiveBuffer = Known(Bytes(-1), App)
			},
		},
		"before 3.4 the new name of the record cache is not known": {
			version: Version{3, 3, 2}, properties: map[string]string{"cache.max.bytes.buffering": "7", "statestore.cache.max.bytes": "5"},
			change: func(w *Workload) { w.Clients.RecordCache = Known(Bytes(7), App) },
		},
		"properties of newer versions are ignored": {
			version:    Version{3, 3, 2},
			properties: map[string]string{"enable.transactional.statestores": "true", "group.protocol": "streams", "compression.zstd.level": "9", "dsl.store.format": "HEADERS"},
			change:     func(*Workload) {},
		},
		"an own setter, and stores that take a new format": {
			properties: map[string]string{"rocksdb.config.setter": "com.example.Setter", "dsl.store.format": "HEADERS"},
			change: func(w *Workload) {
				w.RocksDB.Setter, w.RocksDB.FormatUpgrade = Known("com.example.Setter", App), Known(true, App)
			},
		},
		"no setter": {
			properties: map[string]string{"rocksdb.config.setter": " "}, change: func(*Workload) {},
			wantErr: `property rocksdb.config.setter=" ": must not be empty`,
		},
		"a unit of Kubernetes": {
			properties: map[string]string{"buffer.memory": "2G"}, change: func(*Workload) {},
			wantErr: `property buffer.memory="2G": must be a whole number of bytes`,
		},
		"an exponent": {
			properties: map[string]string{"consumer.fetch.max.bytes": "1e9"}, change: func(*Workload) {},
			wantErr: `property consumer.fetch.max.bytes="1e9": must be a whole number of bytes`,
		},
		"a negative size": {
			properties: map[string]string{"statestore.cache.max.bytes": "-1"}, change: func(*Workload) {},
			wantErr: `property statestore.cache.max.bytes="-1": must be a whole number of bytes, at least 0`,
		},
		"a unit": {
			properties: map[string]string{"buffer.memory": "32m", "num.stream.threads": "2"},
			change:     func(w *Workload) { w.Threads = Known(2, App) },
			wantErr:    `property buffer.memory="32m": must be a whole number of bytes, at least 0, such as 1048576: Kafka knows no units and no exponents`,
		},
		"no threads": {
			properties: map[string]string{"num.stream.threads": "0"}, change: func(*Workload) {},
			wantErr: `property num.stream.threads="0": must be a whole number of at least 1`,
		},
		"a count beyond all counts": {
			properties: map[string]string{"max.poll.records": "99999999999"}, change: func(*Workload) {},
			wantErr: `property max.poll.records="99999999999": must be a whole number of at least 1`,
		},
		"a codec that is none": {
			properties: map[string]string{"producer.compression.type": "rar"}, change: func(*Workload) {},
			wantErr: `property producer.compression.type="rar": must be one of gzip, lz4, none, snappy, zstd`,
		},
		"a level that is none": {
			properties: map[string]string{"compression.zstd.level": "23"}, change: func(*Workload) {},
			wantErr: "must be a zstd level of -131072 to 22",
		},
		"neither true nor false": {
			properties: map[string]string{"enable.transactional.statestores": "yes"}, change: func(*Workload) {},
			wantErr: "must be true or false",
		},
		"a guarantee that 4.0 removed": {
			version: Version{4, 1, 1}, properties: map[string]string{"processing.guarantee": "exactly_once"},
			change:  func(w *Workload) { w.Guarantee = Known(ExactlyOnceV1, App) },
			wantErr: `property processing.guarantee="exactly_once": Kafka Streams 4.1.1 does not support it; it must be exactly_once_v2 since 4.0`,
		},
		"the same guarantee before": {
			version: Version{3, 9, 1}, properties: map[string]string{"processing.guarantee": "exactly_once"},
			change: func(w *Workload) { w.Guarantee = Known(ExactlyOnceV1, App) },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, want := NewWorkload(Known(c.version, Spec)), NewWorkload(Known(c.version, Spec))
			c.change(&want)
			requireError(t, got.ApplyProperties(c.properties), c.wantErr)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("workload (-want +got):\n%s", d)
			}
		})
	}
}

func TestABadPropertyIsReportedOnce(t *testing.T) {
	w := release(4, 4, 0)
	err := w.ApplyProperties(map[string]string{"fetch.max.bytes": "x"})
	if err == nil || err.Error() != `property fetch.max.bytes="x": must be a whole number of bytes, at least 0, such as 1048576: Kafka knows no units and no exponents` {
		t.Errorf("error %v, want it once for the three consumers", err)
	}
}
