// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// startPairs is the number of starts in each mode, in turn.
const startPairs = 5

// settleTime is the time for which an instance is idle before its metaspace is read.
const settleTime = 5 * time.Second

// startResult is one start of an instance.
type startResult struct {
	Mode string `json:"mode"`
	Date string `json:"date"`
	Pair int    `json:"pair"`
	// First is the time in ms from the start of the process to the first line of its main method's loop, Running the time to RUNNING, which
	// includes the broker's wait for more members.
	First   int64 `json:"first"`
	Running int64 `json:"running"`
	// Metaspace and CodeCache are committed, in bytes; Anon is the anonymous memory less the heap.
	Metaspace int64 `json:"metaspace"`
	CodeCache int64 `json:"codeCache"`
	Anon      int64 `json:"anon"`
	Threads   int   `json:"threads"`
}

// starts measures the cost of the agent at the start.
func (o *options) starts(ctx context.Context) error {
	var all []startResult
	for pair := range startPairs {
		for _, mode := range []string{withDefaults, bounded} {
			r, err := o.startIn(ctx, mode)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			r.Pair = pair + 1
			fmt.Printf("%+v\n", *r)
			all = append(all, *r)
		}
	}
	return writeLines(filepath.Join(o.results, "start.jsonl"), all)
}

// startIn starts one instance without data.
func (o *options) startIn(ctx context.Context, mode string) (*startResult, error) {
	s := throughputScenario()
	s.Name = "start"
	e, end, err := o.experiment(&s)
	if err != nil {
		return nil, err
	}
	defer end()
	plan, err := planned(&s)
	if err != nil {
		return nil, err
	}
	e.setup.limit, e.setup.heap = int64(plan.Limit), int64(plan.Heap)
	if mode == withDefaults {
		e.setup.agent = ""
	}
	if err := e.prepare(ctx, &plan, logSamplesEvery); err != nil {
		return nil, err
	}
	r := &startResult{Mode: mode, Date: time.Now().UTC().Format(time.DateOnly)}
	from := time.Now()
	e.setup.each = func(_ string, f *figures) {
		if r.First == 0 {
			r.First = f.At - from.UnixMilli()
		}
	}
	if err := e.startInstances(ctx); err != nil {
		return nil, err
	}
	if err := e.running(ctx, e.tasks()); err != nil {
		return nil, err
	}
	if err := e.pause(ctx, settleTime); err != nil {
		return nil, err
	}
	f := e.instances[0].latest.Load()
	r.Running, r.Threads = f.Running, f.Threads
	r.Metaspace, r.CodeCache = f.Metaspace, f.CodeCache
	if m, err := e.instances[0].cgroup.read(); err == nil {
		r.Anon = m.Anon - e.setup.heap
	}
	return r, nil
}
