// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kfakestreams

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
)

// sessionTimeoutMillis is the value of the group's config streams.session.timeout.ms: the default of Kafka 4.4.
const sessionTimeoutMillis = "45000"

// apiVersions adds StreamsGroupDescribe to the versions of kfake.
func (c *Cluster) apiVersions(request kmsg.Request) kmsg.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	response := request.ResponseKind().(*kmsg.ApiVersionsResponse)
	response.ApiKeys = slices.Clone(c.keys)
	if c.describeVersion >= 0 {
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey = streamsGroupDescribeKey
		key.MaxVersion = c.describeVersion
		response.ApiKeys = append(response.ApiKeys, key)
	}
	return response
}

// listGroups lists the groups coordinated by this broker.
func (c *Cluster) listGroups(request kmsg.Request) kmsg.Response {
	node := c.CurrentNode()
	c.mu.Lock()
	defer c.mu.Unlock()
	response := request.ResponseKind().(*kmsg.ListGroupsResponse)
	types := maps.Clone(c.others)
	for id, g := range c.groups {
		types[id] = map[assignment.Protocol]string{assignment.Classic: "classic", assignment.Streams: "streams"}[g.Protocol]
	}
	for _, id := range slices.Sorted(maps.Keys(types)) {
		if c.CoordinatorFor(id) != node {
			continue
		}
		listed := kmsg.NewListGroupsResponseGroup()
		listed.Group = id
		listed.ProtocolType = "consumer"
		listed.GroupState = "Stable"
		listed.GroupType = types[id]
		response.Groups = append(response.Groups, listed)
	}
	return response
}

// failure returns the broker's error for the description of a group, nil for none.
func (c *Cluster) failure(id string, node int32) *kerr.Error {
	if err := c.failures[id]; err != nil {
		return err
	}
	if c.CoordinatorFor(id) != node {
		return kerr.NotCoordinator
	}
	return nil
}

// describeGroups describes classic groups.
func (c *Cluster) describeGroups(request kmsg.Request) kmsg.Response {
	node := c.CurrentNode()
	c.mu.Lock()
	defer c.mu.Unlock()
	response := request.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, id := range request.(*kmsg.DescribeGroupsRequest).Groups {
		described := kmsg.NewDescribeGroupsResponseGroup()
		described.Group = id
		g := c.groups[id]
		switch err := c.failure(id, node); {
		case err != nil:
			described.ErrorCode = err.Code
		case g != nil && g.Protocol == assignment.Classic:
			g.describeClassic(&described)
		case c.others[id] == "classic":
			described.State = "Stable"
			described.ProtocolType = "consumer"
			described.Protocol = "range"
		default:
			described.State = "Dead"
			if response.Version >= 6 {
				described.ErrorCode = kerr.GroupIDNotFound.Code
			}
		}
		response.Groups = append(response.Groups, described)
	}
	return response
}

// describeStreams describes streams groups.
func (c *Cluster) describeStreams(request kmsg.Request) kmsg.Response {
	node := c.CurrentNode()
	c.mu.Lock()
	defer c.mu.Unlock()
	response := request.ResponseKind().(*kmsg.StreamsGroupDescribeResponse)
	for _, id := range request.(*kmsg.StreamsGroupDescribeRequest).Groups {
		described := kmsg.NewStreamsGroupDescribeResponseGroup()
		described.Group = id
		g := c.groups[id]
		switch err := c.failure(id, node); {
		case err != nil:
			described.ErrorCode = err.Code
		case g != nil && g.Protocol == assignment.Streams:
			g.describeStreams(&described)
		default:
			described.ErrorCode = kerr.GroupIDNotFound.Code
		}
		response.Groups = append(response.Groups, described)
	}
	return response
}

// describeConfigs returns the configs of changelog topics and groups. It leaves requests without any of them to kfake.
func (c *Cluster) describeConfigs(request kmsg.Request) kmsg.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	response := request.ResponseKind().(*kmsg.DescribeConfigsResponse)
	var own bool
	for _, resource := range request.(*kmsg.DescribeConfigsRequest).Resources {
		described := kmsg.NewDescribeConfigsResponseResource()
		described.ResourceType = resource.ResourceType
		described.ResourceName = resource.ResourceName
		configs, ok := c.configsOf(resource)
		own = own || ok
		switch {
		case c.hidden[resource.ResourceName]:
			described.ErrorCode = kerr.TopicAuthorizationFailed.Code
			configs = nil
		case !ok:
			described.ErrorCode = kerr.UnknownTopicOrPartition.Code
		}
		for _, name := range slices.Sorted(maps.Keys(configs)) {
			config := kmsg.NewDescribeConfigsResponseResourceConfig()
			config.Name = name
			config.Value = new(configs[name])
			described.Configs = append(described.Configs, config)
		}
		response.Resources = append(response.Resources, described)
	}
	if !own {
		return nil
	}
	return response
}

// configsOf returns the configs of a changelog topic or a group.
func (c *Cluster) configsOf(resource kmsg.DescribeConfigsRequestResource) (map[string]string, bool) {
	if resource.ResourceType == kmsg.ConfigResourceTypeTopic {
		configs, ok := c.configs[resource.ResourceName]
		return configs, ok
	}
	if g := c.groups[resource.ResourceName]; g != nil && resource.ResourceType == kmsg.ConfigResourceTypeGroupConfig {
		return map[string]string{"streams.num.standby.replicas": strconv.Itoa(g.Standbys),
			"streams.session.timeout.ms": sessionTimeoutMillis}, true
	}
	return nil, false
}

// memberID returns the ID of a member, which is one thread, and clientID the ID of its consumer.
func (g *group) memberID(in *instance, thread int) string {
	return fmt.Sprintf("%s-%s", g.clientID(in, thread), in.process)
}

func (g *group) clientID(in *instance, thread int) string {
	return fmt.Sprintf("%s-%s-StreamThread-%d-consumer", g.ID, in.process, thread+1)
}

// instanceID returns the group.instance.id of a thread, nil without static membership.
func (g *group) instanceID(in *instance, thread int) *string {
	if !g.Static {
		return nil
	}
	return new(fmt.Sprintf("%s-%d", in.host, thread+1))
}
