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

// The configs of a changelog topic that show its store (InternalTopologyBuilder.createChangelogTopicConfig and
// WindowedChangelogTopicConfig, VersionedChangelogTopicConfig).
const (
	cleanupPolicy    = "cleanup.policy"
	retentionMillis  = "retention.ms"
	compactionMillis = "min.compaction.lag.ms"
)

const (
	changelogSuffix   = "-changelog"
	repartitionSuffix = "-repartition"
	// changelogExtra is what Kafka Streams adds to a store's retention in the topic: the default of
	// windowstore.changelog.additional.retention.ms, and a fixed amount for versioned stores.
	changelogExtra = 24 * time.Hour
)

// storeNames are beginnings of the names that Kafka Streams gives to stores of its DSL, with the kind they show. The
// names of users hide them.
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

// storeOf gives the store of a changelog topic of an application.
func storeOf(applicationID, topic string) (string, bool) {
	rest, ok := strings.CutPrefix(topic, applicationID+"-")
	if !ok {
		return "", false
	}
	store, ok := strings.CutSuffix(rest, changelogSuffix)
	return store, ok && store != ""
}

// newChangelog reads a store from its changelog topic.
func newChangelog(applicationID, topic string, partitions int32, configs map[string]string) (Changelog, bool) {
	store, ok := storeOf(applicationID, topic)
	if !ok {
		return Changelog{}, false
	}
	kind, retention := kindOf(store, configs)
	return Changelog{Topic: topic, Store: store, Partitions: partitions, Kind: kind, Retention: retention}, true
}

// declaredChangelog reads a changelog that a streams group declares. A name out of the ordinary is the store's.
func declaredChangelog(applicationID string, t kmsg.TopicInfo) Changelog {
	configs := map[string]string{}
	for _, c := range t.Configs {
		configs[c.Key] = c.Value
	}
	c, ok := newChangelog(applicationID, t.Topic, max(t.NumPartitions, 0), configs)
	if !ok {
		kind, retention := kindOf(t.Topic, configs)
		return Changelog{Topic: t.Topic, Store: t.Topic, Partitions: max(t.NumPartitions, 0), Kind: kind, Retention: retention}
	}
	return c
}

// kindOf reads kind and retention from a changelog's configs and the store's name:
//
//	cleanup.policy=compact                                         key-value
//	cleanup.policy=compact,delete   retention.ms = R + 24 h        window, session or join, retention R
//	min.compaction.lag.ms = H + 24 h                               versioned, history H
//
// A retention of at most the 24 hours that are added by default was set otherwise, and is taken as it is.
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

// kindByName gives the kind that the DSL's own names show, "" for others.
func kindByName(store string) StoreKind {
	for _, n := range storeNames {
		if strings.HasPrefix(store, n.prefix) {
			return n.kind
		}
	}
	return ""
}

// withoutExtra gives a store's retention from its topic's.
func withoutExtra(value string) time.Duration {
	retention := millis(value)
	if retention > changelogExtra {
		return retention - changelogExtra
	}
	return retention
}

// millis reads a number of milliseconds; 0 for none, for "for ever" (-1) and for what is no number. What a Duration
// cannot hold is cut at its end, 292 years.
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
