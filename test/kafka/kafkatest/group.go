// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// WaitStable waits until the application runs on exactly these processes: the broker calls the group stable and knows
// these hosts only, each task is active on one of them, and there are as many standbys as wanted.
func (a *RunningApplication) WaitStable(t testing.TB, processes ...*Process) {
	t.Helper()
	what := fmt.Sprintf("%s (%s) is stable on %d instances", a.ID, a.Protocol, len(processes))
	waitFor(t, what, func(ctx context.Context) error { return a.stable(ctx, processes) })
}

func (a *RunningApplication) stable(ctx context.Context, processes []*Process) error {
	if err := a.placed(processes); err != nil {
		return err
	}
	group, err := a.Group(ctx)
	if err != nil {
		return err
	}
	want := make([]string, 0, len(processes))
	for _, process := range processes {
		want = append(want, process.Address.String())
	}
	slices.Sort(want)
	if group.State != "Stable" || !slices.Equal(group.Hosts, want) {
		return fmt.Errorf("the broker says %+v, want Stable on %v", group, want)
	}
	return nil
}

// placed is an error unless each task is reported as active once, and all wanted standbys are reported.
func (a *RunningApplication) placed(processes []*Process) error {
	active := map[string]int{}
	standbys := 0
	for _, process := range processes {
		if err := process.running(); err != nil {
			return err
		}
		report := process.Report()
		for _, task := range report.Active {
			active[task]++
		}
		standbys += len(report.Standby)
	}
	want := map[string]int{}
	for partition := range a.OrderPartitions {
		want[fmt.Sprintf("0_%d", partition)] = 1
	}
	for partition := range a.ClickPartitions {
		want[fmt.Sprintf("1_%d", partition)] = 1
	}
	if diff := cmp.Diff(want, active); diff != "" {
		return fmt.Errorf("active tasks (-want +reported):\n%s", diff)
	}
	if want := a.Tasks() * min(a.StandbyReplicas, len(processes)-1); standbys != want {
		return fmt.Errorf("%d standby tasks are reported, want %d", standbys, want)
	}
	return nil
}

// Group is what the broker says of an application in a word.
type Group struct {
	// State is the broker's: Stable, PreparingRebalance, Reconciling, ...
	State string
	// Hosts are the addresses of the members, sorted, each once.
	Hosts []string
}

// Group asks the broker for the state and the members' hosts.
func (a *RunningApplication) Group(ctx context.Context) (Group, error) {
	if a.Protocol == Streams {
		return a.streamsGroup(ctx)
	}
	return a.classicGroup(ctx)
}

func (a *RunningApplication) classicGroup(ctx context.Context) (Group, error) {
	response, _, err := exchange(ctx, a.broker, DescribeGroups(a.ID))
	if err != nil {
		return Group{}, err
	}
	described := response.Groups[0]
	var hosts []string
	for _, member := range described.Members {
		hosts = append(hosts, member.ClientHost)
	}
	return group(described.State, hosts), kerr.ErrorForCode(described.ErrorCode)
}

func (a *RunningApplication) streamsGroup(ctx context.Context) (Group, error) {
	response, _, err := exchange(ctx, a.broker, DescribeStreamsGroup(a.ID, 1, false))
	if err != nil {
		return Group{}, err
	}
	described := response.Groups[0]
	var hosts []string
	for _, member := range described.Members {
		hosts = append(hosts, member.ClientHost)
	}
	return group(described.State, hosts), kerr.ErrorForCode(described.ErrorCode)
}

// group drops the slash that Java puts before an address.
func group(state string, hosts []string) Group {
	for i := range hosts {
		hosts[i] = strings.TrimPrefix(hosts[i], "/")
	}
	slices.Sort(hosts)
	return Group{State: state, Hosts: slices.Compact(hosts)}
}

// DescribeGroups is a request for a classic group, version 6.
func DescribeGroups(id string) *kmsg.DescribeGroupsRequest {
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.SetVersion(request.MaxVersion())
	request.Groups = []string{id}
	return request
}

// DescribeStreamsGroup is a request for a streams group (KIP-1071), version 0, or 1 with or without the topology's
// description (KIP-1331).
func DescribeStreamsGroup(id string, version int16, topology bool) *kmsg.StreamsGroupDescribeRequest {
	request := kmsg.NewPtrStreamsGroupDescribeRequest()
	request.SetVersion(version)
	request.Groups = []string{id}
	request.IncludeTopologyDescription = topology
	return request
}
