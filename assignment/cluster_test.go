// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/assignment/kfakestreams"
)

// orders is an application with two subtopologies of different sizes, all kinds of stores and a standby.
func orders(protocol assignment.Protocol) kfakestreams.App {
	return kfakestreams.App{
		ID:       "orders",
		Protocol: protocol,
		Threads:  2,
		Standbys: 1,
		Subtopologies: []kfakestreams.Subtopology{
			{Sources: []string{"orders-in", "prices"}, Partitions: 4, Stores: []kfakestreams.Store{
				{Name: "latest", Kind: assignment.KeyValue},
				{Name: "hourly", Kind: assignment.Window, Retention: 6 * time.Hour},
			}},
			{Sources: []string{"payments"}, Partitions: 2, Stores: []kfakestreams.Store{
				{Name: "history", Kind: assignment.Versioned, Retention: 12 * time.Hour},
			}},
		},
	}
}

// newKafka starts an in-process cluster with an application of three instances.
func newKafka(t *testing.T, app kfakestreams.App) *kfakestreams.Cluster {
	t.Helper()
	kafka, err := kfakestreams.New(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	if err := kafka.Add(app); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Join(app.ID, "10.0.0.1", "10.0.0.2", "10.0.0.3"); err != nil {
		t.Fatal(err)
	}
	return kafka
}

// newClient makes a client of an in-process cluster.
func newClient(t *testing.T, kafka *kfakestreams.Cluster) *assignment.Cluster {
	t.Helper()
	client, err := assignment.NewCluster(assignment.ClusterConfig{Name: "prod", BootstrapServers: kafka.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// describe describes one group, which must succeed.
func describe(t *testing.T, client *assignment.Cluster, group string) assignment.Group {
	t.Helper()
	result, ok := client.Describe(t.Context(), []string{group})[group]
	if !ok || result.Err != nil {
		t.Fatalf("describing %q: %v", group, result.Err)
	}
	return result.Group
}

// tasks makes tasks of one subtopology.
func tasks(subtopology string, partitions ...int32) []assignment.Task {
	var all []assignment.Task
	for _, p := range partitions {
		all = append(all, assignment.Task{Subtopology: subtopology, Partition: p})
	}
	return all
}

// ordersTopology is what a cluster shows of the application orders.
func ordersTopology() []assignment.Subtopology {
	return []assignment.Subtopology{
		{ID: "0", Tasks: 4, Stateful: true,
			SourceTopics: []assignment.Topic{{Name: "orders-in", Partitions: 4}, {Name: "prices", Partitions: 4}},
			Changelogs: []assignment.Changelog{
				{Topic: "orders-hourly-changelog", Store: "hourly", Partitions: 4, Kind: assignment.Window, Retention: 6 * time.Hour},
				{Topic: "orders-latest-changelog", Store: "latest", Partitions: 4, Kind: assignment.KeyValue},
			}},
		{ID: "1", Tasks: 2, Stateful: true,
			SourceTopics: []assignment.Topic{{Name: "payments", Partitions: 2}},
			Changelogs: []assignment.Changelog{
				{Topic: "orders-history-changelog", Store: "history", Partitions: 2, Kind: assignment.Versioned, Retention: 12 * time.Hour},
			}},
	}
}

func TestClusterDescribesAClassicGroupBeforeDuringAndAfterALoss(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Classic))
	client := newClient(t, kafka)

	before := describe(t, client, "orders")
	want := assignment.Group{
		ApplicationID: "orders", Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true,
		Subtopologies: ordersTopology(), Standbys: new(int32(1)), VersionHint: "3.2", Brokers: 2,
		Processes: []assignment.Process{
			{Host: "10.0.0.1", Threads: 2, Tasks: assignment.Tasks{Active: tasks("0", 0, 3), Standby: tasks("0", 1, 2)}},
			{Host: "10.0.0.2", Threads: 2, Tasks: assignment.Tasks{Active: append(tasks("0", 1), tasks("1", 0)...), Standby: append(tasks("0", 0), tasks("1", 1)...)}},
			{Host: "10.0.0.3", Threads: 2, Tasks: assignment.Tasks{Active: append(tasks("0", 2), tasks("1", 1)...), Standby: append(tasks("0", 3), tasks("1", 0)...)}},
		},
	}
	if diff := cmp.Diff(want, anonymous(before)); diff != "" {
		t.Errorf("the group is not as it was made (-want +got):\n%s", diff)
	}
}

// anonymous clears what is different in each run.
func anonymous(g assignment.Group) assignment.Group {
	for i := range g.Processes {
		g.Processes[i].ID, g.Processes[i].ClientID = "", ""
	}
	return g
}

func TestClusterDescribesAStreamsGroup(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Streams))
	got := describe(t, newClient(t, kafka), "orders")
	t.Logf("%+v", got)
}
