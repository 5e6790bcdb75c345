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

// WaitStable waits until the application runs on exactly these processes: the group is stable on the broker with all their
// stream threads and no others, each task is active on one of them, and the number of standbys is as configured.
func (a *RunningApplication) WaitStable(tb testing.TB, processes ...*Process) {
	tb.Helper()
	a.WaitCopies(tb, a.Tasks()*min(a.StandbyReplicas, len(processes)-1), processes...)
}

// WaitCopies is WaitStable with an explicit number of copies (standbys and warm-ups) of all processes together.
func (a *RunningApplication) WaitCopies(tb testing.TB, copies int, processes ...*Process) {
	tb.Helper()
	what := fmt.Sprintf("%s (%s) is stable on %d instances with %d copies", a.ID, a.Protocol, len(processes), copies)
	Eventually(tb, what, func(ctx context.Context) error { return a.stable(ctx, copies, processes) })
}

func (a *RunningApplication) stable(ctx context.Context, copies int, processes []*Process) error {
	if err := a.placed(copies, processes); err != nil {
		return err
	}
	group, err := a.Group(ctx)
	if err != nil {
		return err
	}
	want := Group{State: "Stable"}
	for _, process := range processes {
		want.Hosts = append(want.Hosts, slices.Repeat([]string{process.Address.String()}, process.threads)...)
	}
	slices.Sort(want.Hosts)
	if diff := cmp.Diff(want, group); diff != "" {
		return fmt.Errorf("group (-want +reported by the broker):\n%s", diff)
	}
	return nil
}

// placed is an error unless the processes report each task as active once, and that number of copies.
func (a *RunningApplication) placed(copies int, processes []*Process) error {
	active := map[string]int{}
	reported := 0
	for _, process := range processes {
		if err := process.running(); err != nil {
			return err
		}
		report := process.Report()
		for _, task := range report.Active {
			active[task]++
		}
		reported += len(report.Standby)
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
	if reported != copies {
		return fmt.Errorf("%d standby tasks are reported, want %d", reported, copies)
	}
	return nil
}

// Group is the summary of a group on the broker.
type Group struct {
	// State is the state on the broker: Stable, PreparingRebalance, Reconciling, ...
	State string
	// Hosts are the addresses of the members, one for each stream thread, sorted.
	Hosts []string
}

// Group reads the state and the members' hosts from the broker.
func (a *RunningApplication) Group(ctx context.Context) (Group, error) {
	if a.Protocol == Streams {
		return a.streamsGroup(ctx)
	}
	return a.classicGroup(ctx)
}

func (a *RunningApplication) classicGroup(ctx context.Context) (Group, error) {
	response, _, err := a.DescribeGroups(ctx)
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
	response, _, err := a.DescribeStreamsGroup(ctx, 1, false)
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

// group removes the slash that Java writes before an address.
func group(state string, hosts []string) Group {
	for i := range hosts {
		hosts[i] = strings.TrimPrefix(hosts[i], "/")
	}
	slices.Sort(hosts)
	return Group{State: state, Hosts: hosts}
}

// DescribeGroups describes a classic group, version 6. It returns the response, decoded and as the raw bytes of its body.
func (a *RunningApplication) DescribeGroups(ctx context.Context) (*kmsg.DescribeGroupsResponse, []byte, error) {
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.SetVersion(6)
	request.Groups = []string{a.ID}
	return exchange(ctx, a.broker, request)
}

// DescribeStreamsGroup describes a streams group (KIP-1071), version 0 or 1, the latter with or without the topology's
// description (KIP-1331). It returns the response, decoded and as the raw bytes of its body.
func (a *RunningApplication) DescribeStreamsGroup(
	ctx context.Context, version int16, topology bool,
) (*kmsg.StreamsGroupDescribeResponse, []byte, error) {
	request := kmsg.NewPtrStreamsGroupDescribeRequest()
	request.SetVersion(version)
	request.Groups = []string{a.ID}
	request.IncludeTopologyDescription = topology
	return exchange(ctx, a.broker, request)
}
