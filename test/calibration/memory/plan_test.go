// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/memplan"
)

func TestEachScenarioHasAPlanThatFits(t *testing.T) {
	all := append(scenarios(), fragmentation(), throughputScenario())
	names := map[string]bool{}
	for i := range all {
		s := &all[i]
		t.Run(s.Name, func(t *testing.T) {
			if names[s.Name] {
				t.Error("duplicate name")
			}
			names[s.Name] = true
			plan, err := planned(s)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Load.Total != s.Tasks*len(must(s.subtopologies())) {
				t.Errorf("the plan is for %d tasks", plan.Load.Total)
			}
			for _, line := range plan.Lines {
				if line.Region == memplan.RegionBlockCache && line.Bound != s.Cache {
					t.Errorf("the cache is %v, want %v", line.Bound, s.Cache)
				}
			}
		})
	}
}

func must(subtopologies []memplan.Subtopology, _ []memplan.Store) []memplan.Subtopology {
	return subtopologies
}

func TestTheCascadePlanCoversMoreThanItsShare(t *testing.T) {
	s := cascadeScenario()
	plan, err := cascadePlan(&s)
	if err != nil {
		t.Fatal(err)
	}
	if share := s.Tasks / s.Instances; plan.Load.Active <= share {
		t.Errorf("the plan is for %d tasks, want more than the share of %d", plan.Load.Active, share)
	}
	if plan.Heap != cascadeHeap || plan.Limit != cascadeLimit {
		t.Errorf("heap %v, limit %v", plan.Heap, plan.Limit)
	}
}

func TestPlanFilesAreAsTheOperatorWritesThem(t *testing.T) {
	plan := &memplan.Plan{Limit: 100, Heap: 40, Configs: []memplan.Config{
		{Kind: memplan.JVMOption, Name: "-XX:+IgnoreUnrecognizedVMOptions"},
		{Kind: memplan.JVMOption, Name: "-XX:MaxRAM", Value: "100"},
		{Kind: memplan.Property, Name: "rocksdb.cache.bytes", Value: "20"},
	}}
	folder := t.TempDir()
	if err := writePlan(folder, plan); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"jvm.options":        "-XX:+IgnoreUnrecognizedVMOptions\n-XX:MaxRAM=100\n",
		"plan.v1.properties": "limit.bytes=100\nheap.bytes=40\nrocksdb.cache.bytes=20\n",
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if revision, err := os.ReadFile(filepath.Join(folder, planfile.RevisionKey)); err != nil || len(revision) != 16 {
		t.Errorf("revision %q: %v", revision, err)
	}
}

func TestProcessorTimeIsReadFromStat(t *testing.T) {
	tests := map[string]struct {
		stat string
		want time.Duration
	}{
		"a name with spaces": {"7 (a ) name) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20", 2 * time.Second},
		"too short":          {"7 (java) S 1 2", 0},
		"no numbers":         {"7 (java) S 1 2 3 4 5 6 7 8 9 10 x 50 0", 0},
		"nothing":            {"", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parseCPUTime(test.stat); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestFieldsOfACgroupFile(t *testing.T) {
	got := fields([]byte("total_rss 12\ntotal_cache 9\nbroken\nname x\nunder_oom 0\n"))
	want := map[string]int64{"total_rss": 12, "total_cache": 9, "under_oom": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeysHaveTheirLength(t *testing.T) {
	for _, i := range []int{0, 7, 480_000} {
		if key := keyOf(i); len(key) != keyBytes {
			t.Errorf("key %q of %d", key, i)
		}
	}
}

func TestArgumentsNameTheTopics(t *testing.T) {
	s, err := find("exactly-once")
	if err != nil {
		t.Fatal(err)
	}
	got := s.arguments("app")
	if got["app.left"] != "app.left" || got["app.output"] != "app.output" {
		t.Errorf("arguments %v", got)
	}
	if _, err := find("nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("an unknown scenario: %v", err)
	}
}
