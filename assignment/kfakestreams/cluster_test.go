// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kfakestreams

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// app is an application with a stateful and a stateless subtopology.
func app(standbys int) App {
	return App{ID: "app", Protocol: assignment.Classic, Threads: 2, Standbys: standbys, Subtopologies: []Subtopology{
		{Sources: []string{"in"}, Partitions: 7, Stores: []Store{{Name: "store", Kind: assignment.KeyValue}}},
		{Sources: []string{"other"}, Partitions: 5},
	}}
}

// check checks that a settled group runs each task once, with as many standbys as possible and at most one copy per instance.
func check(t *testing.T, g *group) {
	t.Helper()
	active, standbys := map[assignment.Task]int{}, map[assignment.Task]int{}
	for _, in := range g.instances {
		for _, task := range in.current.Active {
			active[task]++
			if slices.Contains(in.current.Standby, task) {
				t.Errorf("%s has the active task and a standby of %v", in.host, task)
			}
		}
		for _, task := range in.current.Standby {
			standbys[task]++
		}
	}
	for _, task := range g.tasks() {
		want := 0
		if task.stateful {
			want = min(g.Standbys, len(g.instances)-1)
		}
		if active[task.Task] != 1 || standbys[task.Task] != want {
			t.Errorf("task %v is active %d times with %d standbys, want once with %d", task.Task, active[task.Task],
				standbys[task.Task], want)
		}
	}
	if len(active) != len(g.tasks()) {
		t.Errorf("%d tasks are active, want %d", len(active), len(g.tasks()))
	}
}

func TestRebalancesRunEachTaskOnce(t *testing.T) {
	for seed := range int64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(seed))
			g := &group{App: app(r.Intn(3))}
			for i := range 30 {
				if len(g.instances) > 1 && r.Intn(2) == 0 {
					g.instances = slices.Delete(g.instances, 0, 1)
				} else {
					g.instances = append(g.instances, newInstance("app", fmt.Sprint("host-", i), i))
				}
				g.rebalance()
				g.settle()
				check(t, g)
				share := (12 + len(g.instances) - 1) / len(g.instances)
				for _, in := range g.instances {
					if len(in.current.Active) > share {
						t.Errorf("%s runs %d tasks, want at most %d", in.host, len(in.current.Active), share)
					}
				}
			}
		})
	}
}

func TestALossKeepsTheOtherTasksInPlace(t *testing.T) {
	g := &group{App: app(1)}
	for _, host := range []string{"a", "b", "c"} {
		g.instances = append(g.instances, newInstance("app", host, 1))
	}
	g.rebalance()
	g.settle()
	before := map[string][]assignment.Task{}
	for _, in := range g.instances {
		before[in.host] = in.current.Active
	}
	g.instances = g.instances[1:]
	g.rebalance()
	g.settle()
	for _, in := range g.instances {
		for _, task := range before[in.host] {
			if !slices.Contains(in.current.Active, task) {
				t.Errorf("%s has lost task %v", in.host, task)
			}
		}
	}
}

func TestErrorsOfInvalidCalls(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Add(app(0)); err != nil {
		t.Fatal(err)
	}
	without := func(change func(*App)) error {
		a := app(0)
		change(&a)
		return c.Add(a)
	}
	for want, err := range map[string]error{
		"the app has no ID":                         without(func(a *App) { a.ID = "" }),
		`protocol "" is not Classic or Streams`:     without(func(a *App) { a.Protocol = "" }),
		"threads are below 1":                       without(func(a *App) { a.Threads = 0 }),
		"subtopology 1 has no source topics":        without(func(a *App) { a.Subtopologies[1].Sources = nil }),
		"subtopology 0 has no source topics":        without(func(a *App) { a.Subtopologies[0].Partitions = 0 }),
		"creating the changelog of store \"store\"": c.Add(app(0)),
		`unknown app "missing"`:                     c.Join("missing", "a"),
		`app "app" has no instance at "a"`:          c.Lose("app", "a"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, should contain %q", err, want)
		}
	}
}

func TestOtherRequestsAreLeftToKfake(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CreateTopic("plain", 1, map[string]string{"retention.ms": "1234"}); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "plain", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if records := client.PollFetches(t.Context()).Records(); len(records) != 1 || string(records[0].Value) != "x" {
		t.Errorf("the received records are %v", records)
	}
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kmsg.ConfigResourceTypeTopic, "plain", []string{"retention.ms"}
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(t.Context(), client)
	if err != nil || len(response.Resources) != 1 || len(response.Resources[0].Configs) != 1 ||
		*response.Resources[0].Configs[0].Value != "1234" {
		t.Errorf("the configs of the topic are %+v (%v)", response, err)
	}
}
