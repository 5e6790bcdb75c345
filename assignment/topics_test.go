// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKindOf(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]struct {
		store         string
		configs       map[string]string
		wantKind      StoreKind
		wantRetention time.Duration
	}{
		"compact is key-value":     {"s", map[string]string{"cleanup.policy": "compact"}, KeyValue, 0},
		"no configs are key-value": {"s", nil, KeyValue, 0},
		"compact and delete is a window store, with a day less": {"s",
			map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "172800000"}, Window, day},
		"the other order is the same": {"s",
			map[string]string{"cleanup.policy": "delete,compact", "retention.ms": "172800001"}, Window, day + time.Millisecond},
		"delete alone is a window store too (join windows of some versions)": {"s",
			map[string]string{"cleanup.policy": "delete", "retention.ms": "90000000"}, Window, time.Hour},
		"a retention of a day was set by the user": {"s",
			map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "86400000"}, Window, day},
		"an infinite retention is unknown": {"s",
			map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "-1"}, Window, 0},
		"a malformed retention is unknown": {"s",
			map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "x"}, Window, 0},
		"a retention longer than a Duration is limited": {"s",
			map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "9223372036854775807"},
			Window, time.Duration(9223372036854)*time.Millisecond - day},
		"a compaction lag is a versioned store": {"s",
			map[string]string{"cleanup.policy": "compact", "min.compaction.lag.ms": "90000000"}, Versioned, time.Hour},
		"a compaction lag of 0 is the broker's default": {"s",
			map[string]string{"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}, KeyValue, 0},
		"one side of a join, by its name": {"KSTREAM-JOINTHIS-0000000004-store",
			map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "90000000"}, JoinWindow, time.Hour},
		"the other side of a join": {"KSTREAM-JOINOTHER-0000000005-store",
			map[string]string{"cleanup.policy": "compact,delete"}, JoinWindow, 0},
		"one side of an outer join": {"KSTREAM-OUTERTHIS-0000000004-store",
			map[string]string{"cleanup.policy": "compact,delete"}, JoinWindow, 0},
		"the other side of an outer join": {"KSTREAM-OUTEROTHER-0000000005-store",
			map[string]string{"cleanup.policy": "compact,delete"}, JoinWindow, 0},
		"the list of an outer join": {"KSTREAM-OUTERSHARED-0000000004-store",
			map[string]string{"cleanup.policy": "compact"}, OuterJoinList, 0},
		"a suppress buffer": {"KTABLE-SUPPRESS-STATE-STORE-0000000007",
			map[string]string{"cleanup.policy": "compact"}, Suppress, 0},
		"the subscriptions of a foreign-key join": {"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010",
			map[string]string{"cleanup.policy": "compact"}, ForeignKeySubscription, 0},
		"an aggregation over windows, by its policy": {"KSTREAM-AGGREGATE-STATE-STORE-0000000003",
			map[string]string{"cleanup.policy": "compact,delete"}, Window, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind, retention := kindOf(c.store, c.configs)
			if kind != c.wantKind || retention != c.wantRetention {
				t.Errorf("got %s with %v, want %s with %v", kind, retention, c.wantKind, c.wantRetention)
			}
		})
	}
}

func TestStoreOf(t *testing.T) {
	for topic, want := range map[string]string{
		"app-counts-changelog":         "counts",
		"app-a-changelog-b-changelog":  "a-changelog-b",
		"app--changelog":               "",
		"app-changelog":                "",
		"app-counts-repartition":       "",
		"application-counts-changelog": "",
		"counts-changelog":             "",
	} {
		if store, ok := storeOf("app", topic); ok != (want != "") || (ok && store != want) {
			t.Errorf("%s: got %q (%v), want %q", topic, store, ok, want)
		}
	}
}

