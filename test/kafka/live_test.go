// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kafka compares the results of the package assignment with the reports of the instances themselves, for a real broker
// and real instances of Kafka Streams.
package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

// The applications of the tests: 6 tasks with three stores each, and 4 tasks with one.
const (
	orderPartitions = 6
	clickPartitions = 4
	warmUps         = 2 // max.warmup.replicas, the default
)

func TestClassicGroup(t *testing.T) {
	broker := kafkatest.StartBroker(t)

	t.Run("loses an instance", func(t *testing.T) {
		app := newApplication(t, broker, kafkatest.Application{ID: "shop", Protocol: kafkatest.Classic})
		processes := startInstances(t, app, kafkatest.Instance{Name: "shop-0", Threads: 2},
			kafkatest.Instance{Name: "shop-1"}, kafkatest.Instance{Name: "shop-2"})
		app.WaitStable(t, processes...)
		check(t, app, processes)
		captureClassic(t, "classic-stable", app, processes)

		processes[2].Kill(t)
		captureUnstable(t, "classic-rebalancing", app)
		app.WaitStable(t, processes[:2]...)
		check(t, app, processes[:2])
		captureClassic(t, "classic-after-kill", app, processes[:2])
	})
	t.Run("has standbys and static members", func(t *testing.T) {
		app := newApplication(t, broker, kafkatest.Application{ID: "shop-standby", Protocol: kafkatest.Classic, StandbyReplicas: 1})
		processes := startInstances(t, app, static("shop-0"), static("shop-1"), static("shop-2"))
		app.WaitStable(t, processes...)
		group := check(t, app, processes)
		if group.Standbys == nil || *group.Standbys != 1 {
			t.Errorf("standbys = %v, want 1", group.Standbys)
		}
		captureClassic(t, "classic-standby", app, processes)
	})
	t.Run("warms up a new instance", func(t *testing.T) {
		app := newApplication(t, broker, kafkatest.Application{
			ID: "shop-warmup", Protocol: kafkatest.Classic,
			Configs: map[string]string{"acceptable.recovery.lag": "0"},
		})
		processes := startInstances(t, app, kafkatest.Instance{Name: "shop-0"})
		app.WaitStable(t, processes...)
		processes = append(processes, startInstances(t, app, kafkatest.Instance{Name: "shop-1"})...)
		app.WaitCopies(t, warmUps, processes...)
		group := check(t, app, processes)
		if got := countWarmUps(group); got != warmUps {
			t.Errorf("%d warm-ups, want %d: %+v", got, warmUps, group.Processes)
		}
		if group.NextRebalance.IsZero() {
			t.Error("no follow-up rebalance, want the probing rebalance that ends the warm-up")
		}
		captureClassic(t, "classic-warmup", app, processes)
	})
}

func TestStreamsGroup(t *testing.T) {
	broker := kafkatest.StartBroker(t, kafkatest.TopologyDescriptions)

	t.Run("loses an instance", func(t *testing.T) {
		app := newApplication(t, broker, kafkatest.Application{ID: "shop", Protocol: kafkatest.Streams})
		processes := startInstances(t, app, kafkatest.Instance{Name: "shop-0", Threads: 2},
			kafkatest.Instance{Name: "shop-1"}, kafkatest.Instance{Name: "shop-2"})
		app.WaitStable(t, processes...)
		check(t, app, processes)
		captureStreams(t, "streams-v0-stable", app, 0, false, processes)
		captureStreams(t, "streams-v1-stable", app, 1, false, processes)
		captureStreams(t, "streams-v1-topology", app, 1, true, processes)

		processes[2].Kill(t)
		captureUnstable(t, "streams-reconciling", app)
		app.WaitStable(t, processes[:2]...)
		check(t, app, processes[:2])
		captureStreams(t, "streams-after-kill", app, 1, false, processes[:2])
	})
	t.Run("has standbys and stops an instance", func(t *testing.T) {
		app := newApplication(t, broker, kafkatest.Application{ID: "shop-standby", Protocol: kafkatest.Streams, StandbyReplicas: 1})
		processes := startInstances(t, app, kafkatest.Instance{Name: "shop-0"},
			kafkatest.Instance{Name: "shop-1"}, kafkatest.Instance{Name: "shop-2"})
		app.WaitStable(t, processes...)
		group := check(t, app, processes)
		if group.Standbys == nil || *group.Standbys != 1 {
			t.Errorf("standbys = %v, want 1", group.Standbys)
		}
		captureStreams(t, "streams-standby", app, 1, false, processes)

		processes[2].Stop(t)
		app.WaitStable(t, processes[:2]...)
		check(t, app, processes[:2])
	})
}

func newApplication(t *testing.T, broker *kafkatest.Broker, app kafkatest.Application) *kafkatest.RunningApplication {
	t.Helper()
	app.OrderPartitions, app.ClickPartitions = orderPartitions, clickPartitions
	running := broker.CreateApplication(t, app)
	running.Produce(t, 500)
	return running
}

func static(name string) kafkatest.Instance {
	return kafkatest.Instance{Name: name, Configs: map[string]string{"group.instance.id": name}}
}

func startInstances(t *testing.T, app *kafkatest.RunningApplication, instances ...kafkatest.Instance) []*kafkatest.Process {
	t.Helper()
	processes := make([]*kafkatest.Process, 0, len(instances))
	for _, instance := range instances {
		processes = append(processes, app.StartInstance(t, instance))
	}
	return processes
}

