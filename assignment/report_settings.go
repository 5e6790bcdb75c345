// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"regexp"
	"slices"
	"strings"
)

// ReportedSettings are the settings that an agent may tell and that [DecodeReport] lets pass, without a prefix: those that cost memory,
// and those that say how the application rebalances (StreamsConfig, ProducerConfig, ConsumerConfig, CommonClientConfigs 2.4 to 4.4).
// None of them holds a secret. [SettingPrefixes] may stand before them.
var ReportedSettings = []string{
	"acceptable.recovery.lag",
	"auto.offset.reset",
	"batch.size",
	"buffered.records.per.partition",
	"buffer.memory",
	"cache.max.bytes.buffering",
	"commit.interval.ms",
	"compression.gzip.level",
	"compression.lz4.level",
	"compression.type",
	"compression.zstd.level",
	"default.dsl.store",
	"dsl.store.format",
	"dsl.store.suppliers.class",
	"enable.transactional.statestores",
	"fetch.max.bytes",
	"fetch.min.bytes",
	"group.instance.id",
	"group.protocol",
	"heartbeat.interval.ms",
	"input.buffer.max.bytes",
	"internal.leave.group.on.close",
	"internal.task.assignor.class",
	"linger.ms",
	"max.block.ms",
	"max.in.flight.requests.per.connection",
	"max.partition.fetch.bytes",
	"max.poll.interval.ms",
	"max.poll.records",
	"max.request.size",
	"max.warmup.replicas",
	"num.standby.replicas",
	"num.stream.threads",
	"poll.ms",
	"probing.rebalance.interval.ms",
	"processing.guarantee",
	"receive.buffer.bytes",
	"rocksdb.config.setter",
	"security.protocol",
	"send.buffer.bytes",
	"session.timeout.ms",
	"state.cleanup.delay.ms",
	"statestore.cache.max.bytes",
	"statestore.uncommitted.max.bytes",
	"task.assignor.class",
	"task.timeout.ms",
	"topology.optimization",
	"upgrade.from",
	"windowstore.changelog.additional.retention.ms",
}

// SettingPrefixes are the prefixes that a setting of a client may have (StreamsConfig).
var SettingPrefixes = []string{"main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer.", "admin."}

// isReportedSetting says whether a setting is on the list, with or without one prefix.
func isReportedSetting(name string) bool {
	for _, prefix := range SettingPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return slices.Contains(ReportedSettings, rest)
		}
	}
	return slices.Contains(ReportedSettings, name)
}

// memoryFlag is the form of a JVM flag that sets an amount, a number, or switches something: -Xmx1g, -XX:MaxRAMPercentage=75.0,
// -XX:+UseG1GC. Flags with paths and quotes, which may hold anything, do not have it.
var memoryFlag = regexp.MustCompile(`^-X(X:[+-]?)?[A-Za-z0-9]+(=[A-Za-z0-9.]+)?$`)
