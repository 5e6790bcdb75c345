// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// onNode is a running pod on a node.
func onNode(node string) podFacts { return podFacts{node: node, phase: corev1.PodRunning} }

func onLostNode(node string) podFacts {
	return podFacts{node: node, phase: corev1.PodRunning, nodeLost: true}
}

func TestCountLosses(t *testing.T) {
	ago := func(d time.Duration) time.Time { return testNow.Add(-d) }
	spread := []podFacts{onNode("a"), onNode("b"), onNode("c")}
	terminating := podFacts{node: "c", phase: corev1.PodRunning, terminating: true}
	cases := map[string]struct {
		pods         []podFacts
		replicas     int
		rollingOut   bool
		survive      *int32
		missingSince time.Time
		want         losses
	}{
		"all run: one of them may be lost": {
			pods: spread, replicas: 3,
			want: losses{instances: 3, tolerated: 1},
		},
		"the node of a pod is lost: the pod is lost at once": {
			pods: []podFacts{onNode("a"), onNode("b"), onLostNode("c")}, replicas: 3,
			want: losses{instances: 2, tolerated: 1},
		},
		"two pods of a lost node are both lost": {
			pods: []podFacts{onNode("a"), onLostNode("c"), onLostNode("c")}, replicas: 3,
			want: losses{instances: 1, tolerated: 1},
		},
		"a pod of a lost node that is being deleted is still lost": {
			pods: []podFacts{onNode("a"), onNode("b"), {node: "c", phase: corev1.PodRunning, nodeLost: true, terminating: true}}, replicas: 3,
			want: losses{instances: 2, tolerated: 1},
		},
		"replicas were lowered: those that are about to go are lost at once": {
			pods: spread, replicas: 2,
			want: losses{instances: 2, tolerated: 1},
		},
		"replicas were lowered to zero: the last pod holds everything for a while": {
			pods: spread, replicas: 0,
			want: losses{instances: 1, tolerated: 1},
		},
		"a pod has just gone: it is expected back": {
			pods: spread[:2], replicas: 3,
			want: losses{instances: 3, away: 1, tolerated: 1, missingSince: testNow, recheckAfter: 30 * time.Second},
		},
		"a pod is being deleted: it does not run any more, and is expected back": {
			pods: []podFacts{onNode("a"), onNode("b"), terminating}, replicas: 3,
			want: losses{instances: 3, away: 1, tolerated: 1, missingSince: testNow, recheckAfter: 30 * time.Second},
		},
		"a pod has been gone for just under 30 s: it is expected back": {
			pods: spread[:2], replicas: 3, missingSince: ago(29 * time.Second),
			want: losses{instances: 3, away: 1, tolerated: 1, missingSince: ago(29 * time.Second), recheckAfter: time.Second},
		},
		"a pod has been gone for 30 s: it is lost": {
			pods: spread[:2], replicas: 3, missingSince: ago(30 * time.Second),
			want: losses{instances: 2, tolerated: 1, missingSince: ago(30 * time.Second)},
		},
		"a pod failed 30 s ago and stands there still: it is lost": {
			pods: []podFacts{onNode("a"), onNode("b"), {node: "c", phase: corev1.PodFailed}}, replicas: 3, missingSince: ago(time.Minute),
			want: losses{instances: 2, tolerated: 1, missingSince: ago(time.Minute)},
		},
		"a replacement that is pending does not run": {
			pods: []podFacts{onNode("a"), onNode("b"), {phase: corev1.PodPending}}, replicas: 3, missingSince: ago(time.Minute),
			want: losses{instances: 2, tolerated: 1, missingSince: ago(time.Minute)},
		},
		"the replacement runs: nothing is missing any more": {
			pods: spread, replicas: 3, missingSince: ago(time.Minute),
			want: losses{instances: 3, tolerated: 1},
		},
		"not ready on a healthy node is no loss": {
			pods: []podFacts{onNode("a"), onNode("b"), {node: "c", phase: corev1.PodRunning}}, replicas: 3,
			want: losses{instances: 3, tolerated: 1},
		},
		"a pod that a rollout takes away is no loss, however long it takes": {
			pods: spread[:2], replicas: 3, rollingOut: true, missingSince: ago(10 * time.Minute),
			want: losses{instances: 3, away: 1, tolerated: 1, missingSince: ago(10 * time.Minute)},
		},
		"more pods missing in a rollout than the plan tolerates are lost": {
			pods: spread[:1], replicas: 3, rollingOut: true, missingSince: ago(time.Minute),
			want: losses{instances: 1, tolerated: 1, missingSince: ago(time.Minute)},
		},
		"a rollout may take as many as the user asked to survive": {
			pods: spread[:1], replicas: 3, rollingOut: true, survive: new(int32(2)), missingSince: ago(time.Minute),
			want: losses{instances: 3, away: 2, tolerated: 2, missingSince: ago(time.Minute)},
		},
		"with no losses to survive a rollout may still take one": {
			pods: spread[:2], replicas: 3, rollingOut: true, survive: new(int32(0)), missingSince: ago(time.Minute),
			want: losses{instances: 3, away: 1, tolerated: 0, missingSince: ago(time.Minute)},
		},
		"a surge above the replicas is planned for as if it were over": {
			pods: append(spread, onNode("d")), replicas: 3, rollingOut: true,
			want: losses{instances: 3, tolerated: 1},
		},
		"by default as many may be lost as share a node": {
			pods: []podFacts{onNode("a"), onNode("a"), onNode("b")}, replicas: 3,
			want: losses{instances: 3, tolerated: 2},
		},
		"a node that has all of them does not count": {
			pods: []podFacts{onNode("a"), onNode("a"), onNode("a")}, replicas: 3,
			want: losses{instances: 3, tolerated: 1},
		},
		"the user's number wins over the nodes": {
			pods: []podFacts{onNode("a"), onNode("a"), onNode("b")}, replicas: 3, survive: new(int32(1)),
			want: losses{instances: 3, tolerated: 1},
		},
		"nothing runs yet: the plan is for the replicas": {
			replicas: 3,
			want:     losses{instances: 3, tolerated: 1, missingSince: testNow, recheckAfter: 30 * time.Second},
		},
		"nothing runs for minutes: the plan is still for the replicas": {
			replicas: 3, missingSince: ago(time.Hour),
			want: losses{instances: 3, tolerated: 1, missingSince: ago(time.Hour)},
		},
		"scaled to zero": {
			replicas: 0,
			want:     losses{instances: 0, tolerated: 1},
		},
		"every node is lost: the plan is for the replicas": {
			pods: []podFacts{onLostNode("a"), onLostNode("b")}, replicas: 2,
			want: losses{instances: 2, tolerated: 1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := countLosses(c.pods, c.replicas, c.rollingOut, c.survive, c.missingSince, testNow)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(losses{})); diff != "" {
				t.Errorf("countLosses (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoLossByTheClockAlone plays what must never count as a loss, second by second.
func TestNoLossByTheClockAlone(t *testing.T) {
	all, oneAway := []podFacts{onNode("a"), onNode("b"), onNode("c")}, []podFacts{onNode("a"), onNode("b")}
	cases := map[string]func(second int) (pods []podFacts, rollingOut bool){
		"three rolling updates, each pod 40 s away": func(second int) ([]podFacts, bool) {
			if second%60 < 40 {
				return oneAway, true
			}
			return all, second%180 < 179
		},
		"a pod that comes and goes every 20 s": func(second int) ([]podFacts, bool) {
			if second/20%2 == 0 {
				return oneAway, false
			}
			return all, false
		},
		"a readiness probe that flaps": func(second int) ([]podFacts, bool) {
			flapping := append([]podFacts(nil), all...)
			if second%7 < 3 {
				flapping[2].readySince = testNow.Add(time.Duration(second) * time.Second)
			}
			return flapping, false
		},
	}
	for name, world := range cases {
		t.Run(name, func(t *testing.T) {
			var since time.Time
			for second := range 9 * 60 {
				pods, rollingOut := world(second)
				got := countLosses(pods, 3, rollingOut, nil, since, testNow.Add(time.Duration(second)*time.Second))
				if since = got.missingSince; got.instances != 3 {
					t.Fatalf("second %d: instances = %d, want 3", second, got.instances)
				}
			}
		})
	}
}

func TestToSurvive(t *testing.T) {
	cases := map[string]struct {
		losses  losses
		running int
		want    int
	}{
		"all run":                             {losses{instances: 3, tolerated: 1}, 3, 1},
		"one of them is away":                 {losses{instances: 3, away: 1, tolerated: 1}, 2, 0},
		"two are away, but one was asked for": {losses{instances: 3, away: 2, tolerated: 1}, 1, 0},
		"one is lost: one more may be":        {losses{instances: 2, tolerated: 1}, 2, 1},
		"scaled in by one: that one, and one": {losses{instances: 2, tolerated: 1}, 3, 2},
		"one pod survives whatever is asked":  {losses{instances: 3, tolerated: 100}, 3, 2},
		"a single pod has no one to lose":     {losses{instances: 1, tolerated: 1}, 1, 0},
		"none asked for":                      {losses{instances: 3, tolerated: 0}, 3, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.losses.toSurvive(c.running); got != c.want {
				t.Errorf("toSurvive(%d) = %d, want %d", c.running, got, c.want)
			}
		})
	}
}

func TestEarliest(t *testing.T) {
	cases := map[string]struct {
		waits []time.Duration
		want  time.Duration
	}{
		"none at all":         {nil, 0},
		"zero means never":    {[]time.Duration{0, 0}, 0},
		"never does not win":  {[]time.Duration{0, time.Minute}, time.Minute},
		"the shortest of all": {[]time.Duration{time.Hour, 0, time.Second, time.Minute}, time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := earliest(c.waits...); got != c.want {
				t.Errorf("earliest(%v) = %v, want %v", c.waits, got, c.want)
			}
		})
	}
}
