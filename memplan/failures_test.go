// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "testing"

func TestFailuresRemaining(t *testing.T) {
	cases := map[string]struct {
		failures Failures
		pods     int
		want     int
	}{
		"all pods run: one failure":                                {Failures{Instances: 3, Tolerated: 1}, 3, 1},
		"one pod is unavailable: none":                             {Failures{Instances: 3, Unavailable: 1, Tolerated: 1}, 2, 0},
		"two pods are unavailable, and one is tolerated: none":     {Failures{Instances: 3, Unavailable: 2, Tolerated: 1}, 1, 0},
		"one pod is lost: one more":                                {Failures{Instances: 2, Tolerated: 1}, 2, 1},
		"scaled in by one: the surplus pod and one":                {Failures{Instances: 2, Tolerated: 1}, 3, 2},
		"more failures tolerated than there are pods: all but one": {Failures{Instances: 3, Tolerated: 100}, 3, 2},
		"a single pod: none":                                       {Failures{Instances: 1, Tolerated: 1}, 1, 0},
		"none tolerated":                                           {Failures{Instances: 3, Tolerated: 0}, 3, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.failures.remaining(c.pods); got != c.want {
				t.Errorf("remaining(%d) = %d, want %d", c.pods, got, c.want)
			}
		})
	}
}
