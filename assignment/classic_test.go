// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/assignment/kfakestreams"
)

// member is a member of a classic group, which is one thread, before it is encoded.
type member struct {
	process    string // One letter: the process ID is made of it.
	thread     int
	host       string
	instanceID string
	version    int32
	offsets    []assignment.TaskOffset
	active     map[assignment.TopicPartition]assignment.Task
	standby    []assignment.Task
	errorCode  int32
	next       time.Time
}

// processID returns a UUID for a letter.
func processID(letter string) string {
	r := func(n int) string { return strings.Repeat(letter, n) }
	return r(8) + "-" + r(4) + "-" + r(4) + "-" + r(4) + "-" + r(12)
}

// describe returns the broker's description of a member.
func (m member) describe(tb testing.TB) kmsg.DescribeGroupsResponseGroupMember {
	tb.Helper()
	version := m.version
	if version == 0 {
		version = assignment.LatestVersion
	}
	userData, err := kfakestreams.EncodeSubscription(assignment.SubscriptionInfo{
		Version: version, LatestVersion: version, ProcessID: processID(m.process), Tasks: m.offsets})
	if err != nil {
		tb.Fatal(err)
	}
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Version, metadata.UserData, metadata.Topics = 3, userData, []string{"in"}
	described := kmsg.NewDescribeGroupsResponseGroupMember()
	described.MemberID = fmt.Sprintf("%s-%d", m.process, m.thread)
	described.ClientID = fmt.Sprintf("app-StreamThread-%d-consumer", m.thread)
	described.ClientHost = "/" + m.host
	if m.instanceID != "" {
		described.InstanceID = new(m.instanceID)
	}
	described.ProtocolMetadata = metadata.AppendTo(nil)
	described.MemberAssignment = m.assigned(version)
	return described
}

// assigned returns the encoded assignment of a member.
func (m member) assigned(version int32) []byte {
	info := assignment.AssignmentInfo{Version: version, CommonVersion: version, ErrorCode: m.errorCode,
		NextRebalanceMillis: assignment.NoRebalance}
	if !m.next.IsZero() {
		info.NextRebalanceMillis = m.next.UnixMilli()
	}
	var partitions []assignment.TopicPartition
	for p := range m.active {
		partitions = append(partitions, p)
	}
	slices.SortFunc(partitions, func(a, b assignment.TopicPartition) int {
		return strings.Compare(fmt.Sprintf("%s %03d", a.Topic, a.Partition), fmt.Sprintf("%s %03d", b.Topic, b.Partition))
	})
	outer := kmsg.NewConsumerMemberAssignment()
	for _, p := range partitions {
		info.Active = append(info.Active, m.active[p])
		topic := kmsg.NewConsumerMemberAssignmentTopic()
		topic.Topic, topic.Partitions = p.Topic, []int32{p.Partition}
		outer.Topics = append(outer.Topics, topic)
	}
	for _, task := range m.standby {
		info.Standby = append(info.Standby, assignment.StandbyTask{Task: task,
			Partitions: []assignment.TopicPartition{{Topic: "in", Partition: task.Partition}}})
	}
	slices.Reverse(outer.Topics) // The broker's order is not that of the tasks.
	outer.UserData = kfakestreams.EncodeAssignment(info)
	return outer.AppendTo(nil)
}

// reads returns active tasks of subtopology 0 with the source topic in.
func reads(partitions ...int32) map[assignment.TopicPartition]assignment.Task {
	active := map[assignment.TopicPartition]assignment.Task{}
	for _, p := range partitions {
		active[assignment.TopicPartition{Topic: "in", Partition: p}] = assignment.Task{Subtopology: "0", Partition: p}
	}
	return active
}

// stable returns the description of a stable group.
func stable(tb testing.TB, members ...member) kmsg.DescribeGroupsResponseGroup {
	tb.Helper()
	g := kmsg.NewDescribeGroupsResponseGroup()
	g.Group, g.State, g.ProtocolType, g.Protocol = "app", "Stable", "consumer", "stream"
	for _, m := range members {
		g.Members = append(g.Members, m.describe(tb))
	}
	return g
}

