// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Configs of a changelog topic that depend on the kind of its store (InternalTopologyBuilder.createChangelogTopicConfig,
// WindowedChangelogTopicConfig and VersionedChangelogTopicConfig).
const (
	cleanupPolicy    = "cleanup.policy"
	retentionMillis  = "retention.ms"
	compactionMillis = "min.compaction.lag.ms"
)

const (
	changelogSuffix   = "-changelog"
	repartitionSuffix = "-repartition"
	// changelogExtra is the difference between the retention of a topic and that of its store: the default of
	// windowstore.changelog.additional.retention.ms, and a constant for versioned stores.
	changelogExtra = 24 * time.Hour
)

// storeNames are the prefixes of generated store names of the DSL, with the kind of the store. Names chosen by users do not have them.
var storeNames = []struct {
	prefix string
	kind   StoreKind
}{
	{"KSTREAM-JOINTHIS-", JoinWindow},
	{"KSTREAM-JOINOTHER-", JoinWindow},
	{"KSTREAM-OUTERTHIS-", JoinWindow},
	{"KSTREAM-OUTEROTHER-", JoinWindow},
	{"KSTREAM-OUTERSHARED-", OuterJoinList},
	{"KTABLE-SUPPRESS-STATE-STORE-", Suppress},
	{"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-", ForeignKeySubscription},
}

// storeOf returns the store of a changelog topic of an application.
func storeOf(applicationID, topic string) (string, bool) {
	rest, ok := strings.CutPrefix(topic, applicationID+"-")
	if !ok {
		return "", false
	}
	store, ok := strings.CutSuffix(rest, changelogSuffix)
	return store, ok && store != ""
}

// newChangelog returns the changelog for the name, partitions and configs of a topic.
func newChangelog(applicationID, topic string, partitions int32, configs map[string]string) (Changelog, bool) {
	store, ok := storeOf(applicationID, topic)
	if !ok {
		return Changelog{}, false
	}
	kind, retention := kindOf(store, configs)
	return Changelog{Topic: topic, Store: store, Partitions: partitions, Kind: kind, Retention: retention}, true
}

// declaredChangelog returns the changelog for a topic declared by a streams group. For an unusual name, the store has the name of the
// topic.
func declaredChangelog(applicationID string, topic kmsg.TopicInfo) Changelog {
	configs := map[string]string{}
	for _, config := range topic.Configs {
		configs[config.Key] = config.Value
	}
	partitions := max(topic.NumPartitions, 0)
	if changelog, ok := newChangelog(applicationID, topic.Topic, partitions, configs); ok {
		return changelog
	}
	kind, retention := kindOf(topic.Topic, configs)
	return Changelog{Topic: topic.Topic, Store: topic.Topic, Partitions: partitions, Kind: kind, Retention: retention}
}

// kindOf derives kind and retention from the configs of a changelog and the name of its store:
//
//	cleanup.policy=compact                                         key-value
//	cleanup.policy=compact,delete   retention.ms = R + 24 h        window, session or join, retention R
//	min.compaction.lag.ms = H + 24 h                               versioned, history H
//
// A retention of at most 24 hours does not include the default addition and is returned unchanged.
func kindOf(store string, configs map[string]string) (StoreKind, time.Duration) {
	named := kindByName(store)
	if strings.Contains(configs[cleanupPolicy], "delete") {
		if named != JoinWindow {
			named = Window
		}
		return named, withoutExtra(configs[retentionMillis])
	}
	if lag := millis(configs[compactionMillis]); lag > 0 {
		return Versioned, withoutExtra(configs[compactionMillis])
	}
	return cmp.Or(named, KeyValue), 0
}

// kindByName returns the kind for a generated store name of the DSL, and "" for other names.
func kindByName(store string) StoreKind {
	for _, n := range storeNames {
		if strings.HasPrefix(store, n.prefix) {
			return n.kind
		}
	}
	return ""
}

// withoutExtra returns the retention of a store for that of its topic.
func withoutExtra(value string) time.Duration {
	retention := millis(value)
	if retention > changelogExtra {
		return retention - changelogExtra
	}
	return retention
}

// millis parses a number of milliseconds. It returns 0 for an empty text, for -1 (for ever) and for malformed numbers. It limits the result
// to the maximum of a Duration, 292 years.
func millis(value string) time.Duration {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(n, longest)) * time.Millisecond
}

func sortChangelogs(changelogs []Changelog) {
	slices.SortFunc(changelogs, func(a, b Changelog) int { return cmp.Compare(a.Store, b.Store) })
}