// process is one process in a form that both sides can provide.
type process struct {
	ClientID string   `json:"clientId"`
	Threads  int      `json:"threads"`
	Static   bool     `json:"static"`
	Active   []string `json:"active"`
	// Copies are standbys and warm-ups together: an instance does not distinguish them.
	Copies []string `json:"copies"`
	// TargetActive is the target assignment of a streams group between two assignments; only captures have it.
	TargetActive []string `json:"targetActive,omitempty"`
}

// check describes the application's group through assignment until it equals the reports of the processes, which need a moment
// to start assigned tasks.
func check(t *testing.T, app *kafkatest.RunningApplication, processes []*kafkatest.Process) assignment.Group {
	t.Helper()
	var group assignment.Group
	kafkatest.Eventually(t, "assignment and the instances of "+app.ID+" agree", func(ctx context.Context) error {
		var err error
		if group, err = describe(ctx, app); err != nil {
			return err
		}
		if diff := cmp.Diff(reported(processes), observed(group)); diff != "" {
			return fmt.Errorf("processes (-the instances say, +assignment says):\n%s", diff)
		}
		return nil
	})
	if !group.Stable || !group.Assigned || group.Brokers != 1 || len(group.Warnings) > 0 {
		t.Errorf("group is stable %t, assigned %t, on %d brokers, warnings %q; want stable, assigned, 1, none",
			group.Stable, group.Assigned, group.Brokers, group.Warnings)
	}
	if diff := cmp.Diff(wantSubtopologies(app), group.Subtopologies, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("subtopologies (-want +got):\n%s", diff)
	}
	for _, p := range group.Processes {
		if p.Target != nil {
			t.Errorf("process %s has a target in a stable group: %+v", p.ClientID, *p.Target)
		}
	}
	return group
}

// reported is the state in the reports of the processes, by host.
func reported(processes []*kafkatest.Process) map[string]process {
	all := map[string]process{}
	for _, p := range processes {
		report := p.Report()
		all[p.Address.String()] = process{
			ClientID: p.Name, Threads: report.Threads, Static: p.Static,
			Active: report.Active, Copies: report.Standby,
		}
	}
	return all
}

// observed is the state of the processes in a group of assignment, by host.
func observed(group assignment.Group) map[string]process {
	all := map[string]process{}
	for _, p := range group.Processes {
		all[p.Host] = process{
			ClientID: p.ClientID, Threads: p.Threads, Static: p.Static,
			Active: names(p.Tasks.Active), Copies: names(p.Tasks.Standby, p.Tasks.WarmUp),
		}
	}
	return all
}

// names returns the task ids in the notation of Kafka Streams, sorted as text, never nil.
func names(lists ...[]assignment.Task) []string {
	all := []string{}
	for _, tasks := range lists {
		for _, task := range tasks {
			all = append(all, task.String())
		}
	}
	slices.Sort(all)
	return all
}

func describe(ctx context.Context, app *kafkatest.RunningApplication) (assignment.Group, error) {
	cluster, err := assignment.NewCluster(assignment.ClusterConfig{Name: "test", BootstrapServers: []string{app.Bootstrap()}})
	if err != nil {
		return assignment.Group{}, err
	}
	defer cluster.Close()
	result := cluster.Describe(ctx, []string{app.ID})[app.ID]
	return result.Group, result.Err
}

// wantSubtopologies is the topology of ShopTopology.java. Kafka Streams adds a day to the retention of windows in changelogs;
// 10 minutes are both sides of the join's window, 1 minute is the window of the clicks.
func wantSubtopologies(app *kafkatest.RunningApplication) []assignment.Subtopology {
	changelog := func(store string, partitions int32, kind assignment.StoreKind, retention time.Duration) assignment.Changelog {
		return assignment.Changelog{
			Topic: app.ID + "-" + store + "-changelog", Store: store,
			Partitions: partitions, Kind: kind, Retention: retention,
		}
	}
	return []assignment.Subtopology{
		{
			ID: "0", Tasks: orderPartitions, Stateful: true,
			SourceTopics: []assignment.Topic{
				{Name: app.ID + ".orders", Partitions: orderPartitions},
				{Name: app.ID + ".payments", Partitions: orderPartitions},
			},
			Changelogs: []assignment.Changelog{
				changelog("KSTREAM-JOINOTHER-0000000007-store", orderPartitions, assignment.JoinWindow, 10*time.Minute),
				changelog("KSTREAM-JOINTHIS-0000000006-store", orderPartitions, assignment.JoinWindow, 10*time.Minute),
				changelog("orders-by-customer", orderPartitions, assignment.KeyValue, 0),
			},
		},
		{
			ID: "1", Tasks: clickPartitions, Stateful: true,
			SourceTopics: []assignment.Topic{{Name: app.ID + ".clicks", Partitions: clickPartitions}},
			Changelogs: []assignment.Changelog{
				changelog("clicks-per-minute", clickPartitions, assignment.Window, time.Minute),
			},
		},
	}
}

func countWarmUps(group assignment.Group) int {
	n := 0
	for _, p := range group.Processes {
		n += len(p.Tasks.WarmUp)
	}
	return n
}
