// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/assignment/kfakestreams"
)

// unhex decodes hexadecimal digits with spaces, and comments from # to the end of the line.
func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	data, err := hex.DecodeString(digits.String())
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

const (
	process     = "00112233 44556677 8899aabb ccddeeff"
	processText = "00112233-4455-6677-8899-aabbccddeeff"
)

// subscriptions are messages written by hand after SubscriptionInfoData.json, with their content.
var subscriptions = map[string]struct {
	bytes string
	want  assignment.SubscriptionInfo
}{
	"version 1 has tasks only": {
		bytes: `00000001 ` + process + `
			00000002 00000000 00000001 00000001 00000002 # active 0_1, 1_2
			00000001 00000000 00000003                   # standby 0_3`,
		want: assignment.SubscriptionInfo{Version: 1, ProcessID: processText, Tasks: []assignment.TaskOffset{
			{Task: assignment.Task{Subtopology: "0", Partition: 1}, Sum: -2},
			{Task: assignment.Task{Subtopology: "1", Partition: 2}, Sum: -2},
			{Task: assignment.Task{Subtopology: "0", Partition: 3}},
		}},
	},
	"version 2 has an endpoint": {
		bytes: `00000002 ` + process + ` 00000000 00000000 00000006 686f73743a31 # host:1`,
		want:  assignment.SubscriptionInfo{Version: 2, ProcessID: processText},
	},
	"version 3 has the latest version": {
		bytes: `00000003 00000007 ` + process + ` 00000000 00000000 00000000`,
		want:  assignment.SubscriptionInfo{Version: 3, LatestVersion: 7, ProcessID: processText},
	},
	"version 6 is the last with previous tasks": {
		bytes: `00000006 0000000b ` + process + ` 00000001 00000004 00000005 00000000 00000000`,
		want: assignment.SubscriptionInfo{Version: 6, LatestVersion: 11, ProcessID: processText, Tasks: []assignment.TaskOffset{
			{Task: assignment.Task{Subtopology: "4", Partition: 5}, Sum: -2}}},
	},
	"version 7 has offset sums by subtopology": {
		bytes: `00000007 00000007 ` + process + ` 00000000
			00000001 00000002                                     # one subtopology, 2
			00000002 00000000 fffffffffffffffe 00000001 0000000000000100`,
		want: assignment.SubscriptionInfo{Version: 7, LatestVersion: 7, ProcessID: processText, Tasks: []assignment.TaskOffset{
			{Task: assignment.Task{Subtopology: "2", Partition: 0}, Sum: -2},
			{Task: assignment.Task{Subtopology: "2", Partition: 1}, Sum: 256},
		}},
	},
	"version 8 has the unique field": {
		bytes: `00000008 00000008 ` + process + ` 00000000 00000000 7f`,
		want:  assignment.SubscriptionInfo{Version: 8, LatestVersion: 8, ProcessID: processText},
	},
	"version 9 has an error code": {
		bytes: `00000009 00000009 ` + process + ` 00000000 00000000 00 00000004`,
		want:  assignment.SubscriptionInfo{Version: 9, LatestVersion: 9, ProcessID: processText, ErrorCode: 4},
	},
	"version 10 has offset sums by task, with named topologies": {
		bytes: `0000000a 0000000a ` + process + ` 00000000
			00000002
			00000000 00000003 fffffffffffffffd ffff        # 0_3, not known, no name
			00000001 00000002 0000000000000005 0002 6e74   # nt__1_2
			01 00000000`,
		want: assignment.SubscriptionInfo{Version: 10, LatestVersion: 10, ProcessID: processText, Tasks: []assignment.TaskOffset{
			{Task: assignment.Task{Subtopology: "0", Partition: 3}, Sum: -3},
			{Task: assignment.Task{Subtopology: "nt__1", Partition: 2}, Sum: 5},
		}},
	},
	"version 11 has client tags": {
		bytes: `0000000b 0000000b ` + process + ` 00000000 00000000 00 00000000
			00000001 00000004 7a6f6e65 00000001 61         # zone: a`,
		want: assignment.SubscriptionInfo{Version: 11, LatestVersion: 11, ProcessID: processText},
	},
}

