// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"io"
	"syscall"
	"testing"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// logTail is the number of lines of a process's log that a failed test shows.
const logTail = 60

// startChild starts an instance in a network namespace of its own. It ends with the test.
func startChild(tb testing.TB, name string, stdout io.Writer, argv ...string) *localkafka.Process {
	tb.Helper()
	process, err := localkafka.Start(tb.Context(), localkafka.Command{
		Name: name, Folder: tb.TempDir(), Argv: argv, Stdout: stdout, OwnNetwork: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	endWithTest(tb, process)
	return process
}

// endWithTest kills the process when the test ends, and shows the last lines of its log if the test failed.
func endWithTest(tb testing.TB, process *localkafka.Process) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of %s, the last %d lines:\n%s", process.Name, logTail, process.Tail(logTail))
		}
		signal(tb, process, syscall.SIGKILL)
	})
}

// signal sends a signal to the process unless it has ended, and waits for its end.
func signal(tb testing.TB, process *localkafka.Process, signal syscall.Signal) {
	tb.Helper()
	if err := process.Signal(signal); err != nil {
		tb.Errorf("signal %s to %s: %v", signal, process.Name, err)
	}
}
