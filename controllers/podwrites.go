// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// podWritesPerSecond bounds the writes to pods of the whole operator. A write takes up to 22 ms (measured), so the bound occupies 5 of the
	// API server's 600 seats (the defaults of max-requests-inflight and max-mutating-requests-inflight), and 500 pods take 2.5 s.
	podWritesPerSecond = 200
	// podWritesBurst lets an idle operator begin at once.
	podWritesBurst = parallelPodWrites
	// parallelPodWrites bounds the writes of one pass that are on the way. The bucket serves waiting writes in order, so a large application
	// delays the first write of another one by 16 writes, 80 ms.
	parallelPodWrites = 16
)

// podWriteBudget is the token bucket for the writes to pods.
type podWriteBudget struct {
	once    sync.Once
	limiter *rate.Limiter
}

// wait waits for a token until the context ends.
func (b *podWriteBudget) wait(ctx context.Context) error {
	b.once.Do(func() { b.limiter = rate.NewLimiter(podWritesPerSecond, podWritesBurst) })
	return b.limiter.Wait(ctx)
}

// eachPod calls write for the indexes below n, in order and several at a time, each with a token of the budget. Once the time of the pass has
// run out, the rest is left for the next pass: one error has their number.
func (r *StreamAppReconciler) eachPod(ctx context.Context, n int, write func(i int)) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, parallelPodWrites)
	for i := range n {
		slots <- struct{}{}
		if err := r.podWrites.wait(ctx); err != nil {
			return fmt.Errorf("%d of %d pods are left for the next pass: %w", n-i, n, err)
		}
		running.Go(func() {
			defer func() { <-slots }()
			write(i)
		})
	}
	return nil
}