// assignments are messages written by hand after AssignmentInfo.java, with their content.
var assignments = map[string]struct {
	bytes string
	want  assignment.AssignmentInfo
}{
	"version 1 has tasks only": {
		bytes: `00000001
			00000002 00000000 00000001 00000000 00000001   # 0_1 for two partitions
			00000001 00000001 00000002                     # standby 1_2
			00000002 0001 61 00000002 0001 62 00000002     # reads a-2 and b-2`,
		want: assignment.AssignmentInfo{Version: 1, NextRebalanceMillis: math.MaxInt64,
			Active: tasks("0", 1, 1),
			Standby: []assignment.StandbyTask{{Task: assignment.Task{Subtopology: "1", Partition: 2},
				Partitions: []assignment.TopicPartition{{Topic: "a", Partition: 2}, {Topic: "b", Partition: 2}}}}},
	},
	"version 2 has hosts": {
		bytes: `00000002 00000000 00000000
			00000001 0001 68 00002328 00000001 0001 61 00000003  # h:9000 has a-3`,
		want: assignment.AssignmentInfo{Version: 2, NextRebalanceMillis: math.MaxInt64},
	},
	"version 3 has the common version": {
		bytes: `00000003 00000005 00000001 00000000 00000000 00000000 00000000`,
		want:  assignment.AssignmentInfo{Version: 3, CommonVersion: 5, NextRebalanceMillis: math.MaxInt64, Active: tasks("0", 0)},
	},
	"version 4 has an error code": {
		bytes: `00000004 00000004 00000000 00000000 00000000 00000001`,
		want:  assignment.AssignmentInfo{Version: 4, CommonVersion: 4, ErrorCode: 1, NextRebalanceMillis: math.MaxInt64},
	},
	"version 5 has a dictionary of topics": {
		bytes: `00000005 00000005 00000000 00000000
			00000001 00000000 0001 61                      # 0 is a
			00000001 0001 68 00002328 00000002 00000000 00000000 00000000 00000001
			00000000`,
		want: assignment.AssignmentInfo{Version: 5, CommonVersion: 5, NextRebalanceMillis: math.MaxInt64},
	},
	"version 6 has hosts of standbys": {
		bytes: `00000006 00000006 00000000 00000000
			00000001 00000000 0001 61
			00000001 0001 68 00002328 00000001 00000000 00000000
			00000001 0001 69 00002328 00000001 00000000 00000001
			00000000`,
		want: assignment.AssignmentInfo{Version: 6, CommonVersion: 6, NextRebalanceMillis: math.MaxInt64},
	},
	"version 9 has the next rebalance": {
		bytes: `00000009 00000009 00000000 00000000 00000000 00000000 00000000 00000000 0000018bcfe56800`,
		want:  assignment.AssignmentInfo{Version: 9, CommonVersion: 9, NextRebalanceMillis: 1_700_000_000_000},
	},
	"version 11 has named topologies": {
		bytes: `0000000b 0000000b
			00000001 00000001 00000002 00000002 006e0074   # nt__1_2
			00000001 00000000 00000004 00000000 00000000   # standby 0_4 that reads nothing
			00000000 00000000 00000000 00000000 0000000000000000`,
		want: assignment.AssignmentInfo{Version: 11, CommonVersion: 11, Active: tasks("nt__1", 2),
			Standby: []assignment.StandbyTask{{Task: assignment.Task{Subtopology: "0", Partition: 4}}}},
	},
}

