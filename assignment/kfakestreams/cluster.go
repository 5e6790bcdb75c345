// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kfakestreams is an in-process Kafka cluster with Kafka Streams applications in it, for tests and for the demo.
//
// The applications do not run: the cluster answers as a real one does while they run. Members of a classic group speak
// the bytes of the real protocol (SubscriptionInfo and AssignmentInfo); a streams group answers StreamsGroupDescribe at
// its coordinator. Instances can join and be lost, and the tasks move. Everything else is kfake's.
package kfakestreams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// The API keys that this package answers itself.
const (
	describeGroupsKey       = 15
	listGroupsKey           = 16
	apiVersionsKey          = 18
	describeConfigsKey      = 32
	streamsGroupDescribeKey = 89
)

// errRefused makes kfake close a connection.
var errRefused = errors.New("refused")

// newestDescribe is the newest version of StreamsGroupDescribe, that of Kafka 4.4.
const newestDescribe = 1

// Cluster is the in-process cluster.
type Cluster struct {
	*kfake.Cluster

	keys []kmsg.ApiVersionsResponseApiKey // What kfake itself can do.

	mu              sync.Mutex
	groups          map[string]*group
	others          map[string]string // Groups of other consumers, to type.
	failures        map[string]*kerr.Error
	configs         map[string]map[string]string // By changelog topic.
	hidden          map[string]bool              // Topics and groups whose configs may not be read.
	refused         map[int16]bool
	describeVersion int16
}

// New starts a cluster. [kfake.Cluster.Close] ends it.
func New(options ...kfake.Opt) (*Cluster, error) {
	fake, err := kfake.NewCluster(options...)
	if err != nil {
		return nil, fmt.Errorf("starting the in-process Kafka: %w", err)
	}
	c := &Cluster{
		Cluster:         fake,
		groups:          map[string]*group{},
		others:          map[string]string{},
		failures:        map[string]*kerr.Error{},
		configs:         map[string]map[string]string{},
		hidden:          map[string]bool{},
		refused:         map[int16]bool{},
		describeVersion: newestDescribe,
	}
	if err := c.learnVersions(); err != nil {
		fake.Close()
		return nil, err
	}
	for key, answer := range map[int16]func(kmsg.Request) kmsg.Response{
		describeGroupsKey:       c.describeGroups,
		listGroupsKey:           c.listGroups,
		apiVersionsKey:          c.apiVersions,
		describeConfigsKey:      c.describeConfigs,
		streamsGroupDescribeKey: c.describeStreams,
	} {
		fake.ControlKey(key, func(request kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			if c.refuses(key) {
				return nil, errRefused, true
			}
			response := answer(request)
			return response, nil, response != nil
		})
	}
	return c, nil
}

// learnVersions asks kfake what it can do, before the answer is extended. It does so in plain text, and so the cluster
// cannot be one that speaks TLS.
func (c *Cluster) learnVersions() error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		return fmt.Errorf("asking the in-process Kafka what it can do: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("asking the in-process Kafka what it can do: %w", err)
	}
	c.keys = answer.ApiKeys
	return nil
}

// Add makes an application's topics and its group, which has no members yet.
func (c *Cluster) Add(app App) error {
	if err := app.check(); err != nil {
		return err
	}
	for _, s := range app.Subtopologies {
		for _, topic := range s.Sources {
			if c.TopicInfo(topic) != nil {
				continue
			}
			if err := c.CreateTopic(topic, s.Partitions, nil); err != nil {
				return fmt.Errorf("app %q: creating topic %q: %w", app.ID, topic, err)
			}
		}
		for _, store := range s.Stores {
			if err := c.CreateTopic(app.changelog(store), s.Partitions, nil); err != nil {
				return fmt.Errorf("app %q: creating the changelog of store %q: %w", app.ID, store.Name, err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[app.ID] = &group{App: app}
	for _, s := range app.Subtopologies {
		for _, store := range s.Stores {
			c.configs[app.changelog(store)] = store.configs()
		}
	}
	return nil
}

// AddOther makes a group that is none of Kafka Streams: of type "classic" with the assignor "range", or of type
// "consumer" or "share".
func (c *Cluster) AddOther(name, groupType string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others[name] = groupType
}

// Join starts an instance at each host, and deals the tasks. The group is stable after it.
func (c *Cluster) Join(app string, hosts ...string) error {
	return c.change(app, func(g *group) error {
		for _, host := range hosts {
			g.starts++
			g.instances = append(g.instances, newInstance(app, host, g.starts))
		}
		g.rebalance()
		g.settle()
		return nil
	})
}

// Lose ends the instances at a host. The group rebalances until [Cluster.Settle].
func (c *Cluster) Lose(app, host string) error {
	return c.change(app, func(g *group) error {
		left := slices.DeleteFunc(slices.Clone(g.instances), func(in *instance) bool { return in.host == host })
		if len(left) == len(g.instances) {
			return fmt.Errorf("app %q has no instance at %q", app, host)
		}
		g.instances = left
		g.rebalance()
		return nil
	})
}

// Settle ends a rebalance: the group is stable, and runs what was decided.
func (c *Cluster) Settle(app string) error {
	return c.change(app, func(g *group) error { g.settle(); return nil })
}

// Restart restarts all instances of an application with another protocol.
func (c *Cluster) Restart(app string, protocol assignment.Protocol) error {
	return c.change(app, func(g *group) error {
		g.Protocol = protocol
		for i, in := range g.instances {
			g.starts++
			g.instances[i] = newInstance(app, in.host, g.starts)
		}
		g.rebalance()
		g.settle()
		return nil
	})
}

// Garble makes the members at a host of a classic group send bytes that nobody can read.
func (c *Cluster) Garble(app, host string) error {
	return c.change(app, func(g *group) error {
		for _, in := range g.instances {
			in.garbled = in.garbled || in.host == host
		}
		return nil
	})
}

// Fail makes the coordinator answer with an error when the group is described; nil ends that.
func (c *Cluster) Fail(group string, with *kerr.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, group)
	if with != nil {
		c.failures[group] = with
	}
}

// HideConfigs denies the right to read the configs of a topic or group.
func (c *Cluster) HideConfigs(resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden[resource] = true
}

// Refuse closes each connection that sends a request of one of the kinds that this package answers: DescribeGroups,
// ListGroups, ApiVersions, DescribeConfigs, StreamsGroupDescribe.
func (c *Cluster) Refuse(key kmsg.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[key.Int16()] = true
}

// refuses says whether requests of a kind are refused.
func (c *Cluster) refuses(key int16) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused[key]
}

// LimitStreamsDescribe sets the newest version of StreamsGroupDescribe: 1 as in Kafka 4.4, 0 as in 4.1 to 4.3, -1 for
// older brokers that do not know it.
func (c *Cluster) LimitStreamsDescribe(version int16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.describeVersion = version
}

// change changes an application's group.
func (c *Cluster) change(app string, do func(*group) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[app]
	if g == nil {
		return fmt.Errorf("there is no app %q", app)
	}
	return do(g)
}
