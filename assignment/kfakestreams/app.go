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
	"time"

	"streamweir.dev/streamweir/assignment"
)

// latestOffset is the offset sum of an active task (Task.LATEST_OFFSET in Kafka Streams).
const latestOffset = -2

// App is a Kafka Streams application.
type App struct {
	// ID is the application.id.
	ID string
	// Protocol of its group.
	Protocol assignment.Protocol
	// Subtopologies, with the IDs 0, 1 and so on.
	Subtopologies []Subtopology
	// Threads of each instance; at least 1.
	Threads int
	// Standbys of each stateful task (num.standby.replicas, or the group's config on the broker).
	Standbys int
	// Version of SubscriptionInfo and AssignmentInfo; 0: the latest.
	Version int32
	// Static gives each thread a group.instance.id.
	Static bool
}

// Subtopology is one subtopology of an [App].
type Subtopology struct {
	// Sources are its source topics, and the number of partitions of each.
	Sources []string
	// Partitions of each source topic, and so the number of its tasks.
	Partitions int32
	// Stores with a changelog.
	Stores []Store
}

// Store is a state store with a changelog.
type Store struct {
	// Name of the store.
	Name string
	// Kind decides on the changelog's configs.
	Kind assignment.StoreKind
	// Retention of a window, join or versioned store.
	Retention time.Duration
}

// configs gives a changelog's configs as Kafka Streams sets them: a day more than the store's retention
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

// changelog gives the name of a store's changelog topic.
func (a App) changelog(s Store) string { return a.ID + "-" + s.Name + "-changelog" }

// check says what is wrong with an app.
func (a App) check() error {
	switch {
	case a.ID == "":
		return errors.New("an app must have an ID")
	case a.Protocol != assignment.Classic && a.Protocol != assignment.Streams:
		return fmt.Errorf("app %q: protocol %q must be %s or %s", a.ID, a.Protocol, assignment.Classic, assignment.Streams)
	case a.Threads < 1:
		return fmt.Errorf("app %q: threads must be at least 1", a.ID)
	}
	for i, s := range a.Subtopologies {
		if len(s.Sources) == 0 || s.Partitions < 1 {
			return fmt.Errorf("app %q: subtopology %d must have source topics with partitions", a.ID, i)
		}
	}
	return nil
}

// tasks gives all tasks, the stateful ones first: they are dealt first, as by the real assignors.
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

// task is a task that knows whether it has state.
type task struct {
	assignment.Task

	stateful bool
}

// instance is one running KafkaStreams client.
type instance struct {
	host    string
	process string
	garbled bool
	// current is what it runs; target is what it is to run, and is current once the group has settled.
	current, target assignment.Tasks
}

// newInstance gives an instance a process ID that is the same in every run.
func newInstance(app, host string, start int) *instance {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", app, host, start))
	h := hex.EncodeToString(sum[:16])
	return &instance{host: host, process: h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]}
}

// group is an app with its running instances.
type group struct {
	App

	instances   []*instance
	starts      int
	rebalancing bool
}

// rebalance deals all tasks anew: an active task stays where it is, or goes to a copy, as long as that instance has not
// its share yet; the others go to those with least. Then come the standbys.
func (g *group) rebalance() {
	g.rebalancing = true
	before := map[*instance]assignment.Tasks{}
	for _, in := range g.instances {
		before[in], in.target = in.target, assignment.Tasks{}
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

// choose gives the instance for an active task.
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

// addStandbys puts a task's standbys on the instances with least tasks that do not have it.
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

// settle makes what was decided true.
func (g *group) settle() {
	g.rebalancing = false
	for _, in := range g.instances {
		in.current = in.target
	}
}

// thread gives the tasks of one of an instance's threads: every n-th.
func (g *group) thread(tasks assignment.Tasks, thread int) assignment.Tasks {
	deal := func(all []assignment.Task) []assignment.Task {
		var mine []assignment.Task
		for i, t := range all {
			if i%g.Threads == thread {
				mine = append(mine, t)
			}
		}
		return mine
	}
	return assignment.Tasks{Active: deal(tasks.Active), Standby: deal(tasks.Standby)}
}
