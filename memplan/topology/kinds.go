// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"regexp"
	"slices"
	"strings"

	"streamweir.dev/streamweir/memplan"
)

// byName has the kinds of the store names that Kafka Streams generates. Sources: descriptions of topologies with each operator, printed by
// 4.4.0, and KStreamImplJoin, StreamJoined, KTableImpl and KTableSuppressProcessorSupplier. The first match counts.
var byName = []struct {
	name *regexp.Regexp
	kind memplan.StoreKind
}{
	{regexp.MustCompile(`^KTABLE-SUPPRESS-STATE-STORE-\d+$`), memplan.Suppress},
	{regexp.MustCompile(`^KSTREAM-OUTERSHARED-\d+-store$|-(outer|left)-shared-join-store$`), memplan.OuterJoinList},
	{regexp.MustCompile(`^KSTREAM-(JOINTHIS|JOINOTHER|OUTERTHIS|OUTEROTHER)-\d+-store$|-(this|other)-join-store$`), memplan.JoinWindow},
	{regexp.MustCompile(`^KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-\d+$`), memplan.ForeignKeySubscription},
	// Aggregations of streams are windowed or not, and their names are the same.
	{regexp.MustCompile(`^(COGROUP)?KSTREAM-(AGGREGATE|REDUCE)-STATE-STORE-\d+$`), memplan.Window},
	// KSTREAM-TOTABLE-STATE-STORE-, KTABLE-AGGREGATE-STATE-STORE- and others, and TOPIC-STATE-STORE- of a table: never windowed.
	{regexp.MustCompile(`-STATE-STORE-\d+$`), memplan.TimestampedKeyValue},
}

// aggregations is the index in byName of the names with or without a window.
const aggregations = 4

// tableProcessor matches processors with their own table: never windowed. KTABLE-JOINTHIS and -JOINOTHER read the other table's store.
var tableProcessor = regexp.MustCompile(`^(KTABLE-(SOURCE|FILTER|MAPVALUES|MERGE|AGGREGATE|REDUCE|FK-JOIN-OUTPUT)|KSTREAM-TOTABLE)-\d+$`)

// lookup finds the processors of a subtopology by name.
type lookup struct{ processors map[string]Processor }

func (s Subtopology) lookup() *lookup {
	l := &lookup{processors: make(map[string]Processor, len(s.Processors))}
	for _, p := range s.Processors {
		l.processors[p.Name] = p
	}
	return l
}

// kindOf returns the kind of a store, and whether its name or its processors determine it. An undetermined kind counts as Window, the kind
// with the most instances for a task.
func (l *lookup) kindOf(store Store) (kind memplan.StoreKind, determined bool) {
	for i, rule := range byName {
		if rule.name.MatchString(store.Name) {
			return rule.kind, i != aggregations
		}
	}
	for _, p := range store.Processors {
		switch {
		case strings.HasPrefix(p, "KSTREAM-WINDOWED-"), strings.HasSuffix(p, "-this-windowed"), strings.HasSuffix(p, "-other-windowed"):
			return memplan.JoinWindow, true // a store with the application's own name: KStreamImplJoin writes to it through this processor
		case store.Name == p+"-Buffer":
			return memplan.TimeOrderedBuffer, true // a stream-table join with grace (KStreamImpl, KIP-923)
		case store.Name == strings.TrimSuffix(p, "-receive")+"-store" && strings.HasSuffix(p, "-subscription-receive"):
			return memplan.ForeignKeySubscription, true // TableJoined.as
		case tableProcessor.MatchString(p):
			return memplan.TimestampedKeyValue, true
		}
	}
	if l.maySuppress(store) {
		return memplan.Suppress, false
	}
	return memplan.Window, false
}

// maySuppress reports whether a store looks like the buffer of a named suppress(): its only processor has its name without "-store" and no
// other store, and follows a processor with a table (KTableImpl#suppress). A table with such a pair of names looks the same.
func (l *lookup) maySuppress(store Store) bool {
	if len(store.Processors) != 1 || store.Name != store.Processors[0]+"-store" {
		return false
	}
	processor := l.processors[store.Processors[0]]
	return len(processor.Stores) == 1 && slices.ContainsFunc(processor.Predecessors, func(before string) bool {
		return len(l.processors[before].Stores) > 0
	})
}

// storeOf returns a store of a kind with the caching of the DSL: on for aggregations and tables, off for joins and buffers.
func storeOf(name string, kind memplan.StoreKind) memplan.Store {
	return memplan.Store{
		Name: name, Kind: kind, InMemory: kind == memplan.Suppress,
		Caching: kind == memplan.TimestampedKeyValue || kind == memplan.Window,
	}
}

var (
	repartition = regexp.MustCompile(`-repartition$`)
	foreignKey  = regexp.MustCompile(`^KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic$|-subscription-(registration|response)-topic$`)
)

// isRepartition reports whether a topic has the name of a repartition topic (RepartitionedInternal, GroupedStreamAggregateBuilder).
func isRepartition(topic string) bool { return repartition.MatchString(topic) }

// isForeignKey reports whether a topic has the name of a topic between the sides of a foreign-key join (KTableImpl#doJoinOnForeignKey).
func isForeignKey(topic string) bool { return foreignKey.MatchString(topic) }
