// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"context"
	"testing"
	"time"
)

const (
	// patience bounds each wait for a state of the world; generous, since tests share the machine's cores.
	patience = 2 * time.Minute
	// pollEvery is how often a wait looks.
	pollEvery = 100 * time.Millisecond
)

// Eventually calls check every tenth of a second until it returns nil, and fails the test with its last error if that
// takes more than two minutes.
func Eventually(tb testing.TB, what string, check func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: not so after %s: %v", what, patience, err)
		case <-tick.C:
		}
	}
}
