// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// The demo shows Streamweir's main job on a machine that has nothing but Go. A real kube-apiserver with its etcd, the
// operator under its own role, an in-process Kafka cluster whose group speaks the bytes of Kafka Streams, and nodes that
// play their kubelets: then a node dies, the tasks of its pod move, and the memory limits of the other pods follow.
//
// Everything that it prints is read back from where it happened. It ends with 0 only if all of it did.
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

// run tells the story, and ends everything that it started, whatever comes of it.
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
	return d.tell(ctx)
}
