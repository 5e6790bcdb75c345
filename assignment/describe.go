// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Configs of a group on the broker (KIP-1071).
const (
	groupStandbys       = "streams.num.standby.replicas"
	groupSessionTimeout = "streams.session.timeout.ms"
)

// While a coordinator moves, requests for its groups are repeated up to coordinatorTries times, with coordinatorPause before each repeat.
const (
	coordinatorTries = 4
	coordinatorPause = 200 * time.Millisecond
)

// Describe implements [Describer]. It sends one request for all classic groups. For streams groups it sends one request for their
// coordinators and one to each coordinator. It first tries the last known protocol of a group.
func (c *Cluster) Describe(ctx context.Context, groups []string) map[string]Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	catalog, err := c.readCatalog(ctx, catalogAge)
	if err != nil {
		return resultsOf(groups, clusterError(err))
	}
	results := map[string]Result{}
	var classic, streams []string
	for _, group := range groups {
		if c.protocols[group] == Streams {
			streams = append(streams, group)
			continue
		}
		classic = append(classic, group)
	}
	c.describeClassic(ctx, classic, results)
	c.describeStreams(ctx, streams, results)
	if unknown := unknownOf(classic, results); catalog.streamsGroups {
		c.describeStreams(ctx, unknown, results)
	}
	c.describeClassic(ctx, unknownOf(streams, results), results)
	c.nameOthers(ctx, groups, results)
	c.addTopics(ctx, results)
	c.addGroupConfigs(ctx, results)
	return ofCluster(results)
}

// unknownOf returns the groups that were not found.
func unknownOf(groups []string, results map[string]Result) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
		return !errors.Is(results[group].Err, ErrUnknownGroup)
	})
}

// failure returns the error of a group after a failed request.
func failure(group string, err error) *Error {
	return &Error{Class: classify(err), Group: group, Err: err}
}

// describeClassic describes groups with DescribeGroups. The Kafka client finds the coordinators.
func (c *Cluster) describeClassic(ctx context.Context, groups []string, results map[string]Result) {
	if len(groups) == 0 {
		return
	}
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.Groups = groups
	for _, shard := range c.client.RequestSharded(ctx, request) {
		if shard.Err != nil {
			for _, group := range shard.Req.(*kmsg.DescribeGroupsRequest).Groups {
				results[group] = Result{Err: failure(group, shard.Err)}
			}
			continue
		}
		for _, described := range shard.Resp.(*kmsg.DescribeGroupsResponse).Groups {
			group, err := DecodeClassic(described)
			results[described.Group] = Result{Group: group, Err: err}
		}
	}
	c.remember(Classic, groups, results)
}

// remember stores the protocol of each described group.
func (c *Cluster) remember(protocol Protocol, groups []string, results map[string]Result) {
	for _, group := range groups {
		r, ok := results[group]
		if !ok {
			results[group] = Result{Err: failure(group, errors.New("the broker's response does not contain the group"))}
			continue
		}
		if r.Err == nil {
			c.protocols[group] = protocol
		}
	}
}

// describeStreams describes groups with StreamsGroupDescribe at their coordinators, and repeats that while coordinators move.
func (c *Cluster) describeStreams(ctx context.Context, groups []string, results map[string]Result) {
	open := groups
	for try := range coordinatorTries {
		if len(open) == 0 {
			break
		}
		if try > 0 && !sleep(ctx, coordinatorPause) {
			break
		}
		for coordinator, coordinated := range c.coordinators(ctx, open, results) {
			c.describeAt(ctx, coordinator, coordinated, results)
		}
		open = slices.DeleteFunc(slices.Clone(open), func(group string) bool { return !isMoving(results[group].Err) })
	}
	c.remember(Streams, groups, results)
}

// sleep waits, and returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isMoving returns whether an error means that a coordinator is moving.
func isMoving(err error) bool {
	return errors.Is(err, kerr.NotCoordinator) || errors.Is(err, kerr.CoordinatorNotAvailable) ||
		errors.Is(err, kerr.CoordinatorLoadInProgress)
}

// coordinators returns the groups of each coordinator, by broker.
func (c *Cluster) coordinators(ctx context.Context, groups []string, results map[string]Result) map[int32][]string {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKeys = groups
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		for _, group := range groups {
			results[group] = Result{Err: failure(group, err)}
		}
		return nil
	}
	found := map[int32][]string{}
	for _, coordinator := range response.Coordinators {
		if err := kerr.ErrorForCode(coordinator.ErrorCode); err != nil {
			results[coordinator.Key] = Result{Err: failure(coordinator.Key, err)}
			continue
		}
		found[coordinator.NodeID] = append(found[coordinator.NodeID], coordinator.Key)
	}
	return found
}

// describeAt describes groups at one broker.
func (c *Cluster) describeAt(ctx context.Context, broker int32, groups []string, results map[string]Result) {
	request := kmsg.NewPtrStreamsGroupDescribeRequest()
	request.Groups = groups
	request.IncludeTopologyDescription = true
	response, err := c.client.Broker(int(broker)).RetriableRequest(ctx, request)
	if err != nil {
		c.client.ForceMetadataRefresh() // The coordinator may have moved to a new broker.
		for _, group := range groups {
			results[group] = Result{Err: failure(group, err)}
		}
		return
	}
	for _, described := range response.(*kmsg.StreamsGroupDescribeResponse).Groups {
		group, err := DecodeStreams(described)
		results[described.Group] = Result{Group: group, Err: err}
	}
}

