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

// newClient returns a client of an in-process cluster.
func newClient(t *testing.T, kafka *kfakestreams.Cluster) *assignment.Cluster {
	t.Helper()
	client, err := assignment.NewCluster(assignment.ClusterConfig{Name: "prod", BootstrapServers: kafka.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// describe describes one group and fails the test on an error.
func describe(t *testing.T, client *assignment.Cluster, group string) assignment.Group {
	t.Helper()
	result, ok := client.Describe(t.Context(), []string{group})[group]
	if !ok || result.Err != nil {
		t.Fatalf("describing %q: %v", group, result.Err)
	}
	return result.Group
}

// tasks returns tasks of one subtopology.
func tasks(subtopology string, partitions ...int32) []assignment.Task {
	var all []assignment.Task
	for _, p := range partitions {
		all = append(all, assignment.Task{Subtopology: subtopology, Partition: p})
	}
	return all
}

// ordersTopology is the description of the application orders by a cluster.
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

// anonymous clears the fields that vary between runs.
func anonymous(g assignment.Group) assignment.Group {
	for i := range g.Processes {
		g.Processes[i].ID, g.Processes[i].ClientID = "", ""
	}
	return g
}

// ordersProcesses are the three processes of the application orders.
func ordersProcesses() []assignment.Process {
	return []assignment.Process{
		{Host: "10.0.0.1", Threads: 2, Tasks: assignment.Tasks{Active: tasks("0", 0, 3), Standby: tasks("0", 1, 2)}},
		{Host: "10.0.0.2", Threads: 2, Tasks: assignment.Tasks{
			Active: append(tasks("0", 1), tasks("1", 0)...), Standby: append(tasks("0", 0), tasks("1", 1)...)}},
		{Host: "10.0.0.3", Threads: 2, Tasks: assignment.Tasks{
			Active: append(tasks("0", 2), tasks("1", 1)...), Standby: append(tasks("0", 3), tasks("1", 0)...)}},
	}
}

func TestClusterDescribesAClassicGroup(t *testing.T) {
	want := assignment.Group{
		ApplicationID: "orders", Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true,
		Processes: ordersProcesses(), Subtopologies: ordersTopology(), Standbys: new(int32(1)), VersionHint: "3.2", Brokers: 2,
	}
	client := newClient(t, newKafka(t, orders(assignment.Classic)))
	for range 2 { // The second time from the cache of the client.
		if diff := cmp.Diff(want, anonymous(describe(t, client, "orders"))); diff != "" {
			t.Errorf("the group differs (-want +got):\n%s", diff)
		}
	}
}

func TestClusterDescribesAStreamsGroup(t *testing.T) {
	for name, version := range map[string]int16{"of a broker 4.4 (v1)": 1, "of a broker 4.1 to 4.3 (v0)": 0} {
		t.Run(name, func(t *testing.T) {
			kafka := newKafka(t, orders(assignment.Streams))
			kafka.LimitStreamsDescribe(version)
			want := assignment.Group{
				ApplicationID: "orders", Protocol: assignment.Streams, State: "Stable", Stable: true, Assigned: true,
				Processes: ordersProcesses(), Subtopologies: ordersTopology(), Standbys: new(int32(1)),
				SessionTimeout: 45 * time.Second, VersionHint: "4.1", Brokers: 2,
			}
			if diff := cmp.Diff(want, anonymous(describe(t, newClient(t, kafka), "orders"))); diff != "" {
				t.Errorf("the group differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterFollowsALossOfAClassicGroup(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Classic))
	client := newClient(t, kafka)
	if err := kafka.Lose("orders", "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	during := describe(t, client, "orders")
	if during.Assigned || during.Stable || during.State != "PreparingRebalance" || len(during.Processes) > 0 {
		t.Errorf("during a rebalance the group is %+v, should not be Assigned", during)
	}
	if err := kafka.Settle("orders"); err != nil {
		t.Fatal(err)
	}
	after := describe(t, client, "orders")
	if !after.Assigned || len(after.Processes) != 2 || activeTasks(after) != 6 {
		t.Errorf("the group is %+v, want all 6 tasks on the two remaining instances", after)
	}
}

func TestClusterShowsTheTargetOfAStreamsGroupDuringALoss(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Streams))
	client := newClient(t, kafka)
	if err := kafka.Lose("orders", "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	during := describe(t, client, "orders")
	if !during.Assigned || during.Stable || during.State != "Reconciling" {
		t.Errorf("while it reconciles the group is %+v, should be Assigned", during)
	}
	var target int
	for _, p := range during.Processes {
		if p.Target == nil {
			t.Fatalf("process %s has no target", p.Host)
		}
		target += len(p.Target.Active)
	}
	if now := activeTasks(during); now != 4 || target != 6 {
		t.Errorf("%d current and %d target tasks are active, want 4 and 6", now, target)
	}
	if err := kafka.Settle("orders"); err != nil {
		t.Fatal(err)
	}
	for _, p := range describe(t, client, "orders").Processes {
		if p.Target != nil {
			t.Errorf("process %s of a settled group has the target %v, want none", p.Host, p.Target)
		}
	}
}

// activeTasks counts the active tasks of all processes.
func activeTasks(g assignment.Group) int {
	var n int
	for _, p := range g.Processes {
		n += len(p.Tasks.Active)
	}
	return n
}

func TestClusterDescribesGroupsOfBothProtocolsInOneBatch(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Classic))
	other := kfakestreams.App{ID: "orders-eu", Protocol: assignment.Streams, Threads: 1, Subtopologies: []kfakestreams.Subtopology{
		{Sources: []string{"eu-in"}, Partitions: 4, Stores: []kfakestreams.Store{{Name: "latest", Kind: assignment.KeyValue}}}}}
	if err := kafka.Add(other); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Join("orders-eu", "10.0.1.1"); err != nil {
		t.Fatal(err)
	}
	results := newClient(t, kafka).Describe(t.Context(), []string{"orders", "orders-eu", "missing"})
	if len(results) != 3 {
		t.Fatalf("%d results for three groups", len(results))
	}
	if diff := cmp.Diff(ordersTopology(), results["orders"].Group.Subtopologies); diff != "" {
		t.Errorf("the group orders, without topics of orders-eu, differs (-want +got):\n%s", diff)
	}
	if r := results["orders-eu"]; r.Err != nil || r.Group.Protocol != assignment.Streams || activeTasks(r.Group) != 4 {
		t.Errorf("orders-eu is %+v, want 4 tasks", r)
	}
	if class := assignment.ClassOf(results["missing"].Err); class != assignment.ClassUnknownGroup {
		t.Errorf("the class of a missing group is %q", class)
	}
}
