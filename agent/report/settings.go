// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"slices"
	"strings"
)

// Settings are the settings that an agent may tell and that [Decode] lets pass, without a prefix: those that cost memory,
// and those that say how the application rebalances (StreamsConfig, ProducerConfig, ConsumerConfig, CommonClientConfigs 2.4 to 4.4).
// None of them holds a secret. [SettingPrefixes] may stand before them.
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

// SettingPrefixes are the prefixes that a setting of a client may have (StreamsConfig).
var SettingPrefixes = []string{"main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer."}

// isReportedSetting says whether a setting is on the list, with or without one prefix.
func isReportedSetting(name string) bool {
	for _, prefix := range SettingPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return slices.Contains(Settings, rest)
		}
	}
	return slices.Contains(Settings, name)
}

// memoryFlag is the form of a JVM flag that sets an amount, a number, or switches something: -Xmx1g, -XX:MaxRAMPercentage=75.0,
// -XX:+UseG1GC. Flags with paths and quotes, which may hold anything, do not have it, nor has any system property but one.
var memoryFlag = regexp.MustCompile(`^(-X(X:[+-]?)?[A-Za-z0-9]+(=[A-Za-z0-9.]+)?|-Djdk\.nio\.maxCachedBufferSize=[0-9]+)$`)
