// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// fragmentation runs one instance under steady updates for hours. Its samples are kept, one in ten seconds.
func (o *options) fragmentation(ctx context.Context) error {
	s := fragmentation()
	e, end, err := o.experiment(ctx, &s)
	if err != nil {
		return err
	}
	defer end()
	plan, err := planned(&s)
	if err != nil {
		return err
	}
	e.setup.limit, e.setup.heap = int64(plan.Limit), int64(plan.Heap)
	fmt.Print(plan.Explain())
	if err := e.prepare(ctx, &plan, 10*time.Second); err != nil {
		return err
	}
	if err := e.startInstances(ctx); err != nil {
		return err
	}
	if err := e.load(ctx); err != nil {
		return err
	}
	fmt.Println("loaded", e.processed(), "records")
	e.watch.enter(phaseSteady)
	stop := make(chan struct{})
	defer close(stop)
	go e.generator.update(ctx, s.Rate, stop)
	return e.pause(ctx, o.duration)
}
