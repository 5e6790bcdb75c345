// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kfakestreams

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"streamweir.dev/streamweir/assignment"
)

// latestOffset is the offset sum of an active task (Task.LATEST_OFFSET in Kafka Streams).
const latestOffset = -2

// App is a Kafka Streams application.
type App struct {
	// ID is the application.id.
	ID string
	// Protocol is the protocol of its group.
	Protocol assignment.Protocol
	// Subtopologies have the IDs 0, 1 and so on.
	Subtopologies []Subtopology
	// Threads is the number of threads of each instance, at least 1.
	Threads int
	// Standbys is the number of standbys of each stateful task (num.standby.replicas, or the group's config on the broker).
	Standbys int
	// Version is the version of SubscriptionInfo and AssignmentInfo, by default the latest.
	Version int32
	// Static gives each thread a group.instance.id.
	Static bool
}

// Subtopology is one subtopology of an [App].
type Subtopology struct {
	// Sources are its source topics.
	Sources []string
	// Partitions is the number of partitions of each source topic, and so the number of its tasks.
	Partitions int32
	// Stores are its stores. Each has a changelog.
	Stores []Store
}

// Store is a state store with a changelog.
type Store struct {
	// Name is the name of the store.
	Name string
	// Kind determines the configs of the changelog.
	Kind assignment.StoreKind
	// Retention is the retention of a window, join or versioned store.
	Retention time.Duration
}

// configs returns the configs of a changelog as set by Kafka Streams: with a day added to the retention of the store
// (InternalTopologyBuilder.createChangelogTopicConfig).
func (s Store) configs() map[string]string {
	topicRetention := strconv.FormatInt((s.Retention + 24*time.Hour).Milliseconds(), 10)
	switch s.Kind {
	case assignment.Window, assignment.JoinWindow:
		return map[string]string{"cleanup.policy": "compact,delete", "retention.ms": topicRetention}
	case assignment.Versioned:
		return map[string]string{"cleanup.policy": "compact", "min.compaction.lag.ms": topicRetention}
	default:
		return map[string]string{"cleanup.policy": "compact"}
	}
}

// changelog returns the name of the changelog topic of a store.
func (a App) changelog(s Store) string { return a.ID + "-" + s.Name + "-changelog" }

// check returns an error for an invalid app.
func (a App) check() error {
	switch {
	case a.ID == "":
		return errors.New("the app has no ID")
	case a.Protocol != assignment.Classic && a.Protocol != assignment.Streams:
		return fmt.Errorf("app %q: protocol %q is not %s or %s", a.ID, a.Protocol, assignment.Classic, assignment.Streams)
	case a.Threads < 1:
		return fmt.Errorf("app %q: threads are below 1", a.ID)
	}
	for i, s := range a.Subtopologies {
		if len(s.Sources) == 0 || s.Partitions < 1 {
			return fmt.Errorf("app %q: subtopology %d has no source topics with partitions", a.ID, i)
		}
	}
	return nil
}

// tasks returns all tasks, stateful ones first: they are assigned first, as by the assignors of Kafka Streams.
func (a App) tasks() []task {
	var tasks []task
	for _, stateful := range []bool{true, false} {
		for i, s := range a.Subtopologies {
			if (len(s.Stores) > 0) != stateful {
				continue
			}
			for p := range s.Partitions {
				tasks = append(tasks, task{assignment.Task{Subtopology: strconv.Itoa(i), Partition: p}, stateful})
			}
		}
	}
	return tasks
}

// task is a task with a flag for state.
type task struct {
	assignment.Task

	stateful bool
}

// instance is one running KafkaStreams client.
type instance struct {
	host    string
	process string
	garbled bool             // Its metadata is malformed.
	current assignment.Tasks // Its running tasks.
	target  assignment.Tasks // Its running tasks after the end of the rebalance.
}

// newInstance returns an instance. Its process ID is the same in every run.
func newInstance(app, host string, start int) *instance {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", app, host, start))
	digits := hex.EncodeToString(sum[:16])
	process := strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
	return &instance{host: host, process: process}
}

// group is an app with its running instances.
type group struct {
	App

	instances   []*instance
	starts      int
	rebalancing bool
}

// rebalance assigns all tasks again. An active task stays on its instance or moves to a standby, unless that instance already has its
// share. The others move to the instance with the fewest tasks. Standbys are assigned last.
func (g *group) rebalance() {
	g.rebalancing = true
	before := map[*instance]assignment.Tasks{}
	for _, in := range g.instances {
		before[in] = in.target
		in.target = assignment.Tasks{}
	}
	if len(g.instances) == 0 {
		return
	}
	all := g.tasks()
	share := (len(all) + len(g.instances) - 1) / len(g.instances)
	for _, t := range all {
		in := g.choose(t.Task, before, share)
		in.target.Active = append(in.target.Active, t.Task)
	}
	for _, t := range all {
		if t.stateful {
			g.addStandbys(t.Task)
		}
	}
	for _, in := range g.instances {
		slices.SortFunc(in.target.Active, assignment.CompareTasks)
		slices.SortFunc(in.target.Standby, assignment.CompareTasks)
	}
}

// choose returns the instance for an active task.
func (g *group) choose(t assignment.Task, before map[*instance]assignment.Tasks, share int) *instance {
	rank := func(in *instance) int {
		switch {
		case len(in.target.Active) >= share:
			return 3
		case slices.Contains(before[in].Active, t):
			return 0
		case slices.Contains(before[in].Standby, t):
			return 1
		}
		return 2
	}
	return slices.MinFunc(g.instances, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.target.Active), len(b.target.Active)), cmp.Compare(a.host, b.host))
	})
}

// addStandbys assigns the standbys of a task to the instances with the fewest tasks, of those without the task.
func (g *group) addStandbys(t assignment.Task) {
	for range min(g.Standbys, len(g.instances)-1) {
		free := slices.DeleteFunc(slices.Clone(g.instances), func(in *instance) bool {
			return slices.Contains(in.target.Active, t) || slices.Contains(in.target.Standby, t)
		})
		in := slices.MinFunc(free, func(a, b *instance) int {
			return cmp.Or(cmp.Compare(a.target.Len(), b.target.Len()), cmp.Compare(a.host, b.host))
		})
		in.target.Standby = append(in.target.Standby, t)
	}
}

// settle completes the rebalance.
func (g *group) settle() {
	g.rebalancing = false
	for _, in := range g.instances {
		in.current = in.target
	}
}

// thread returns the tasks of one thread of an instance: every n-th.
func (g *group) thread(tasks assignment.Tasks, thread int) assignment.Tasks {
	part := func(all []assignment.Task) []assignment.Task {
		var own []assignment.Task
		for i, t := range all {
			if i%g.Threads == thread {
				own = append(own, t)
			}
		}
		return own
	}
	return assignment.Tasks{Active: part(tasks.Active), Standby: part(tasks.Standby)}
}
