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
	// catalogAge is the maximum age of the list of topics. Topics rarely appear or grow while an application runs: they fix its number of
	// tasks.
	catalogAge = 5 * time.Minute
	// catalogPause is the minimum time between two readings for new groups and topics.
	catalogPause = 10 * time.Second
	// streamsGroupDescribe is the API key of StreamsGroupDescribe (KIP-1071).
	streamsGroupDescribe = 89
)

// catalog lists the topics, groups and brokers of a cluster, and the features of the brokers.
type catalog struct {
	readAt        time.Time
	topics        map[string]int32  // Number of partitions by topic.
	groups        map[string]string // Type by group, in lower case; empty from brokers before ListGroups v5.
	brokers       int
	streamsGroups bool // The brokers support streams groups.
}

// appTopics are the changelog topics of an application. They are valid for one catalog and one set of subtopologies.
type appTopics struct {
	catalogAt  time.Time
	shape      string // See shapeOf.
	changelogs []Changelog
	unread     int // The number of topics without readable configs.
}

// readCatalog returns the catalog, and reads it again after a maximum age.
func (c *Cluster) readCatalog(ctx context.Context, age time.Duration) (*catalog, error) {
	if c.catalog != nil && time.Since(c.catalog.readAt) < age {
		return c.catalog, nil
	}
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("reading the API versions of the brokers: %w", err)
	}
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	fresh := &catalog{readAt: time.Now(), topics: map[string]int32{}, groups: map[string]string{}, brokers: len(metadata.Brokers)}
	for _, api := range versions.ApiKeys {
		fresh.streamsGroups = fresh.streamsGroups || api.ApiKey == streamsGroupDescribe
	}
	for _, topic := range metadata.Topics {
		if topic.Topic != nil && topic.ErrorCode == 0 {
			fresh.topics[*topic.Topic] = int32(len(topic.Partitions))
		}
	}
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	for _, group := range groups.Groups {
		fresh.groups[group.Group] = strings.ToLower(group.GroupType)
	}
	c.catalog = fresh
	return fresh, nil
}

// owns returns whether a topic with the prefix of an application belongs to it, and not to a group with a longer name: the topics of
// "orders-eu" also begin with "orders-".
func (c *catalog) owns(applicationID, topic string) bool {
	for group := range c.groups {
		if strings.HasPrefix(group, applicationID+"-") && strings.HasPrefix(topic, group+"-") {
			return false
		}
	}
	return true
}

// changelogTopics returns the names of the changelog topics of an application, sorted.
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

// readChangelogs reads the changelog topics of classic groups with one request for all configs.
func (c *Cluster) readChangelogs(ctx context.Context, groups []*Group) error {
	var stale []*Group
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, group := range groups {
		if app := c.apps[group.ApplicationID]; app.shape == shapeOf(group) && app.catalogAt.Equal(c.catalog.readAt) {
			continue
		}
		stale = append(stale, group)
		for _, topic := range c.catalog.changelogTopics(group.ApplicationID) {
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
	for _, group := range stale {
		app := appTopics{catalogAt: c.catalog.readAt, shape: shapeOf(group)}
		for _, topic := range c.catalog.changelogTopics(group.ApplicationID) {
			known, ok := configs[topic]
			if !ok {
				app.unread++
			}
			if changelog, ok := newChangelog(group.ApplicationID, topic, c.catalog.topics[topic], known); ok {
				app.changelogs = append(app.changelogs, changelog)
			}
		}
		c.apps[group.ApplicationID] = app
	}
	return nil
}

// describeConfigs returns configs by resource. It leaves out resources without a description.
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

// shapeOf returns a text that depends on the subtopologies and source topics of an application only.
func shapeOf(g *Group) string {
	var shape strings.Builder
	for _, subtopology := range g.Subtopologies {
		fmt.Fprintf(&shape, "%q:", subtopology.ID)
		for _, topic := range subtopology.SourceTopics {
			fmt.Fprintf(&shape, " %q", topic.Name)
		}
	}
	return shape.String()
}
