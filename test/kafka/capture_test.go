// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

var update = flag.Bool("update", false, "write the broker's responses to assignment/testdata/captured")

// capture is one file of assignment/testdata/captured: a response of a real broker and its expected interpretation.
type capture struct {
	// Kafka is the version of the broker and of the instances.
	Kafka string `json:"kafka"`
	// Protocol is the value of group.protocol.
	Protocol string `json:"protocol"`
	// ApplicationID is the group.
	ApplicationID string `json:"applicationId"`
	// State is the group's state.
	State string `json:"state"`
	// Version is that of the request and the response.
	Version int16 `json:"version"`
	// DescribeGroupsResponse and StreamsGroupDescribeResponse are the raw body of a response, after the response header; one
	// of the two is set.
	DescribeGroupsResponse       []byte `json:"describeGroupsResponse,omitempty"`
	StreamsGroupDescribeResponse []byte `json:"streamsGroupDescribeResponse,omitempty"`
	// Want has the processes by host: as reported by themselves, or for a streams group between two assignments as in the
	// response. It is empty for a classic group that was not stable.
	Want map[string]process `json:"want"`
}

func captureClassic(t *testing.T, name string, app *kafkatest.RunningApplication, processes []*kafkatest.Process) {
	t.Helper()
	if !*update {
		return
	}
	response, body, err := app.DescribeGroups(t.Context())
	if err != nil {
		t.Fatalf("capture %s: %v", name, err)
	}
	write(t, name, capture{
		ApplicationID: app.ID, Protocol: app.Protocol, State: response.Groups[0].State,
		Version: response.Version, DescribeGroupsResponse: body, Want: reported(processes),
	})
}

func captureStreams(
	t *testing.T, name string, app *kafkatest.RunningApplication, version int16, topology bool, processes []*kafkatest.Process,
) {
	t.Helper()
	if !*update {
		return
	}
	response, body, err := app.DescribeStreamsGroup(t.Context(), version, topology)
	if err != nil {
		t.Fatalf("capture %s: %v", name, err)
	}
	write(t, name, capture{
		ApplicationID: app.ID, Protocol: app.Protocol, State: response.Groups[0].State,
		Version: version, StreamsGroupDescribeResponse: body, Want: reported(processes),
	})
}

// captureUnstable polls until the group is between two stable assignments; the members of a streams group are then moving
// from one assignment to another.
func captureUnstable(t *testing.T, name string, app *kafkatest.RunningApplication) {
	t.Helper()
	if !*update {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		c := capture{ApplicationID: app.ID, Protocol: app.Protocol, Want: map[string]process{}}
		unstable, err := c.read(ctx, app)
		if err != nil {
			t.Fatalf("capture %s: %v", name, err)
		}
		if unstable {
			write(t, name, c)
			return
		}
	}
}

// read fills in the response and reports whether the group is between two assignments.
func (c *capture) read(ctx context.Context, app *kafkatest.RunningApplication) (bool, error) {
	if app.Protocol == kafkatest.Classic {
		response, body, err := app.DescribeGroups(ctx)
		if err != nil {
			return false, err
		}
		c.State, c.Version = response.Groups[0].State, response.Version
		c.DescribeGroupsResponse = body
		return c.State != "Stable", nil
	}
	response, body, err := app.DescribeStreamsGroup(ctx, 1, false)
	if err != nil {
		return false, err
	}
	c.State, c.Version = response.Groups[0].State, response.Version
	c.StreamsGroupDescribeResponse = body
	for _, member := range response.Groups[0].Members {
		c.add(member)
	}
	return c.State != "Stable" && slices.ContainsFunc(response.Groups[0].Members, moving), nil
}

// add adds a member of a streams group to its process in Want.
func (c *capture) add(m kmsg.StreamsGroupDescribeResponseGroupMember) {
	host := strings.TrimPrefix(m.ClientHost, "/")
	p := c.Want[host]
	p.ClientID, _, _ = strings.Cut(m.ClientID, "-StreamThread-")
	p.Threads++
	p.Active = sortedTasks(p.Active, m.Assignment.ActiveTasks)
	p.Copies = sortedTasks(p.Copies, m.Assignment.StandbyTasks)
	p.TargetActive = sortedTasks(p.TargetActive, m.TargetAssignment.ActiveTasks)
	c.Want[host] = p
}

func sortedTasks(tasks []string, more []kmsg.TaskIDs) []string {
	all := append([]string{}, tasks...)
	for _, subtopology := range more {
		for _, partition := range subtopology.Partitions {
			all = append(all, fmt.Sprintf("%s_%d", subtopology.SubtopologyID, partition))
		}
	}
	slices.Sort(all)
	return all
}

func moving(m kmsg.StreamsGroupDescribeResponseGroupMember) bool {
	return len(m.Assignment.ActiveTasks) > 0 && !reflect.DeepEqual(m.Assignment, m.TargetAssignment)
}

func write(t *testing.T, name string, c capture) {
	t.Helper()
	c.Kafka = kafkatest.KafkaVersion
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatalf("capture %s: %v", name, err)
	}
	path := filepath.Join("..", "..", "assignment", "testdata", "captured", name+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatalf("capture %s: %v", name, err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		t.Fatalf("capture %s: %v", name, err)
	}
}
