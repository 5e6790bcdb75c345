// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"streamweir.dev/streamweir/agent/report"
)

// reportedSubtopologies returns the subtopologies of all tasks of the clients, and the known ones.
func reportedSubtopologies(clients []podClient, known []Subtopology) []Subtopology {
	tasks := map[string]int32{}
	for _, subtopology := range known {
		tasks[subtopology.ID] = subtopology.Tasks
	}
	stores := openStores{}
	for _, client := range clients {
		for _, thread := range client.Threads {
			for _, reported := range thread.Tasks {
				task, ok := parseTask(reported.ID)
				if !ok {
					continue
				}
				tasks[task.Subtopology] = max(tasks[task.Subtopology], task.Partition+1)
				for _, store := range reported.Stores {
					stores.add(task.Subtopology, openStore(store))
				}
			}
		}
	}
	stores.addMissing(known)
	var all []Subtopology
	for _, id := range slices.SortedFunc(maps.Keys(tasks), compareSubtopologies) {
		subtopology := Subtopology{ID: id, Tasks: tasks[id], Stateful: len(stores[id]) > 0}
		for _, name := range slices.Sorted(maps.Keys(stores[id])) {
			subtopology.Stores = append(subtopology.Stores, stores[id][name])
		}
		all = append(all, subtopology)
	}
	return all
}

// openStores are stores by subtopology and name.
type openStores map[string]map[string]OpenStore

// add adds a store. Of several reports of a store the heavier one counts.
func (s openStores) add(subtopology string, store OpenStore) {
	if s[subtopology] == nil {
		s[subtopology] = map[string]OpenStore{}
	}
	if old, ok := s[subtopology][store.Name]; !ok || heavier(store, old) {
		s[subtopology][store.Name] = store
	}
}

// addMissing adds the known stores that no client has open. For the others, the report of an open store is better.
func (s openStores) addMissing(known []Subtopology) {
	for _, subtopology := range known {
		for _, store := range subtopology.Stores {
			if _, ok := s[subtopology.ID][store.Name]; !ok {
				s.add(subtopology.ID, store)
			}
		}
	}
}

// reportedGlobalStores returns the names of the clients' global stores, sorted.
func reportedGlobalStores(clients []podClient) []string {
	names := map[string]bool{}
	for _, client := range clients {
		for _, store := range client.GlobalStores {
			names[store.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// openStore converts a reported store. The scopes are those of the store suppliers (metricsScope) of Kafka Streams 2.4 to 4.4, followed by
// "-state".
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

// joinStore returns whether the name of a window store is that of a join with a name of the application (StreamJoined, KStreamImplJoin).
func joinStore(name string) bool {
	return strings.HasSuffix(name, "-this-join-store") || strings.HasSuffix(name, "-other-join-store")
}

// heavier returns whether the first of two reports of one store weighs more. RocksDB comes before the heap, then the kind decides. Reports
// differ while two versions of an application run.
func heavier(a, b OpenStore) bool {
	if a.InMemory != b.InMemory {
		return b.InMemory
	}
	return cmp.Compare(a.Kind, b.Kind) > 0
}

// addFacts adds the facts on the whole application to the group.
func addFacts(g *Group, clients []podClient) {
	if len(clients) == 0 {
		return
	}
	protocols := map[Protocol]bool{}
	standbys := map[int32]bool{}
	versions := map[string]bool{}
	for _, client := range clients {
		protocols[protocolOf(client)] = true
		standbys[standbysSetting(client)] = true
		if client.Version != "" {
			versions[client.Version] = true
		}
		g.Brokers = max(g.Brokers, client.Brokers)
		security, _ := client.setting("security.protocol")
		g.TLS = g.TLS || strings.HasSuffix(strings.ToUpper(security), "SSL")
	}
	g.Protocol = Classic
	if protocols[Streams] && !protocols[Classic] {
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
		g.addWarning("the pods run different versions of Kafka Streams: " + strings.Join(all, ", "))
	}
	if len(protocols) > 1 {
		g.addWarning("the pods have different settings of group.protocol")
	}
	if len(standbys) > 1 {
		g.addWarning("the pods have different settings of num.standby.replicas; the largest counts")
	}
}

func protocolOf(client podClient) Protocol {
	if value, _ := client.setting("group.protocol"); strings.EqualFold(value, "streams") {
		return Streams
	}
	return Classic
}

// maxStandbys bounds num.standby.replicas: a larger value is not a number of copies.
const maxStandbys = 1_000

// standbysSetting returns num.standby.replicas, which is 0 by default (StreamsConfig).
func standbysSetting(client podClient) int32 {
	value, _ := client.setting("num.standby.replicas")
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

// versionNumbers returns the number at the beginning of each part, 0 if there is none.
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
