// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/assignment"
)

// noPodAddress is the reason for a process at an address without a pod.
func noPodAddress(host string) string {
	return "no pod has the address " + host + " that the broker sees (address translation on the way, or the pod is gone)"
}

func TestMatch(t *testing.T) {
	pod := func(name string, addresses ...string) assignment.Pod {
		return assignment.Pod{Name: name, Addresses: addresses}
	}
	process := func(id, host string, active ...int32) assignment.Process {
		return assignment.Process{ID: id, Host: host, Threads: 2, Tasks: assignment.Tasks{Active: tasks("0", active...)}}
	}
	load := func(name string, active ...int32) assignment.PodLoad {
		return assignment.PodLoad{Pod: name, Processes: 1, Threads: 2, Tasks: assignment.Tasks{Active: tasks("0", active...)}}
	}
	moving := process("b", "10.0.0.2", 2)
	moving.Target, moving.Static = &assignment.Tasks{Active: tasks("0", 2, 3, 4)}, true
	cases := map[string]struct {
		processes []assignment.Process
		pods      []assignment.Pod
		want      assignment.Matching
	}{
		"by address, in any of its forms": {
			processes: []assignment.Process{
				process("a", "/10.0.0.1", 0), process("b", "10.0.0.2", 1), process("c", "fd00::0:3", 2), process("d", "/fd00:0:0:0:0:0:0:4%eth0", 3),
				process("e", "::ffff:10.0.0.5", 4), process("f", "orders-5.ORDERS/10.0.0.6", 5), process("g", "[fd00::7]", 6), process("h",
					"Host-8", 7),
			},
			pods: []assignment.Pod{pod("p8", "host-8"), pod("p7", "fd00::7"), pod("p6", "10.0.0.6"), pod("p5", "10.0.0.5"),
				pod("p4", "10.0.0.4", "fd00::4"),
				pod("p3", "fd00::3"), pod("p2", "10.0.0.2"), pod("p1", "10.0.0.1")},
			want: assignment.Matching{Loads: []assignment.PodLoad{load("p1", 0), load("p2", 1), load("p3", 2), load("p4", 3),
				load("p5", 4), load("p6", 5),
				load("p7", 6), load("p8", 7)}},
		},
		"two processes in a pod add up": {
			processes: []assignment.Process{process("a", "10.0.0.1", 0, 3), process("b", "10.0.0.1", 1)},
			pods:      []assignment.Pod{pod("p", "10.0.0.1")},
			want: assignment.Matching{Loads: []assignment.PodLoad{{Pod: "p", Processes: 2, Threads: 4,
				Tasks: assignment.Tasks{Active: tasks("0", 0, 1, 3)}}}},
		},
		"a target of one of two processes adds up with the tasks of the other": {
			processes: []assignment.Process{process("a", "10.0.0.2", 0), moving},
			pods:      []assignment.Pod{pod("p", "10.0.0.2")},
			want: assignment.Matching{Loads: []assignment.PodLoad{{Pod: "p", Processes: 2, Threads: 4,
				Tasks: assignment.Tasks{Active: tasks("0", 0, 2)}, Target: &assignment.Tasks{Active: tasks("0", 0, 2, 3, 4)}}}},
		},
		"a pod that has not joined": {
			processes: []assignment.Process{process("a", "10.0.0.1", 0)},
			pods:      []assignment.Pod{pod("p1", "10.0.0.1"), pod("p2", "10.0.0.2"), pod("p3")},
			want: assignment.Matching{Loads: []assignment.PodLoad{load("p1", 0)}, Pods: []assignment.Unmatched{
				{Name: "p2", Why: "no member of the group has its address: it has not joined"},
				{Name: "p3", Why: "no member of the group has its address: it has not joined"}}},
		},
		"source NAT: all members have the node's address": {
			processes: []assignment.Process{process("b", "192.168.0.9", 1, 2), process("a", "192.168.0.9", 0)},
			pods:      []assignment.Pod{pod("p2", "10.0.0.2"), pod("p1", "10.0.0.1")},
			want: assignment.Matching{
				Pods: []assignment.Unmatched{
					{Name: "p1", Why: "no member of the group has its address, and some members have no pod"},
					{Name: "p2", Why: "no member of the group has its address, and some members have no pod"}},
				Processes: []assignment.Unmatched{
					{Name: "a", Host: "192.168.0.9", Why: noPodAddress("192.168.0.9")},
					{Name: "b", Host: "192.168.0.9", Why: noPodAddress("192.168.0.9")}},
				Heaviest: load("", 1, 2),
			},
		},
		"host network: two pods on a node": {
			processes: []assignment.Process{process("a", "192.168.0.9", 0), moving},
			pods:      []assignment.Pod{pod("p2", "192.168.0.9"), pod("p1", "192.168.0.9"), pod("p3", "10.0.0.2")},
			want: assignment.Matching{
				Loads: []assignment.PodLoad{{Pod: "p3", Processes: 1, Threads: 2, Static: true, Tasks: assignment.Tasks{Active: tasks("0", 2)},
					Target: &assignment.Tasks{Active: tasks("0", 2, 3, 4)}}},
				Pods: []assignment.Unmatched{
					{Name: "p1", Why: "shares the address 192.168.0.9 with other pods (host network?)"},
					{Name: "p2", Why: "shares the address 192.168.0.9 with other pods (host network?)"}},
				Processes: []assignment.Unmatched{{Name: "a", Host: "192.168.0.9", Why: "pods p1, p2 share the address 192.168.0.9 (host network?)"}},
				Heaviest:  load("", 0),
			},
		},
		"the heaviest process by target": {
			processes: []assignment.Process{process("a", "x", 0, 1), moving},
			want: assignment.Matching{
				Processes: []assignment.Unmatched{
					{Name: "a", Host: "x", Why: noPodAddress("x")},
					{Name: "b", Host: "10.0.0.2", Why: noPodAddress("10.0.0.2")}},
				Heaviest: assignment.PodLoad{Processes: 1, Threads: 2, Static: true, Tasks: assignment.Tasks{Active: tasks("0", 2)},
					Target: &assignment.Tasks{Active: tasks("0", 2, 3, 4)}},
			},
		},
		"no input": {},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := assignment.Match(c.processes, c.pods)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("matching (-want +got):\n%s", diff)
			}
			if got.Complete() != (len(c.want.Processes) == 0) {
				t.Errorf("Complete is %v", got.Complete())
			}
		})
	}
}