func TestDecodeClassicGroupsThreadsByProcess(t *testing.T) {
	soon := time.UnixMilli(1_800_000_000_000).UTC()
	in := func(stateful bool, tasks int32) []assignment.Subtopology {
		return []assignment.Subtopology{{ID: "0", Tasks: tasks, Stateful: stateful, SourceTopics: []assignment.Topic{{Name: "in"}}}}
	}
	cases := map[string]struct {
		members []member
		want    assignment.Group
	}{
		"two threads of a process, and another process on the same host": {
			members: []member{
				{process: "b", thread: 1, host: "10.0.0.1", active: reads(3)},
				{process: "a", thread: 2, host: "10.0.0.1", active: reads(2, 0)},
				{process: "a", thread: 1, host: "10.0.0.1", active: reads(1)},
			},
			want: assignment.Group{Subtopologies: in(false, 4), Processes: []assignment.Process{
				{ID: processID("a"), Host: "10.0.0.1", ClientID: "app", Threads: 2, Tasks: assignment.Tasks{Active: tasks("0", 0, 1, 2)}},
				{ID: processID("b"), Host: "10.0.0.1", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 3)}},
			}},
		},
		"a task that reads two topics counts once": {
			members: []member{{process: "a", thread: 1, host: "::1", active: map[assignment.TopicPartition]assignment.Task{
				{Topic: "in", Partition: 10}:   {Subtopology: "1", Partition: 10},
				{Topic: "in", Partition: 9}:    {Subtopology: "1", Partition: 9},
				{Topic: "other", Partition: 9}: {Subtopology: "1", Partition: 9},
				{Topic: "extra", Partition: 0}: {Subtopology: "0", Partition: 0},
			}}},
			want: assignment.Group{
				Subtopologies: []assignment.Subtopology{
					{ID: "0", Tasks: 1, SourceTopics: []assignment.Topic{{Name: "extra"}}},
					{ID: "1", Tasks: 11, SourceTopics: []assignment.Topic{{Name: "in"}, {Name: "other"}}},
				},
				Processes: []assignment.Process{{ID: processID("a"), Host: "::1", ClientID: "app", Threads: 1,
					Tasks: assignment.Tasks{Active: append(tasks("0", 0), tasks("1", 9, 10)...)}}},
			},
		},
		"static membership is that of all threads": {
			members: []member{
				{process: "a", thread: 1, host: "h1", instanceID: "x-1", active: reads(0)},
				{process: "b", thread: 1, host: "h2", instanceID: "y-1", active: reads(1)},
				{process: "b", thread: 2, host: "h2", active: reads(2)},
			},
			want: assignment.Group{Subtopologies: in(false, 3), Processes: []assignment.Process{
				{ID: processID("a"), Host: "h1", ClientID: "app", Threads: 1, Static: true, Tasks: assignment.Tasks{Active: tasks("0", 0)}},
				{ID: processID("b"), Host: "h2", ClientID: "app", Threads: 2, Tasks: assignment.Tasks{Active: tasks("0", 1, 2)}},
			}},
		},
		"without a follow-up rebalance all copies are standbys": {
			members: []member{
				{process: "a", thread: 1, host: "h1", active: reads(0), standby: tasks("0", 1)},
				{process: "b", thread: 1, host: "h2", active: reads(1), standby: tasks("0", 0)},
			},
			want: assignment.Group{Subtopologies: in(true, 2), Standbys: new(int32(1)), Processes: []assignment.Process{
				{ID: processID("a"), Host: "h1", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 0), Standby: tasks("0", 1)}},
				{ID: processID("b"), Host: "h2", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 1), Standby: tasks("0", 0)}},
			}},
		},
		"with a follow-up rebalance the additional copy furthest behind is a warm-up": {
			members: []member{
				{process: "a", thread: 1, host: "h1", active: reads(0, 1)},
				{process: "b", thread: 1, host: "h2", standby: tasks("0", 0, 1), offsets: []assignment.TaskOffset{
					{Task: assignment.Task{Subtopology: "0", Partition: 0}, Sum: 900}, {Task: assignment.Task{Subtopology: "0", Partition: 1},
						Sum: 900}}},
				{process: "c", thread: 1, host: "h3", standby: tasks("0", 1), next: soon, offsets: []assignment.TaskOffset{
					{Task: assignment.Task{Subtopology: "0", Partition: 1}, Sum: 20}}},
			},
			want: assignment.Group{Subtopologies: in(true, 2), Standbys: new(int32(1)), NextRebalance: soon, Processes: []assignment.Process{
				{ID: processID("a"), Host: "h1", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 0, 1)}},
				{ID: processID("b"), Host: "h2", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Standby: tasks("0", 0, 1)}},
				{ID: processID("c"), Host: "h3", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{WarmUp: tasks("0", 1)}},
			}},
		},
		"a copy whose process was active is not the warm-up": {
			members: []member{
				{process: "a", thread: 1, host: "h1", active: reads(0), next: time.UnixMilli(0)},
				{process: "b", thread: 1, host: "h2", active: reads(1), standby: tasks("0", 0), offsets: []assignment.TaskOffset{
					{Task: assignment.Task{Subtopology: "0", Partition: 0}, Sum: -2}}},
				{process: "c", thread: 1, host: "h3", standby: tasks("0", 0, 1), offsets: []assignment.TaskOffset{
					{Task: assignment.Task{Subtopology: "0", Partition: 0}, Sum: 5000}}},
			},
			want: assignment.Group{Subtopologies: in(true, 2), Standbys: new(int32(1)), NextRebalance: time.UnixMilli(0).UTC(),
				Processes: []assignment.Process{
					{ID: processID("a"), Host: "h1", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 0)}},
					{ID: processID("b"), Host: "h2", ClientID: "app", Threads: 1,
						Tasks: assignment.Tasks{Active: tasks("0", 1), Standby: tasks("0", 0)}},
					{ID: processID("c"), Host: "h3", ClientID: "app", Threads: 1,
						Tasks: assignment.Tasks{Standby: tasks("0", 1), WarmUp: tasks("0", 0)}},
				}},
		},
		"without standbys every copy is a warm-up": {
			members: []member{
				{process: "a", thread: 1, host: "h1", active: reads(0, 1),
					offsets: []assignment.TaskOffset{{Task: assignment.Task{Subtopology: "0"}, Sum: -2}}},
				{process: "b", thread: 1, host: "h2", standby: tasks("0", 1), next: soon},
			},
			want: assignment.Group{Subtopologies: in(true, 2), NextRebalance: soon, Processes: []assignment.Process{
				{ID: processID("a"), Host: "h1", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{Active: tasks("0", 0, 1)}},
				{ID: processID("b"), Host: "h2", ClientID: "app", Threads: 1, Tasks: assignment.Tasks{WarmUp: tasks("0", 1)}},
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.ApplicationID, c.want.Protocol, c.want.VersionHint = "app", assignment.Classic, "3.2"
			c.want.State, c.want.Stable, c.want.Assigned = "Stable", true, true
			if c.want.Standbys == nil {
				c.want.Standbys = new(int32)
			}
			got, err := assignment.DecodeClassic(stable(t, c.members...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeClassicIsIndependentOfTheOrderOfMembers(t *testing.T) {
	g := stable(t,
		member{process: "a", thread: 1, host: "h1", active: reads(0, 1), standby: tasks("0", 2)},
		member{process: "a", thread: 2, host: "h1", active: reads(4)},
		member{process: "b", thread: 1, host: "h2", active: reads(2), standby: tasks("0", 0, 1), next: time.UnixMilli(5)},
		member{process: "c", thread: 1, host: "h3", active: reads(3), standby: tasks("0", 0, 4)})
	want, err := assignment.DecodeClassic(g)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(20) {
		rand.New(rand.NewSource(seed)).Shuffle(len(g.Members), func(i, j int) { g.Members[i], g.Members[j] = g.Members[j], g.Members[i] })
		got, err := assignment.DecodeClassic(g)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("seed %d: the result depends on the order: %v (-want +got):\n%s", seed, err, diff)
		}
	}
}

func TestDecodeClassicDerivesTheVersionHint(t *testing.T) {
	for version, want := range map[int32]string{7: "", 9: "2.8", 10: "3.0", 11: "3.2"} {
		got, err := assignment.DecodeClassic(stable(t, member{process: "a", host: "h", active: reads(0)},
			member{process: "b", host: "h", active: reads(1), version: version}))
		if err != nil || got.VersionHint != want {
			t.Errorf("with a member of version %d the hint is %q (%v), want %q", version, got.VersionHint, err, want)
		}
	}
}

func TestDecodeClassicWithAnAssignmentError(t *testing.T) {
	got, err := assignment.DecodeClassic(stable(t, member{process: "a", thread: 1, host: "h", errorCode: 1},
		member{process: "a", thread: 2, host: "h", errorCode: 1}, member{process: "b", thread: 1, host: "i", errorCode: 77}))
	if err != nil || got.Assigned {
		t.Errorf("the group of members with errors only is %+v (%v), should not be Assigned", got, err)
	}
	want := []string{"1 members have no assignment because of error 77: unknown",
		"2 members have no assignment because of error 1: source topics are missing"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestDecodeClassicAcceptsAnEmptyAssignment(t *testing.T) {
	g := stable(t, member{process: "a", thread: 1, host: "h", active: reads(0)}, member{process: "b", thread: 1, host: "i"})
	g.Members[1].MemberAssignment = nil
	got, err := assignment.DecodeClassic(g)
	if err != nil || len(got.Processes) != 2 || got.Processes[1].Threads != 1 || got.Processes[1].Tasks.Len() != 0 {
		t.Errorf("got %+v (%v), want a second process with one thread and no task", got, err)
	}
}

func TestDecodeClassicRejects(t *testing.T) {
	cases := map[string]struct {
		change    func(*kmsg.DescribeGroupsResponseGroup)
		wantClass assignment.Class
		wantText  string
	}{
		"an error code": {func(g *kmsg.DescribeGroupsResponseGroup) { g.ErrorCode = kerr.GroupIDNotFound.Code },
			assignment.ClassUnknownGroup, "GROUP_ID_NOT_FOUND"},
		"a group in the state Dead of old brokers": {func(g *kmsg.DescribeGroupsResponseGroup) {
			*g = kmsg.DescribeGroupsResponseGroup{Group: "app", State: "Dead"}
		},
			assignment.ClassUnknownGroup, `group "app"`},
		"a group of Connect workers": {func(g *kmsg.DescribeGroupsResponseGroup) { g.ProtocolType = "connect" },
			assignment.ClassNotStreamsGroup, `the protocol type is "connect", expected "consumer"`},
		"a group of other consumers": {func(g *kmsg.DescribeGroupsResponseGroup) { g.Protocol = "cooperative-sticky" },
			assignment.ClassNotStreamsGroup, `the assignor is "cooperative-sticky", expected "stream"`},
		"a member without metadata": {func(g *kmsg.DescribeGroupsResponseGroup) { g.Members[0].ProtocolMetadata = nil },
			assignment.ClassMalformed, `member "a-1" at "10.0.0.1": group member metadata cannot be decoded: ` +
				"field subscription.version at offset 0"},
		"metadata without user data": {func(g *kmsg.DescribeGroupsResponseGroup) {
			g.Members[0].ProtocolMetadata = []byte{0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}
		}, assignment.ClassMalformed, "field SubscriptionInfo.version at offset 0"},
		"metadata with a negative version": {func(g *kmsg.DescribeGroupsResponseGroup) { g.Members[0].ProtocolMetadata[0] = 0x80 },
			assignment.ClassMalformed, "field subscription.version at offset 0: version -32765 must not be negative"},
		"a truncated assignment": {func(g *kmsg.DescribeGroupsResponseGroup) {
			g.Members[0].MemberAssignment = g.Members[0].MemberAssignment[:5]
		},
			assignment.ClassMalformed, "field assignment.partitions at offset 2"},
		"an assignment without user data": {func(g *kmsg.DescribeGroupsResponseGroup) {
			g.Members[0].MemberAssignment = []byte{0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}
		}, assignment.ClassMalformed, "field AssignmentInfo.usedVersion at offset 0"},
		"more tasks than partitions": {func(g *kmsg.DescribeGroupsResponseGroup) {
			empty := kmsg.NewConsumerMemberAssignment()
			empty.UserData = kfakestreams.EncodeAssignment(assignment.AssignmentInfo{Version: 11, Active: tasks("0", 0)})
			g.Members[0].MemberAssignment = empty.AppendTo(nil)
		}, assignment.ClassMalformed, "field AssignmentInfo.activeTasks: 1 entries for 0 assigned partitions"},
		"a task with a negative partition": {func(g *kmsg.DescribeGroupsResponseGroup) {
			outer := kmsg.NewConsumerMemberAssignment()
			topic := kmsg.NewConsumerMemberAssignmentTopic()
			topic.Topic, topic.Partitions = "in", []int32{0}
			outer.Topics = append(outer.Topics, topic)
			outer.UserData = kfakestreams.EncodeAssignment(assignment.AssignmentInfo{Version: 11, Active: tasks("0", -1)})
			g.Members[0].MemberAssignment = outer.AppendTo(nil)
		}, assignment.ClassMalformed, "field AssignmentInfo.activeTasks at offset"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := stable(t, member{process: "a", thread: 1, host: "10.0.0.1", active: reads(0)})
			c.change(&g)
			_, err := assignment.DecodeClassic(g)
			e, ok := errors.AsType[*assignment.Error](err)
			if !ok || e.Class != c.wantClass || e.Group != "app" || !strings.Contains(e.Error(), c.wantText) {
				t.Errorf("got %v, want class %q with %q", err, c.wantClass, c.wantText)
			}
		})
	}
}

func FuzzDecodeClassic(f *testing.F) {
	seed := stable(f, member{process: "a", thread: 1, host: "h", active: reads(0, 1), standby: tasks("0", 2), next: time.UnixMilli(1)})
	f.Add(seed.Members[0].ProtocolMetadata, seed.Members[0].MemberAssignment)
	for _, c := range loadCaptured(f) {
		response := kmsg.NewDescribeGroupsResponse()
		response.Version = c.Version
		if c.Protocol != "classic" || response.ReadFrom(c.Classic) != nil {
			continue
		}
		for _, m := range response.Groups[0].Members {
			f.Add(m.ProtocolMetadata, m.MemberAssignment)
		}
	}
	f.Fuzz(func(t *testing.T, metadata, assigned []byte) {
		g := stable(t, member{process: "a", thread: 1, host: "h1", active: reads(0)})
		garbage := kmsg.NewDescribeGroupsResponseGroupMember()
		garbage.MemberID, garbage.ClientHost, garbage.ProtocolMetadata, garbage.MemberAssignment = "b", "/h2", metadata, assigned
		g.Members = append(g.Members, garbage)
		got, err := assignment.DecodeClassic(g)
		if e, ok := errors.AsType[*assignment.Error](err); err != nil && (!ok || e.Member != "b" || e.Host != "h2" || e.Group != "app") {
			t.Errorf("the error does not contain group, member and host: %v", err)
		}
		if err == nil && len(got.Processes) == 0 {
			t.Error("a group with members has no processes")
		}
	})
}
