// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// catalogAge is after which time the list of a cluster's topics is read again: topics seldom come or grow while an
	// application runs, as its number of tasks is fixed with them.
	catalogAge = 5 * time.Minute
	// catalogPause is the least time between two readings, when groups show something new.
	catalogPause = 10 * time.Second
	// streamsGroupDescribe is the API key of StreamsGroupDescribe (KIP-1071).
	streamsGroupDescribe = 89
)

// catalog is what a cluster has: its topics and their partitions, its groups, its brokers and what they can do.
type catalog struct {
	readAt        time.Time
	topics        map[string]int32
	groups        map[string]string // Group to type, in small letters; "" from brokers before ListGroups v5.
	brokers       int
	streamsGroups bool
}

// appTopics are an application's changelog topics, for as long as catalog and subtopologies are the same.
type appTopics struct {
	catalogAt  time.Time
	shape      string
	changelogs []Changelog
	unread     int // Topics whose configs could not be read.
}

// readCatalog gives the catalog, read anew if it is older than an age.
func (c *Cluster) readCatalog(ctx context.Context, age time.Duration) (*catalog, error) {
	if c.catalog != nil && time.Since(c.catalog.readAt) < age {
		return c.catalog, nil
	}
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("asking what the brokers can do: %w", err)
	}
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	fresh := &catalog{readAt: time.Now(), topics: map[string]int32{}, groups: map[string]string{}, brokers: len(metadata.Brokers)}
	for _, k := range versions.ApiKeys {
		fresh.streamsGroups = fresh.streamsGroups || k.ApiKey == streamsGroupDescribe
	}
	for _, t := range metadata.Topics {
		if t.Topic != nil && t.ErrorCode == 0 {
			fresh.topics[*t.Topic] = int32(len(t.Partitions))
		}
	}
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	for _, g := range groups.Groups {
		fresh.groups[g.Group] = strings.ToLower(g.GroupType)
	}
	c.catalog = fresh
	return fresh, nil
}

// owns says whether a topic with an application's prefix is not rather that of another group with a longer name: the
// topics of "orders-eu" begin with "orders-" too.
func (c *catalog) owns(applicationID, topic string) bool {
	for group := range c.groups {
		if strings.HasPrefix(group, applicationID+"-") && strings.HasPrefix(topic, group+"-") {
			return false
		}
	}
	return true
}

// changelogTopics gives the names of an application's changelog topics, sorted.
func (c *catalog) changelogTopics(applicationID string) []string {
	var topics []string
	for topic := range c.topics {
		if _, ok := storeOf(applicationID, topic); ok && c.owns(applicationID, topic) {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// readChangelogs reads the changelog topics of classic groups, with all their configs in one request.
func (c *Cluster) readChangelogs(ctx context.Context, groups []*Group) error {
	var stale []*Group
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, g := range groups {
		if app := c.apps[g.ApplicationID]; app.shape == shapeOf(g) && app.catalogAt.Equal(c.catalog.readAt) {
			continue
		}
		stale = append(stale, g)
		for _, topic := range c.catalog.changelogTopics(g.ApplicationID) {
			resource := kmsg.NewDescribeConfigsRequestResource()
			resource.ResourceType = kmsg.ConfigResourceTypeTopic
			resource.ResourceName = topic
			resource.ConfigNames = []string{cleanupPolicy, retentionMillis, compactionMillis}
			request.Resources = append(request.Resources, resource)
		}
	}
	configs, err := c.describeConfigs(ctx, request)
	if err != nil {
		return fmt.Errorf("reading the configs of changelog topics: %w", err)
	}
	for _, g := range stale {
		app := appTopics{catalogAt: c.catalog.readAt, shape: shapeOf(g)}
		for _, topic := range c.catalog.changelogTopics(g.ApplicationID) {
			known, ok := configs[topic]
			if !ok {
				app.unread++
			}
			if changelog, ok := newChangelog(g.ApplicationID, topic, c.catalog.topics[topic], known); ok {
				app.changelogs = append(app.changelogs, changelog)
			}
		}
		c.apps[g.ApplicationID] = app
	}
	return nil
}

// describeConfigs asks for configs by resource. A resource that cannot be described is left out.
func (c *Cluster) describeConfigs(ctx context.Context, request *kmsg.DescribeConfigsRequest) (map[string]map[string]string, error) {
	configs := map[string]map[string]string{}
	if len(request.Resources) == 0 {
		return configs, nil
	}
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	for _, resource := range response.Resources {
		if kerr.ErrorForCode(resource.ErrorCode) != nil {
			continue
		}
		values := map[string]string{}
		for _, config := range resource.Configs {
			if config.Value != nil {
				values[config.Name] = *config.Value
			}
		}
		configs[resource.ResourceName] = values
	}
	return configs, nil
}

// shapeOf is a text that changes when an application's subtopologies do.
func shapeOf(g *Group) string {
	var shape strings.Builder
	for _, s := range g.Subtopologies {
		fmt.Fprintf(&shape, "%q:", s.ID)
		for _, t := range s.SourceTopics {
			fmt.Fprintf(&shape, " %q", t.Name)
		}
	}
	return shape.String()
}
