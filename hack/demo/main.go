// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// The demo shows Streamweir's main function on a machine with nothing but Go. It runs a real kube-apiserver with its etcd, the
// operator with its own role, an in-process Kafka cluster with a group in the wire format of Kafka Streams, and simulated
// nodes. Then a node fails, the tasks of its pod move, and the memory limits of the other pods follow.
//
// All printed figures are read back from the API server, Kafka or the pods. The exit code is 0 only if every step succeeded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	operator := flag.String("operator", "bin/streamweir", "the operator's binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *operator)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nThe demo failed:", err)
		os.Exit(1)
	}
}

// run runs all steps, and stops everything that it started, also after an error.
func run(ctx context.Context, out io.Writer, operator string) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &demo{show: show{out: out}, operatorBinary: operator, fail: cancel}
	defer func() {
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, context.Canceled) {
			err = errors.New("stopped")
		} else if err != nil && cause != nil {
			err = cause
		}
		d.stopAll()
	}()
	return d.runSteps(ctx)
}
