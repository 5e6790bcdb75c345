// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"slices"
	"strings"
)

// Settings are the settings in a report, without prefixes: those that affect memory or rebalancing (StreamsConfig, ProducerConfig,
// ConsumerConfig and CommonClientConfigs of 2.4 to 4.4). None of them contains a secret. [Decode] drops all others. One of
// [SettingPrefixes] may precede each of them.
var Settings = []string{
	"acceptable.recovery.lag",
	"batch.size",
	"buffer.memory",
	"buffered.records.per.partition",
	"built.in.metrics.version",
	"cache.max.bytes.buffering",
	"commit.interval.ms",
	"compression.type",
	"compression.zstd.level",
	"default.dsl.store",
	"dsl.store.format",
	"dsl.store.suppliers.class",
	"enable.transactional.statestores",
	"fetch.max.bytes",
	"group.instance.id",
	"group.protocol",
	"internal.task.assignor.class",
	"max.partition.fetch.bytes",
	"max.poll.records",
	"max.request.size",
	"max.warmup.replicas",
	"metrics.recording.level",
	"num.standby.replicas",
	"num.stream.threads",
	"probing.rebalance.interval.ms",
	"processing.guarantee",
	"receive.buffer.bytes",
	"rocksdb.config.setter",
	"security.protocol",
	"send.buffer.bytes",
	"session.timeout.ms",
	"statestore.cache.max.bytes",
	"statestore.uncommitted.max.bytes",
	"task.assignor.class",
	"topology.optimization",
	"windowstore.changelog.additional.retention.ms",
}

// SettingPrefixes are the prefixes of the settings of a client (StreamsConfig).
var SettingPrefixes = []string{"main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer."}

// isAllowed returns whether a setting is one of [Settings], with or without a prefix.
func isAllowed(name string) bool {
	for _, prefix := range SettingPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return slices.Contains(Settings, rest)
		}
	}
	return slices.Contains(Settings, name)
}

// memoryFlag is the form of a JVM flag with an amount, a number or a switch: -Xmx1g, -XX:MaxRAMPercentage=75.0, -XX:+UseG1GC. Flags with
// paths or quotes, which may contain anything, do not match, and no system property but one does.
var memoryFlag = regexp.MustCompile(`^(-X(X:[+-]?)?[A-Za-z0-9]+(=[A-Za-z0-9.]+)?|-Djdk\.nio\.maxCachedBufferSize=[0-9]+)$`)
