// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"sync"
	"time"

	"streamweir.dev/streamweir/assignment"
)

// kafkaCluster is the one cluster of the operator's configuration.
const kafkaCluster = "prod"

// tasksOfGroup is the number of tasks of the group.
const tasksOfGroup = 12

// fakeGroups replaces the monitor of Kafka groups. A test sets the observation that the next pass reads.
type fakeGroups struct {
	changes chan string

	mu      sync.Mutex
	latest  assignment.Observation
	tracked map[string]assignment.Ref
	passes  int // started passes: each tracks or forgets its group once
	hurried int
}

func newFakeGroups() *fakeGroups {
	return &fakeGroups{changes: make(chan string), tracked: map[string]assignment.Ref{}}
}

// Cluster returns the only cluster, which permits groups whose names begin with orders.
func (g *fakeGroups) Cluster(name string) (assignment.ClusterConfig, bool) {
	return assignment.ClusterConfig{Name: kafkaCluster, AllowedNamespaces: []string{"*"}, AllowedGroups: []string{"orders*"}}, name == kafkaCluster
}

func (g *fakeGroups) Track(key string, ref assignment.Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tracked[key] = ref
	g.passes++
}

func (g *fakeGroups) Forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tracked, key)
	g.passes++
}

func (g *fakeGroups) Hurry(string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hurried++
}

func (g *fakeGroups) Latest(string) assignment.Observation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latest
}

func (g *fakeGroups) Changes() <-chan string { return g.changes }

// show sets the group's assignment after a successful poll; nil if it is unknown.
func (g *fakeGroups) show(group *assignment.Group) {
	observation := assignment.Observation{Group: group, At: time.Now()}
	if group != nil {
		observation.GroupAt = observation.At
		observation.State = group.State
	}
	g.set(observation)
}

// set sets the latest observation of the group.
func (g *fakeGroups) set(observation assignment.Observation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latest = observation
}

// fail makes the latest poll a failed one. The assignment stays.
func (g *fakeGroups) fail(class assignment.Class) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latest.Err = &assignment.Error{Class: class, Group: "orders"}
	g.latest.At = time.Now()
}

func (g *fakeGroups) startedPasses() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passes
}

func (g *fakeGroups) tracks(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, tracked := g.tracked[key]
	return tracked
}

// ordersGroup returns a streams group of twelve tasks with two key-value stores each, spread evenly over processes at these addresses. Each
// process has one stream thread.
func ordersGroup(addresses ...string) *assignment.Group {
	group := &assignment.Group{
		ApplicationID: "orders", Protocol: assignment.Streams, State: "Stable", Stable: true, Assigned: true, Brokers: 3,
		VersionHint: "4.4", Standbys: new(int32(0)),
		Subtopologies: []assignment.Subtopology{{
			ID: "0", Tasks: tasksOfGroup, Stateful: true,
			SourceTopics: []assignment.Topic{{Name: "orders", Partitions: tasksOfGroup}},
			Changelogs: []assignment.Changelog{
				{Topic: "orders-accounts-changelog", Store: "accounts", Partitions: tasksOfGroup, Kind: assignment.KeyValue},
				{Topic: "orders-totals-changelog", Store: "totals", Partitions: tasksOfGroup, Kind: assignment.KeyValue},
			},
		}},
	}
	for _, address := range slices.Sorted(slices.Values(addresses)) {
		group.Processes = append(group.Processes, assignment.Process{ID: "process-at-" + address, Host: address, Threads: 1})
	}
	for partition := range int32(tasksOfGroup) {
		p := &group.Processes[int(partition)%len(addresses)]
		p.Tasks.Active = append(p.Tasks.Active, assignment.Task{Subtopology: "0", Partition: partition})
	}
	return group
}

func (g *fakeGroups) hurriedCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hurried
}
