// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// captured is a response of a real broker, with the tasks that the applications had at that time.
type captured struct {
	Kafka         string              `json:"kafka"`
	Protocol      string              `json:"protocol"`
	ApplicationID string              `json:"applicationId"`
	State         string              `json:"state"`
	Version       int16               `json:"version"`
	Classic       []byte              `json:"describeGroupsResponse"`
	Streams       []byte              `json:"streamsGroupDescribeResponse"`
	Want          map[string]instance `json:"want"` // By host.
}

// instance describes the tasks of one instance.
type instance struct {
	ClientID     string   `json:"clientId"`
	Threads      int      `json:"threads"`
	Static       bool     `json:"static"`
	Active       []string `json:"active"`
	Copies       []string `json:"copies"` // Standbys and warm-ups.
	TargetActive []string `json:"targetActive"`
}

// loadCaptured reads all captured responses, by the name of the file.
func loadCaptured(tb testing.TB) map[string]captured {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "captured", "*.json"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("there must be captured responses: %d files (%v)", len(paths), err)
	}
	all := map[string]captured{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		var c captured
		if err := json.Unmarshal(data, &c); err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = c
	}
	return all
}

// decode decodes a captured response.
func (c captured) decode(tb testing.TB) assignment.Group {
	tb.Helper()
	var group assignment.Group
	var err error
	switch c.Protocol {
	case "classic":
		response := kmsg.NewDescribeGroupsResponse()
		response.Version = c.Version
		if err := response.ReadFrom(c.Classic); err != nil || len(response.Groups) != 1 {
			tb.Fatalf("the response has %d groups (%v), want one", len(response.Groups), err)
		}
		group, err = assignment.DecodeClassic(response.Groups[0])
	case "streams":
		response := kmsg.NewStreamsGroupDescribeResponse()
		response.Version = c.Version
		if err := response.ReadFrom(c.Streams); err != nil || len(response.Groups) != 1 {
			tb.Fatalf("the response has %d groups (%v), want one", len(response.Groups), err)
		}
		group, err = assignment.DecodeStreams(response.Groups[0])
	default:
		tb.Fatalf("protocol %q must be classic or streams", c.Protocol)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return group
}

// texts returns tasks in the form of Kafka Streams.
func texts(tasks ...assignment.Task) []string {
	all := []string{}
	for _, t := range tasks {
		all = append(all, t.String())
	}
	return all
}

// instances returns the tasks of a group's processes, in the form of the captured files.
func instances(g assignment.Group) map[string]instance {
	all := map[string]instance{}
	for _, p := range g.Processes {
		copies := slices.Concat(p.Tasks.Standby, p.Tasks.WarmUp)
		slices.SortFunc(copies, assignment.CompareTasks)
		in := instance{ClientID: p.ClientID, Threads: p.Threads, Static: p.Static, Active: texts(p.Tasks.Active...), Copies: texts(copies...)}
		if p.Target != nil {
			in.TargetActive = texts(p.Target.Active...)
		}
		all[p.Host] = in
	}
	return all
}

func TestDecodeCapturedResponses(t *testing.T) {
	for name, c := range loadCaptured(t) {
		t.Run(name, func(t *testing.T) {
			g := c.decode(t)
			if g.ApplicationID != c.ApplicationID || g.State != c.State || g.Stable != (c.State == "Stable") || g.Assigned != (len(c.Want) > 0) {
				t.Errorf("the group is %q in state %q (stable: %v, assigned: %v), want %q in %q", g.ApplicationID, g.State, g.Stable,
					g.Assigned, c.ApplicationID, c.State)
			}
			got := instances(g)
			for host, want := range c.Want { // An equal target is left out.
				if slices.Equal(want.TargetActive, want.Active) {
					want.TargetActive = nil
					c.Want[host] = want
				}
			}
			if len(c.Want) == 0 {
				c.Want = map[string]instance{}
			}
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("the tasks differ from those of the instances (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarmUpsOfCapturedResponses(t *testing.T) {
	all := loadCaptured(t)
	warm := all["classic-warmup.json"].decode(t)
	if warm.NextRebalance.IsZero() || *warm.Standbys != 0 {
		t.Errorf("without standbys but with warm-ups there are %d standbys, the next rebalance is at %v",
			*warm.Standbys, warm.NextRebalance)
	}
	if got := texts(warm.Processes[1].Tasks.WarmUp...); !slices.Equal(got, []string{"0_0", "0_2"}) ||
		len(warm.Processes[1].Tasks.Standby) > 0 {
		t.Errorf("the warm-ups of the new instance are %v, want 0_0 and 0_2 and no standby", got)
	}
	standby := all["classic-standby.json"].decode(t)
	if !standby.NextRebalance.IsZero() || *standby.Standbys != 1 {
		t.Errorf("with one standby there are %d, the next rebalance is at %v", *standby.Standbys, standby.NextRebalance)
	}
	for _, p := range standby.Processes {
		if len(p.Tasks.WarmUp) > 0 || len(p.Tasks.Standby) == 0 {
			t.Errorf("process %s has %+v, want standbys only", p.Host, p.Tasks)
		}
	}
}

func TestCapturedTopologies(t *testing.T) {
	all := loadCaptured(t)
	store := func(name string, partitions int32, kind assignment.StoreKind, retention time.Duration) assignment.Changelog {
		return assignment.Changelog{Topic: "shop-" + name + "-changelog", Store: name, Partitions: partitions, Kind: kind, Retention: retention}
	}
	sources := func(names ...string) []assignment.Topic {
		var topics []assignment.Topic
		for _, name := range names {
			topics = append(topics, assignment.Topic{Name: "shop." + name})
		}
		return topics
	}
	want := []assignment.Subtopology{
		{ID: "0", Tasks: 6, Stateful: true, SourceTopics: sources("orders", "payments"), Changelogs: []assignment.Changelog{
			store("KSTREAM-JOINOTHER-0000000007-store", 6, assignment.JoinWindow, 10*time.Minute),
			store("KSTREAM-JOINTHIS-0000000006-store", 6, assignment.JoinWindow, 10*time.Minute),
			store("orders-by-customer", 6, assignment.KeyValue, 0),
		}},
		{ID: "1", Tasks: 4, Stateful: true, SourceTopics: sources("clicks"), Changelogs: []assignment.Changelog{
			store("clicks-per-minute", 4, assignment.Window, time.Minute),
		}},
	}
	for _, name := range []string{"streams-v0-stable.json", "streams-v1-stable.json", "streams-v1-topology.json"} {
		if diff := cmp.Diff(want, all[name].decode(t).Subtopologies); diff != "" {
			t.Errorf("%s: subtopologies (-want +got):\n%s", name, diff)
		}
	}
	for i := range want { // A classic group shows no stores.
		want[i].Changelogs = nil
	}
	if diff := cmp.Diff(want, all["classic-after-kill.json"].decode(t).Subtopologies); diff != "" {
		t.Errorf("subtopologies of the classic group (-want +got):\n%s", diff)
	}
}