func TestDecodeSubscription(t *testing.T) {
	for name, c := range subscriptions {
		t.Run(name, func(t *testing.T) {
			data := unhex(t, c.bytes)
			got, err := assignment.DecodeSubscription(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			checkCuts(t, data, func(data []byte) error { _, err := assignment.DecodeSubscription(data); return err })
		})
	}
}

func TestDecodeAssignment(t *testing.T) {
	for name, c := range assignments {
		t.Run(name, func(t *testing.T) {
			data := unhex(t, c.bytes)
			got, err := assignment.DecodeAssignment(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			checkCuts(t, data, func(data []byte) error { _, err := assignment.DecodeAssignment(data); return err })
		})
	}
}

// checkCuts checks that truncated messages, and messages with an additional byte, are rejected with field and offset.
func checkCuts(t *testing.T, data []byte, decode func([]byte) error) {
	t.Helper()
	for n := range data {
		if err := decode(data[:n]); err == nil || !strings.Contains(err.Error(), "field ") || !strings.Contains(err.Error(), " at offset ") {
			t.Errorf("for %d of %d bytes the error is %v, should contain field and offset", n, len(data), err)
		}
	}
	if err := decode(append(slices.Clip(data), 0)); err == nil || !strings.Contains(err.Error(), "1 bytes are left over") {
		t.Errorf("with an additional byte the error is %v", err)
	}
}

func TestDecodersReject(t *testing.T) {
	cases := map[string]struct {
		assignment bool
		bytes      string
		want       string
	}{
		"a subscription of version 0": {false, `00000000`, "field SubscriptionInfo.version at offset 0: version 0 is unknown, supported are 1 to 11"},
		"a subscription of version 12": {false, `0000000c`,
			"field SubscriptionInfo.version at offset 0: version 12 is unknown, supported are 1 to 11"},
		"an assignment of version 12": {true, `0000000c`,
			"field AssignmentInfo.usedVersion at offset 0: version 12 is unknown, supported are 1 to 11"},
		"a count of two billion tasks": {true, `00000001 7fffffff 00000000`,
			"field AssignmentInfo.activeTasks at offset 4: counts 2147483647 elements of at least 8 bytes, 4 bytes are left"},
		"a negative count": {true, `00000001 ffffffff`, "field AssignmentInfo.activeTasks at offset 4: counts -1 elements"},
		"a client tag without a key": {false, `0000000b 0000000b ` + process + ` 00000000 00000000 00 00000000 00000001 ffffffff 00000000`,
			"field SubscriptionInfo.clientTags.key at offset 45: needs -1 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			if c.assignment {
				_, err = assignment.DecodeAssignment(unhex(t, c.bytes))
			} else {
				_, err = assignment.DecodeSubscription(unhex(t, c.bytes))
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// randomTask returns a task that a version can encode.
func randomTask(r *rand.Rand, version int32) assignment.Task {
	subtopology := fmt.Sprint(r.Intn(50))
	if version >= 10 && r.Intn(4) == 0 {
		subtopology = "näme__" + subtopology
	}
	return assignment.Task{Subtopology: subtopology, Partition: r.Int31n(1000)}
}

func TestDecodersReverseTheEncoders(t *testing.T) {
	for version := int32(1); version <= assignment.LatestVersion; version++ {
		for seed := range int64(20) {
			t.Run(fmt.Sprintf("version %d, seed %d", version, seed), func(t *testing.T) {
				r := rand.New(rand.NewSource(seed))
				s, a := randomInfos(r, version)
				data, err := kfakestreams.EncodeSubscription(s)
				if err != nil {
					t.Fatal(err)
				}
				gotSubscription, err := assignment.DecodeSubscription(data)
				if diff := cmp.Diff(s, gotSubscription); diff != "" || err != nil {
					t.Errorf("subscription: %v (-want +got):\n%s", err, diff)
				}
				gotAssignment, err := assignment.DecodeAssignment(kfakestreams.EncodeAssignment(a))
				if diff := cmp.Diff(a, gotAssignment); diff != "" || err != nil {
					t.Errorf("assignment: %v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

// randomInfos returns messages that a version can encode.
func randomInfos(r *rand.Rand, version int32) (assignment.SubscriptionInfo, assignment.AssignmentInfo) {
	s := assignment.SubscriptionInfo{Version: version, ProcessID: processText}
	a := assignment.AssignmentInfo{Version: version, NextRebalanceMillis: math.MaxInt64}
	if version >= 3 {
		s.LatestVersion, a.CommonVersion = r.Int31n(20), r.Int31n(20)
	}
	if version >= 4 {
		a.ErrorCode = r.Int31n(5)
	}
	if version >= 7 {
		a.NextRebalanceMillis = r.Int63()
	}
	if version >= 9 {
		s.ErrorCode = r.Int31n(5)
	}
	for range r.Intn(5) {
		a.Active = append(a.Active, randomTask(r, version))
		standby := assignment.StandbyTask{Task: randomTask(r, version)}
		for range r.Intn(3) {
			standby.Partitions = append(standby.Partitions, assignment.TopicPartition{Topic: "töpic", Partition: r.Int31()})
		}
		a.Standby = append(a.Standby, standby)
	}
	sums := []int64{-2, 0} // The possible sums of versions 1 to 6, in this order.
	for i := range sums {
		for range r.Intn(4) {
			o := assignment.TaskOffset{Task: randomTask(r, version), Sum: sums[i]}
			if version >= 7 {
				o.Sum = r.Int63() - 3
			}
			s.Tasks = append(s.Tasks, o)
		}
	}
	return s, a
}

func TestEncodeSubscriptionRejectsAMalformedProcessID(t *testing.T) {
	_, err := kfakestreams.EncodeSubscription(assignment.SubscriptionInfo{Version: 11, ProcessID: "no-uuid"})
	if err == nil || !strings.Contains(err.Error(), `process ID "no-uuid" must be a UUID`) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzDecodeSubscription(f *testing.F) {
	for _, c := range subscriptions {
		f.Add(unhex(f, c.bytes))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := assignment.DecodeSubscription(data)
		if err != nil {
			return
		}
		again, err := kfakestreams.EncodeSubscription(got)
		if err != nil {
			t.Fatal(err)
		}
		reread, err := assignment.DecodeSubscription(again)
		if diff := cmp.Diff(got, reread); diff != "" || err != nil {
			t.Errorf("the value changes when it is encoded and decoded again: %v\n%s", err, diff)
		}
	})
}

func FuzzDecodeAssignment(f *testing.F) {
	for _, c := range assignments {
		f.Add(unhex(f, c.bytes))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := assignment.DecodeAssignment(data)
		if err != nil {
			return
		}
		reread, err := assignment.DecodeAssignment(kfakestreams.EncodeAssignment(got))
		if diff := cmp.Diff(got, reread); diff != "" || err != nil {
			t.Errorf("the value changes when it is encoded and decoded again: %v\n%s", err, diff)
		}
	})
}