// nameOthers replaces the error of unknown groups by one with their type if they are consumer or share groups.
func (c *Cluster) nameOthers(ctx context.Context, groups []string, results map[string]Result) {
	unknown := unknownOf(groups, results)
	if len(unknown) == 0 {
		return
	}
	catalog, err := c.readCatalog(ctx, catalogPause)
	if err != nil {
		return // The error stays correct: the group is unknown.
	}
	for _, group := range unknown {
		delete(c.protocols, group)
		delete(c.apps, group)
		if kind := catalog.groups[group]; kind != "" && kind != "classic" && kind != "streams" {
			results[group] = Result{Err: &Error{Class: ClassNotStreamsGroup, Group: group, Err: fmt.Errorf("the type is %s", kind)}}
		}
	}
}

// assignedOf returns the groups of a protocol with an assignment, sorted.
func assignedOf(results map[string]Result, protocol Protocol) []*Group {
	var groups []*Group
	for _, id := range slices.Sorted(maps.Keys(results)) {
		if r := results[id]; r.Err == nil && r.Group.Assigned && r.Group.Protocol == protocol {
			groups = append(groups, &r.Group)
		}
	}
	return groups
}

// addTopics adds partitions, changelogs and brokers to the groups.
func (c *Cluster) addTopics(ctx context.Context, results map[string]Result) {
	classic := assignedOf(results, Classic)
	all := slices.Concat(classic, assignedOf(results, Streams))
	if slices.ContainsFunc(all, c.isNew) {
		if _, err := c.readCatalog(ctx, catalogPause); err != nil {
			failAll(all, err, results)
			return
		}
	}
	for _, group := range all {
		group.Brokers = c.catalog.brokers
		group.TLS = c.config.TLS != nil
		group.addPartitions(c.catalog.topics)
	}
	if err := c.readChangelogs(ctx, classic); err != nil {
		failAll(classic, err, results)
		return
	}
	for _, group := range classic {
		app := c.apps[group.ApplicationID]
		group.addChangelogs(app.changelogs)
		if app.unread > 0 {
			group.addWarning(fmt.Sprintf("the configs of %d changelog topics cannot be read; they count as key-value stores", app.unread))
		}
	}
	for _, group := range all {
		results[group.ApplicationID] = Result{Group: *group}
	}
}

// isNew returns whether a group may have topics outside of the catalog.
func (c *Cluster) isNew(g *Group) bool {
	if g.Protocol == Classic && c.apps[g.ApplicationID].shape != shapeOf(g) {
		return true
	}
	return slices.ContainsFunc(g.Subtopologies, func(s Subtopology) bool {
		return slices.ContainsFunc(s.SourceTopics, func(t Topic) bool { return c.catalog.topics[t.Name] == 0 })
	})
}

// failAll replaces the descriptions of groups by an error.
func failAll(groups []*Group, err error, results map[string]Result) {
	for _, g := range groups {
		results[g.ApplicationID] = Result{Err: failure(g.ApplicationID, err)}
	}
}

// addGroupConfigs adds the configs of streams groups on the broker. They may change at any time.
func (c *Cluster) addGroupConfigs(ctx context.Context, results map[string]Result) {
	groups := assignedOf(results, Streams)
	request := kmsg.NewPtrDescribeConfigsRequest()
	for _, group := range groups {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType = kmsg.ConfigResourceTypeGroupConfig
		resource.ResourceName = group.ApplicationID
		resource.ConfigNames = []string{groupStandbys, groupSessionTimeout}
		request.Resources = append(request.Resources, resource)
	}
	configs, err := c.describeConfigs(ctx, request)
	if err != nil {
		failAll(groups, err, results)
		return
	}
	for _, group := range groups {
		group.SessionTimeout = millis(configs[group.ApplicationID][groupSessionTimeout])
		standbys, err := strconv.ParseInt(configs[group.ApplicationID][groupStandbys], 10, 32)
		if err == nil && standbys >= 0 {
			group.Standbys = new(int32(standbys))
		} else {
			group.addWarning("the group's config " + groupStandbys + " cannot be read; the number of standbys is unknown")
		}
		results[group.ApplicationID] = Result{Group: *group}
	}
}

// ofCluster replaces the errors of all groups by one error of the cluster if no broker has answered for any group.
func ofCluster(results map[string]Result) map[string]Result {
	var first error
	for _, id := range slices.Sorted(maps.Keys(results)) {
		e, ok := errors.AsType[*Error](results[id].Err)
		if !ok || isAnswer(e) {
			return results
		}
		if first == nil {
			first = &Error{Class: e.Class, Err: e.Err}
		}
	}
	for id := range results {
		results[id] = Result{Err: first}
	}
	return results
}

// isAnswer returns whether an error comes from a broker's response for a group.
func isAnswer(e *Error) bool {
	if e.Class == ClassUnreachable || e.Class == ClassTimeout {
		return false
	}
	return e.Group != ""
}
