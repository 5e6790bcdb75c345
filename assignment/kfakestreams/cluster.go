// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kfakestreams is an in-process Kafka cluster with Kafka Streams applications, for tests and for the demo.
//
// The applications do not run: the cluster responds like a real one while they run. Members of a classic group send the messages of the
// real protocol (SubscriptionInfo and AssignmentInfo); the coordinator of a streams group implements StreamsGroupDescribe. Instances can
// join and leave, and their tasks move. kfake implements everything else.
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

// API keys of the requests that this package handles.
const (
	describeGroupsKey       = 15
	listGroupsKey           = 16
	apiVersionsKey          = 18
	describeConfigsKey      = 32
	streamsGroupDescribeKey = 89
)

// errRefused closes a connection of kfake.
var errRefused = errors.New("refused")

// newestDescribe is the newest version of StreamsGroupDescribe, from Kafka 4.4.
const newestDescribe = 1

// Cluster is the in-process cluster.
type Cluster struct {
	*kfake.Cluster

	keys []kmsg.ApiVersionsResponseApiKey // The versions of kfake itself.

	mu              sync.Mutex
	groups          map[string]*group
	others          map[string]string // Types of groups of other consumers, by name.
	failures        map[string]*kerr.Error
	configs         map[string]map[string]string // By changelog topic.
	hidden          map[string]bool              // Topics and groups without permission to read their configs.
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
	if err := c.readVersions(); err != nil {
		fake.Close()
		return nil, err
	}
	for key, handle := range map[int16]func(kmsg.Request) kmsg.Response{
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
			response := handle(request)
			return response, nil, response != nil
		})
	}
	return c, nil
}

// readVersions reads the API versions of kfake before any are added. It connects in plain text, so the cluster cannot use TLS.
func (c *Cluster) readVersions() error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		return fmt.Errorf("reading the API versions of the in-process Kafka: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	response, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("reading the API versions of the in-process Kafka: %w", err)
	}
	c.keys = response.ApiKeys
	return nil
}

// Add creates the topics of an application and its group without members.
func (c *Cluster) Add(app App) error {
	if err := app.check(); err != nil {
		return err
	}
	for _, subtopology := range app.Subtopologies {
		for _, topic := range subtopology.Sources {
			if c.TopicInfo(topic) != nil {
				continue
			}
			if err := c.CreateTopic(topic, subtopology.Partitions, nil); err != nil {
				return fmt.Errorf("app %q: creating topic %q: %w", app.ID, topic, err)
			}
		}
		for _, store := range subtopology.Stores {
			if err := c.CreateTopic(app.changelog(store), subtopology.Partitions, nil); err != nil {
				return fmt.Errorf("app %q: creating the changelog of store %q: %w", app.ID, store.Name, err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[app.ID] = &group{App: app}
	for _, subtopology := range app.Subtopologies {
		for _, store := range subtopology.Stores {
			c.configs[app.changelog(store)] = store.configs()
		}
	}
	return nil
}

// AddOther creates a group of other consumers: of type "classic" with the assignor "range", or of type "consumer" or "share".
func (c *Cluster) AddOther(name, groupType string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others[name] = groupType
}

// Join starts an instance at each host and assigns the tasks. The group is stable afterwards.
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

// Settle ends a rebalance: the group is stable with the new assignment.
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

// Garble makes the metadata of the members at a host of a classic group malformed.
func (c *Cluster) Garble(app, host string) error {
	return c.change(app, func(g *group) error {
		for _, in := range g.instances {
			in.garbled = in.garbled || in.host == host
		}
		return nil
	})
}

// Fail makes the description of a group return an error; nil ends that.
func (c *Cluster) Fail(group string, with *kerr.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, group)
	if with != nil {
		c.failures[group] = with
	}
}

// HideConfigs denies the permission to read the configs of a topic or group.
func (c *Cluster) HideConfigs(resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden[resource] = true
}

// Refuse closes each connection with a request of one of these kinds: DescribeGroups, ListGroups, ApiVersions, DescribeConfigs,
// StreamsGroupDescribe.
func (c *Cluster) Refuse(key kmsg.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[key.Int16()] = true
}

// refuses returns whether requests of a kind are refused.
func (c *Cluster) refuses(key int16) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused[key]
}

// LimitStreamsDescribe sets the newest version of StreamsGroupDescribe: 1 as in Kafka 4.4, 0 as in 4.1 to 4.3, -1 for older brokers without
// it.
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
		return fmt.Errorf("unknown app %q", app)
	}
	return do(g)
}
