// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"streamweir.dev/streamweir/agent/report"
)

// subtopologiesOf gives the subtopologies whose tasks the clients have, or that were known, and the global stores.
func subtopologiesOf(clients []podClient, known []Subtopology) (subtopologies []Subtopology, globalStores []string) {
	tasks := map[string]int32{}
	stores := map[string]map[string]OpenStore{}
	globals := map[string]bool{}
	add := func(id string, s OpenStore) {
		if stores[id] == nil {
			stores[id] = map[string]OpenStore{}
		}
		if old, ok := stores[id][s.Name]; !ok || heavier(s, old) {
			stores[id][s.Name] = s
		}
	}
	for _, s := range known {
		tasks[s.ID] = s.Tasks
	}
	for _, c := range clients {
		for _, s := range c.GlobalStores {
			globals[s.Name] = true
		}
		for _, thread := range c.Threads {
			for _, t := range thread.Tasks {
				task, ok := parseTask(t.ID)
				if !ok {
					continue
				}
				tasks[task.Subtopology] = max(tasks[task.Subtopology], task.Partition+1)
				for _, s := range t.Stores {
					add(task.Subtopology, openStore(s))
				}
			}
		}
	}
	for _, s := range known { // Stores that are open are known best by those who have them open.
		for _, store := range s.Stores {
			if _, ok := stores[s.ID][store.Name]; !ok {
				add(s.ID, store)
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(tasks), compareSubtopologies) {
		s := Subtopology{ID: id, Tasks: tasks[id], Stateful: len(stores[id]) > 0}
		for _, name := range slices.Sorted(maps.Keys(stores[id])) {
			s.Stores = append(s.Stores, stores[id][name])
		}
		subtopologies = append(subtopologies, s)
	}
	return subtopologies, slices.Sorted(maps.Keys(globals))
}

// openStore reads a store. The scopes are those of the store suppliers (metricsScope) of Kafka Streams 2.4 to 4.4, with "-state".
func openStore(s report.Store) OpenStore {
	store := OpenStore{Name: s.Name, Kind: KeyValue, InMemory: strings.HasPrefix(s.Scope, "in-memory")}
	named := kindByName(s.Name)
	switch {
	case strings.Contains(s.Scope, "suppression"):
		store.Kind = Suppress
	case strings.Contains(s.Scope, "session"):
		store.Kind = Session
	case strings.Contains(s.Scope, "window"):
		store.Kind = Window
		if named == JoinWindow || joinStore(s.Name) {
			store.Kind = JoinWindow
		}
	case named == OuterJoinList || named == ForeignKeySubscription:
		store.Kind = named
	}
	return store
}

// joinStore says whether a window store has the name of one of a join that the application named (StreamJoined, KStreamImplJoin).
func joinStore(name string) bool {
	return strings.HasSuffix(name, "-this-join-store") || strings.HasSuffix(name, "-other-join-store")
}

// heavier decides between two reports of one store, as while two versions of an application run: RocksDB before the heap, then by kind.
func heavier(a, b OpenStore) bool {
	if a.InMemory != b.InMemory {
		return b.InMemory
	}
	return cmp.Compare(a.Kind, b.Kind) > 0
}

// factsOf fills in what the clients say of the application as a whole.
func factsOf(g *Group, clients []podClient) {
	protocols, standbys, versions := map[Protocol]bool{}, map[int32]bool{}, map[string]bool{}
	for _, c := range clients {
		protocols[protocolOf(c)] = true
		standbys[standbysSetting(c)] = true
		if c.Version != "" {
			versions[c.Version] = true
		}
		g.Brokers = max(g.Brokers, c.Brokers)
		security, _ := c.setting("security.protocol")
		g.TLS = g.TLS || strings.HasSuffix(strings.ToUpper(security), "SSL")
	}
	if len(clients) == 0 {
		return
	}
	if g.Protocol = Classic; protocols[Streams] && !protocols[Classic] {
		g.Protocol = Streams
	}
	if g.Protocol == Classic {
		g.Standbys = new(slices.Max(slices.Collect(maps.Keys(standbys))))
	}
	all := slices.SortedFunc(maps.Keys(versions), compareVersions)
	if len(all) > 0 {
		g.VersionHint = all[0]
	}
	if len(all) > 1 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("its pods run different versions of Kafka Streams: %s", strings.Join(all, ", ")))
	}
	if len(protocols) > 1 {
		g.Warnings = append(g.Warnings, "its pods have different settings of group.protocol")
	}
	if len(standbys) > 1 {
		g.Warnings = append(g.Warnings, "its pods have different settings of num.standby.replicas; the largest counts")
	}
	slices.Sort(g.Warnings)
}

func protocolOf(c podClient) Protocol {
	if value, _ := c.setting("group.protocol"); strings.EqualFold(value, "streams") {
		return Streams
	}
	return Classic
}

// maxStandbys bounds num.standby.replicas: a larger value is not a number of copies.
const maxStandbys = 1_000

// standbysSetting returns num.standby.replicas, which is 0 by default (StreamsConfig).
func standbysSetting(c podClient) int32 {
	value, _ := c.setting("num.standby.replicas")
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0
	}
	return int32(min(max(n, 0), maxStandbys))
}

// compareVersions orders versions by their numbers, then by their text.
func compareVersions(a, b string) int {
	return cmp.Or(slices.Compare(versionNumbers(a), versionNumbers(b)), cmp.Compare(a, b))
}

// versionNumbers are the numbers at the beginning of each part; 0 where there is none.
func versionNumbers(version string) []int {
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if end >= 0 {
			part = part[:end]
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0
		}
		numbers = append(numbers, n)
	}
	return numbers
}
