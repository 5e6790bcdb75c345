// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

// slowAPI is an API server that takes a time for each resize, and records the order and the largest number in parallel.
type slowAPI struct {
	latency time.Duration

	mu             sync.Mutex
	order          []string
	running, peaks int
}

func (s *slowAPI) reconciler() *StreamAppReconciler {
	return &StreamAppReconciler{Client: interceptor.NewClient(nil, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, pod client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			s.mu.Lock()
			s.order = append(s.order, pod.GetName())
			s.running++
			s.peaks = max(s.peaks, s.running)
			s.mu.Unlock()
			defer func() { s.mu.Lock(); s.running--; s.mu.Unlock() }()
			select {
			case <-time.After(s.latency):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})}
}

// resizesOf returns a decision that raises the limits of n pods. The deficit grows with the index.
func resizesOf(n int) *decision.Decision {
	d := &decision.Decision{Facts: decision.Facts{App: testobjects.StreamApp(), Container: &decision.Container{Name: testobjects.Container}}}
	for i := range n {
		d.Resizes = append(d.Resizes, decision.Resize{Pod: fmt.Sprintf("orders-%d", i), From: int64(n - i), To: int64(n + 1)})
	}
	return d
}

func TestLargestDeficitIsRaisedFirstAndInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowAPI{latency: 100 * time.Millisecond}
		begun := time.Now()
		outcome := &decision.Outcome{}
		if err := api.reconciler().applyResizes(t.Context(), resizesOf(500), outcome); err != nil {
			t.Fatal(err)
		}
		if api.peaks != parallelPodWrites {
			t.Errorf("%d writes ran in parallel, want %d", api.peaks, parallelPodWrites)
		}
		if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("500 pods took %s, want about 500/16 times 100 ms", took)
		}
		// The first pods start at the same time, in any order.
		for _, pod := range api.order[:parallelPodWrites] {
			if !strings.HasPrefix(pod, "orders-49") && !strings.HasPrefix(pod, "orders-48") {
				t.Errorf("%s was raised among the first, want those with the largest deficits", pod)
			}
		}
		if len(outcome.Resized) != 500 || !strings.Contains(outcome.Resized[0], "orders-0 ") {
			t.Errorf("%d resizes are in the status, the first is %q", len(outcome.Resized), outcome.Resized[0])
		}
	})
}

func TestPassThatRunsOutOfTimeLeavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		api := &slowAPI{latency: time.Millisecond}
		outcome := &decision.Outcome{}
		err := api.reconciler().applyResizes(ctx, resizesOf(5000), outcome)
		if err == nil || !strings.Contains(err.Error(), "of 5000 pods are left for the next pass") {
			t.Errorf("error = %v, want the number of pods that are left", err)
		}
		if raised := len(outcome.Resized); raised < 900 || raised > 1100 {
			t.Errorf("%d pods were raised in 5 s, want about %d a second", raised, podWritesPerSecond)
		}
		if status, done := forStatus(ctx); status.Err() != nil {
			t.Error("the status of a pass that ran out of time cannot be written")
		} else {
			done()
		}
	})
}

func TestEndedOperatorWritesNoStatus(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if ctx, done := forStatus(ended); ctx.Err() == nil {
		t.Error("an operator that has ended writes a status")
	} else {
		done()
	}
}

func TestLargeApplicationDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowAPI{latency: 20 * time.Millisecond}
		r := api.reconciler()
		var passes sync.WaitGroup
		for range 3 {
			passes.Go(func() { _ = r.applyResizes(t.Context(), resizesOf(2000), &decision.Outcome{}) })
		}
		<-time.After(time.Second)
		begun := time.Now()
		if err := r.applyResizes(t.Context(), resizesOf(3), &decision.Outcome{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 500*time.Millisecond {
			t.Errorf("a small application waited %s behind three large ones", took)
		}
		passes.Wait()
	})
}