func TestChangelogTopicsExcludeGroupsWithLongerNames(t *testing.T) {
	c := catalog{
		topics: map[string]int32{"app-a-changelog": 1, "app-eu-a-changelog": 1, "app-us-a-changelog": 1, "apple-a-changelog": 1, "app-in": 1},
		groups: map[string]string{"app": "classic", "app-eu": "classic", "apple": "classic"},
	}
	if diff := cmp.Diff([]string{"app-a-changelog", "app-us-a-changelog"}, c.changelogTopics("app")); diff != "" {
		t.Errorf("changelog topics of app (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"app-eu-a-changelog"}, c.changelogTopics("app-eu")); diff != "" {
		t.Errorf("changelog topics of app-eu (-want +got):\n%s", diff)
	}
}

// changelogsOf returns changelogs of an application app, with partitions by store.
func changelogsOf(partitions int32, stores ...string) []Changelog {
	var changelogs []Changelog
	for _, s := range stores {
		changelogs = append(changelogs, Changelog{Topic: "app-" + s + "-changelog", Store: s, Partitions: partitions, Kind: KeyValue})
	}
	return changelogs
}

func TestAddChangelogs(t *testing.T) {
	cases := map[string]struct {
		subtopologies []Subtopology
		changelogs    []Changelog
		want          map[string]string // Subtopology by store, with "?" if assumed.
		wantWarnings  []string
	}{
		"by the number of partitions": {
			subtopologies: []Subtopology{{ID: "0", Tasks: 4}, {ID: "1", Tasks: 8}},
			changelogs:    slices.Concat(changelogsOf(4, "a"), changelogsOf(8, "b")),
			want:          map[string]string{"a": "0", "b": "1"},
		},
		"by the only one that is known to have state": {
			subtopologies: []Subtopology{{ID: "0", Tasks: 4}, {ID: "1", Tasks: 4, Stateful: true}},
			changelogs:    changelogsOf(4, "a"),
			want:          map[string]string{"a": "1"},
		},
		"by the repartition topic of the same name": {
			subtopologies: []Subtopology{{ID: "0", Tasks: 4}, {ID: "1", Tasks: 4, SourceTopics: []Topic{{"app-a-repartition", 4}}},
				{ID: "2", Tasks: 4}},
			changelogs: changelogsOf(4, "a"),
			want:       map[string]string{"a": "1"},
		},
		"else to the one with most stores": {
			subtopologies: []Subtopology{{ID: "0", Tasks: 4}, {ID: "1", Tasks: 4, SourceTopics: []Topic{{"app-a-repartition", 4}}}},
			changelogs:    changelogsOf(4, "a", "b", "c"),
			want:          map[string]string{"a": "1", "b": "1?", "c": "1?"},
			wantWarnings: []string{"2 changelog topics may belong to several subtopologies and count for the one with the most stores: " +
				"app-b-changelog, app-c-changelog"},
		},
		"else to the one with most source topics": {
			subtopologies: []Subtopology{{ID: "0", Tasks: 4, SourceTopics: []Topic{{"x", 4}}},
				{ID: "1", Tasks: 4, SourceTopics: []Topic{{"y", 4}, {"z", 4}}}},
			changelogs:   changelogsOf(4, "a"),
			want:         map[string]string{"a": "1?"},
			wantWarnings: []string{"1 changelog topics may belong to several subtopologies and count for the one with the most stores: app-a-changelog"},
		},
		"else to the first": {
			subtopologies: []Subtopology{{ID: "2", Tasks: 4}, {ID: "10", Tasks: 4}},
			changelogs:    changelogsOf(4, "a"),
			want:          map[string]string{"a": "2?"},
			wantWarnings:  []string{"1 changelog topics may belong to several subtopologies and count for the one with the most stores: app-a-changelog"},
		},
		"one that fits none is left over": {
			subtopologies: []Subtopology{{ID: "0", Tasks: 4}},
			changelogs:    changelogsOf(3, "a", "b", "c", "d", "e", "f", "g"),
			want:          map[string]string{},
			wantWarnings: []string{"7 changelog topics belong to no subtopology and are ignored as left over: " +
				"app-a-changelog, app-b-changelog, app-c-changelog, app-d-changelog, app-e-changelog and 2 more"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := Group{ApplicationID: "app", Subtopologies: c.subtopologies}
			g.addChangelogs(c.changelogs)
			got := map[string]string{}
			for _, s := range g.Subtopologies {
				for _, changelog := range s.Changelogs {
					got[changelog.Store] = s.ID + map[bool]string{true: "?"}[changelog.Assumed]
					if !s.Stateful {
						t.Errorf("subtopology %s has a store but is not Stateful", s.ID)
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantWarnings, g.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddChangelogsAssignsEachToAtMostOneSubtopology(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		g := Group{ApplicationID: "app"}
		for i := range 1 + r.Intn(5) {
			g.Subtopologies = append(g.Subtopologies, Subtopology{ID: string(rune('0' + i)), Tasks: 1 + r.Int31n(3), Stateful: r.Intn(2) == 0})
		}
		var changelogs []Changelog
		for i := range r.Intn(20) {
			changelogs = append(changelogs, changelogsOf(1+r.Int31n(4), strings.Repeat("s", i+1))...)
		}
		g.addChangelogs(changelogs)
		owned := map[string]bool{}
		for _, s := range g.Subtopologies {
			for _, c := range s.Changelogs {
				if owned[c.Topic] || c.Partitions != s.Tasks {
					t.Errorf("seed %d: changelog %+v in subtopology %s with %d tasks", seed, c, s.ID, s.Tasks)
				}
				owned[c.Topic] = true
			}
		}
		for _, c := range changelogs {
			fits := slices.ContainsFunc(g.Subtopologies, func(s Subtopology) bool { return s.Tasks == c.Partitions })
			if fits != owned[c.Topic] {
				t.Errorf("seed %d: changelog %+v has a candidate: %v, has an owner: %v", seed, c, fits, owned[c.Topic])
			}
		}
	}
}

func TestAddPartitions(t *testing.T) {
	g := Group{Subtopologies: []Subtopology{
		{ID: "0", Tasks: 2, SourceTopics: []Topic{{Name: "b"}, {Name: "a"}, {Name: "secret"}}, SinkTopics: []Topic{{Name: "sink"}}},
		{ID: "1", Tasks: 5, SourceTopics: []Topic{{Name: "declared", Partitions: 3}},
			Changelogs: []Changelog{{Topic: "c1"}, {Topic: "c2"}, {Topic: "c3", Partitions: 1}}},
	}}
	g.addPartitions(map[string]int32{"a": 4, "b": 6, "sink": 7, "c1": 9})
	want := Group{Subtopologies: []Subtopology{
		{ID: "0", Tasks: 6, SourceTopics: []Topic{{"a", 4}, {"b", 6}, {"secret", 0}}, SinkTopics: []Topic{{"sink", 7}}},
		{ID: "1", Tasks: 5, SourceTopics: []Topic{{"declared", 3}},
			Changelogs: []Changelog{{Topic: "c1", Partitions: 9}, {Topic: "c2", Partitions: 5}, {Topic: "c3", Partitions: 1}}},
	}, Warnings: []string{"1 source topics are missing, or the permission to describe them is: secret"}}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("subtopologies (-want +got):\n%s", diff)
	}
}

func TestCompareTasks(t *testing.T) {
	want := []Task{{"0", 0}, {"0", 1}, {"2", 0}, {"10", 0}, {"a", 0}, {"b__1", 0}}
	for seed := range int64(20) {
		got := slices.Clone(want)
		rand.New(rand.NewSource(seed)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		if slices.SortFunc(got, CompareTasks); !slices.Equal(got, want) {
			t.Errorf("seed %d: the order is %v, want %v", seed, got, want)
		}
	}
	if got := (Task{"nt__1", 2}).String(); got != "nt__1_2" {
		t.Errorf("the text of a task is %q", got)
	}
}
