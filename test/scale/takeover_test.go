// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import "testing"

// TestRestartAndHandOverChangeNothing checks that a restart of the operator and a change of the leader write nothing and move no condition.
func TestRestartAndHandOverChangeNothing(t *testing.T) {
	f := newFleet(t, 3)
	f.install().stop()
	started, cold := f.coldStart()
	checkUnchanged(t, "a cold start", cold)
	_, handedOver := f.handOver(started)
	checkUnchanged(t, "a change of the leader", handedOver)
}

// checkUnchanged fails if a takeover has changed something.
func checkUnchanged(t *testing.T, what string, got takeover) {
	t.Helper()
	if total := got.writes.total(); total > 0 {
		t.Errorf("%s wrote %d objects: %s", what, total, got.writes.per(1))
	}
	for _, moved := range got.moved {
		t.Errorf("%s moved a condition of %s", what, moved)
	}
}
