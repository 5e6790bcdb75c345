// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/internal/testobjects"
)

// runningOn is a running pod on a healthy node.
func runningOn(node string) Pod { return Pod{Node: node, Phase: corev1.PodRunning} }

// lostOn is a running pod on a lost node.
func lostOn(node string) Pod { return Pod{Node: node, Phase: corev1.PodRunning, NodeLost: true} }

// pendingFor is a pod that was created a while ago and does not run yet.
func pendingFor(age time.Duration) Pod {
	return Pod{Phase: corev1.PodPending, Created: testobjects.Now.Add(-age)}
}

func TestCountFailures(t *testing.T) {
	now := testobjects.Now
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	spread := []Pod{runningOn("a"), runningOn("b"), runningOn("c")}
	two := spread[:2:2]
	terminating := Pod{Node: "c", Phase: corev1.PodRunning, Terminating: true}
	terminatingOnLostNode := Pod{Node: "c", Phase: corev1.PodRunning, NodeLost: true, Terminating: true}
	suspected := Pod{Node: "c", Phase: corev1.PodRunning, Suspected: true}
	cases := map[string]struct {
		pods             []Pod
		replicas         int
		rollingOut       bool
		maxUnavailable   int
		toTolerate       *int32
		unavailableSince time.Time
		want             Failures
	}{
		"all pods run: one may fail": {
			pods: spread, replicas: 3,
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"lost node: its pod is lost at once": {
			pods: append(two, lostOn("c")), replicas: 3,
			want: Failures{Instances: 2, Tolerated: 1},
		},
		"suspected pod: lost at once": {
			pods: append(two, suspected), replicas: 3,
			want: Failures{Instances: 2, Tolerated: 1},
		},
		"lost node with two pods: both are lost": {
			pods: []Pod{runningOn("a"), lostOn("c"), lostOn("c")}, replicas: 3,
			want: Failures{Instances: 1, Tolerated: 1},
		},
		"deleted pod of a lost node: still lost": {
			pods: append(two, terminatingOnLostNode), replicas: 3,
			want: Failures{Instances: 2, Tolerated: 1},
		},
		"lowered replicas: surplus pods are lost at once": {
			pods: spread, replicas: 2,
			want: Failures{Instances: 2, Tolerated: 1},
		},
		"replicas lowered to zero: the last pod has all tasks for a while": {
			pods: spread, replicas: 0,
			want: Failures{Instances: 1, Tolerated: 1},
		},
		"pod just gone: expected back": {
			pods: two, replicas: 3,
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 1, UnavailableSince: now, recheckAfter: 30 * time.Second},
		},
		"pod being deleted: does not run, expected back": {
			pods: append(two, terminating), replicas: 3,
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 1, UnavailableSince: now, recheckAfter: 30 * time.Second},
		},
		"pod gone for 29 s: expected back": {
			pods: two, replicas: 3, unavailableSince: ago(29 * time.Second),
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 1, UnavailableSince: ago(29 * time.Second), recheckAfter: time.Second},
		},
		"pod gone for 30 s: lost": {
			pods: two, replicas: 3, unavailableSince: ago(30 * time.Second),
			want: Failures{Instances: 2, Tolerated: 1, UnavailableSince: ago(30 * time.Second)},
		},
		"pod failed a minute ago and still listed: lost": {
			pods: append(two, Pod{Node: "c", Phase: corev1.PodFailed}), replicas: 3, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 2, Tolerated: 1, UnavailableSince: ago(time.Minute)},
		},
		"pending replacement: expected back": {
			pods: append(two, pendingFor(time.Minute)), replicas: 3, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 1, recheckAfter: replacementGrace - time.Minute},
		},
		"replacement pending for 15 minutes: lost": {
			pods: append(two, pendingFor(15*time.Minute)), replicas: 3, unavailableSince: ago(15 * time.Minute),
			want: Failures{Instances: 2, Tolerated: 1, UnavailableSince: ago(15 * time.Minute)},
		},
		"pod that ends slowly in a drain: expected back": {
			pods:     append(two, Pod{Phase: corev1.PodRunning, Terminating: true, TerminatesBy: now.Add(time.Minute)}),
			replicas: 3, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 1, recheckAfter: time.Minute},
		},
		"pod that has not ended within its grace period: lost": {
			pods:     append(two, Pod{Phase: corev1.PodRunning, Terminating: true, TerminatesBy: now}),
			replicas: 3, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 2, Tolerated: 1, UnavailableSince: ago(time.Minute)},
		},
		"more pending replacements than are tolerated: lost": {
			pods: append(spread[:1:1], pendingFor(time.Minute), pendingFor(time.Minute)), replicas: 3, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 1, Tolerated: 1, UnavailableSince: ago(time.Minute)},
		},
		"pending replacement of one of two pods: lost": {
			pods: append(spread[:1:1], pendingFor(time.Minute)), replicas: 3, toTolerate: new(int32(2)), unavailableSince: ago(time.Minute),
			want: Failures{Instances: 1, Tolerated: 2, UnavailableSince: ago(time.Minute)},
		},
		"pod gone while another one is pending: not the time of the pending one": {
			pods: append(two[:1:1], pendingFor(5*time.Minute)), replicas: 3, toTolerate: new(int32(2)),
			want: Failures{Instances: 3, Unavailable: 2, Tolerated: 2, UnavailableSince: now, recheckAfter: 30 * time.Second},
		},
		"running replacement: all pods are available": {
			pods: spread, replicas: 3, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"pod that is not ready on a healthy node: no failure": {
			pods: append(two, Pod{Node: "c", Phase: corev1.PodRunning}), replicas: 3,
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"pod unavailable in a rollout: no failure, however long": {
			pods: two, replicas: 3, rollingOut: true, unavailableSince: ago(10 * time.Minute),
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 1},
		},
		"more pods unavailable in a rollout than tolerated: lost": {
			pods: spread[:1], replicas: 3, rollingOut: true, unavailableSince: ago(time.Minute),
			want: Failures{Instances: 1, Tolerated: 1, UnavailableSince: ago(time.Minute)},
		},
		"as many pods unavailable in a rollout as the user tolerates: no failure": {
			pods: spread[:1], replicas: 3, rollingOut: true, toTolerate: new(int32(2)), unavailableSince: ago(time.Minute),
			want: Failures{Instances: 3, Unavailable: 2, Tolerated: 2},
		},
		"no failure to tolerate: a rollout may still take one pod": {
			pods: two, replicas: 3, rollingOut: true, toTolerate: new(int32(0)), unavailableSince: ago(time.Minute),
			want: Failures{Instances: 3, Unavailable: 1, Tolerated: 0},
		},
		"as many pods unavailable in a rollout as its strategy takes: no failure": {
			pods: spread[:1], replicas: 3, rollingOut: true, maxUnavailable: 2, toTolerate: new(int32(1)), unavailableSince: ago(10 * time.Minute),
			want: Failures{Instances: 3, Unavailable: 2, Tolerated: 1},
		},
		"the strategy takes two pods: two may fail": {
			pods: spread, replicas: 3, maxUnavailable: 2,
			want: Failures{Instances: 3, Tolerated: 2},
		},
		"surge above the replicas: planned for as if it were over": {
			pods: append(slices.Clone(spread), runningOn("d")), replicas: 3, rollingOut: true,
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"two pods share a node: still one may fail": {
			pods: []Pod{runningOn("a"), runningOn("a"), runningOn("b")}, replicas: 3,
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"all pods share a node: one may fail": {
			pods: []Pod{runningOn("a"), runningOn("a"), runningOn("a")}, replicas: 3,
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"the user's number replaces that of the strategy": {
			pods: spread, replicas: 3, maxUnavailable: 2, toTolerate: new(int32(1)),
			want: Failures{Instances: 3, Tolerated: 1},
		},
		"no pod runs yet: planned for the replicas": {
			replicas: 3,
			want:     Failures{Instances: 3, Tolerated: 1, UnavailableSince: now, recheckAfter: 30 * time.Second},
		},
		"no pod runs for an hour: still planned for the replicas": {
			replicas: 3, unavailableSince: ago(time.Hour),
			want: Failures{Instances: 3, Tolerated: 1, UnavailableSince: ago(time.Hour)},
		},
		"scaled to zero": {
			replicas: 0,
			want:     Failures{Instances: 0, Tolerated: 1},
		},
		"every node is lost: planned for the replicas": {
			pods: []Pod{lostOn("a"), lostOn("b")}, replicas: 2,
			want: Failures{Instances: 2, Tolerated: 1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			workload := &Workload{Replicas: c.replicas, RollingOut: c.rollingOut, MaxUnavailable: c.maxUnavailable}
			got := countFailures(c.pods, workload, c.toTolerate, c.unavailableSince, now)
			wantNoDiff(t, "failures", c.want, got, cmp.AllowUnexported(Failures{}))
		})
	}
}

// TestTimeAloneIsNoFailure simulates, second by second, changes that must never count as a failure.
func TestTimeAloneIsNoFailure(t *testing.T) {
	all := []Pod{runningOn("a"), runningOn("b"), runningOn("c")}
	cases := map[string]func(second int) (pods []Pod, rollingOut bool){
		"three rolling updates, each pod unavailable for 40 s": func(second int) ([]Pod, bool) {
			if second%60 < 40 {
				return all[:2], true
			}
			return all, second%180 < 179
		},
		"a pod that comes and goes every 20 s": func(second int) ([]Pod, bool) {
			if second/20%2 == 0 {
				return all[:2], false
			}
			return all, false
		},
		"four drains, each with a replacement that waits two minutes for a node": func(second int) ([]Pod, bool) {
			if second%140 < 120 {
				return append(slices.Clone(all[:2]), pendingFor(-time.Duration(second-second%140)*time.Second)), false
			}
			return all, false
		},
		"a readiness probe that flaps": func(second int) ([]Pod, bool) {
			flapping := slices.Clone(all)
			if second%7 < 3 {
				flapping[2].ReadySince = testobjects.Now.Add(time.Duration(second) * time.Second)
			}
			return flapping, false
		},
	}
	for name, at := range cases {
		t.Run(name, func(t *testing.T) {
			var since time.Time
			for second := range 9 * 60 {
				pods, rollingOut := at(second)
				got := countFailures(pods, &Workload{Replicas: 3, RollingOut: rollingOut}, nil, since, testobjects.Now.Add(time.Duration(second)*time.Second))
				if since = got.UnavailableSince; got.Instances != 3 {
					t.Fatalf("second %d: instances = %d, want 3", second, got.Instances)
				}
			}
		})
	}
}

func TestEarliest(t *testing.T) {
	cases := map[string]struct {
		waits []time.Duration
		want  time.Duration
	}{
		"no wait: never":              {nil, 0},
		"zeros: never":                {[]time.Duration{0, 0}, 0},
		"zero and a wait: the wait":   {[]time.Duration{0, time.Minute}, time.Minute},
		"several waits: the shortest": {[]time.Duration{time.Hour, 0, time.Second, time.Minute}, time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Earliest(c.waits...); got != c.want {
				t.Errorf("Earliest(%v) = %v, want %v", c.waits, got, c.want)
			}
		})
	}
}
