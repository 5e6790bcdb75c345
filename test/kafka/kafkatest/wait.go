// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"context"
	"testing"
	"time"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// patience is the longest wait for a condition; generous, since tests share the cores of the machine.
const patience = 2 * time.Minute

// Eventually repeats a check every tenth of a second until it returns nil. After two minutes it fails the test with the last error.
func Eventually(tb testing.TB, what string, check func(context.Context) error) {
	tb.Helper()
	if err := localkafka.Eventually(tb.Context(), patience, what, check); err != nil {
		tb.Fatal(err)
	}
}