func TestMatchIsCompleteAndIndependentOfTheOrder(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		var processes []assignment.Process
		var pods []assignment.Pod
		for i := range r.Intn(12) {
			processes = append(processes, assignment.Process{ID: fmt.Sprint("p", i), Host: fmt.Sprint("10.0.0.", r.Intn(8)), Threads: 1,
				Tasks: assignment.Tasks{Active: tasks("0", int32(i)), Standby: tasks("1", int32(i))}})
		}
		for i := range r.Intn(8) {
			pods = append(pods, assignment.Pod{Name: fmt.Sprint("pod", i), Addresses: []string{fmt.Sprint("10.0.0.", r.Intn(8))}})
		}
		want := assignment.Match(processes, pods)
		threads := len(want.Processes)
		for _, l := range want.Loads {
			threads += l.Threads
		}
		if threads != len(processes) || len(want.Loads)+len(want.Pods) != len(pods) {
			t.Errorf("seed %d: %d processes and %d pods became %+v", seed, len(processes), len(pods), want)
		}
		r.Shuffle(len(processes), func(i, j int) { processes[i], processes[j] = processes[j], processes[i] })
		r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, assignment.Match(processes, pods)); diff != "" {
			t.Errorf("seed %d: the result depends on the order (-want +got):\n%s", seed, diff)
		}
	}
}
