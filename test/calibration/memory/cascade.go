// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"streamweir.dev/streamweir/memplan"
)

// The two modes of an application, as stored in the results and as shown in the tables.
const (
	// withDefaults is without agent and plan: each RocksDB instance has caches and memtables of its own, with RocksDB's default sizes.
	withDefaults = "default RocksDB memory"
	// bounded is with agent and plan.
	bounded = "with agent and plan"
)

// The cascade: three instances under load, one of which fails.
const (
	cascadeLimit = 760 * memplan.MiB
	cascadeHeap  = 256 * memplan.MiB
	// cascadeTime is the time for which the survivors are observed after the failure.
	cascadeTime = 10 * time.Minute
	// allowedStall is the longest time without progress outside of the rebalance, in ms.
	allowedStall = 5000
)

// cascadeResult is a run of the cascade.
type cascadeResult struct {
	Mode string `json:"mode"`
	Date string `json:"date"`
	// Events are in seconds after the failure.
	Events []event `json:"events"`
	// OOMKilled is the number of OOM-killed instances, Instances the number of all.
	OOMKilled int `json:"oomKilled"`
	Instances int `json:"instances"`
	// Watched is the observation time of the survivors in seconds, Rebalance the time until they had all tasks; 0: never.
	Watched   int `json:"watched"`
	Rebalance int `json:"rebalance"`
	// Stall is the longest time in ms after the failure without progress of a RUNNING instance, StallRebalance the longest time without
	// progress that includes a rebalance.
	Stall          int64 `json:"stall"`
	StallRebalance int64 `json:"stallRebalance"`
	// Anon and LeastFile are the largest anonymous memory and the least page cache of a survivor, in bytes; Limit is that of each.
	Anon      int64 `json:"anon"`
	LeastFile int64 `json:"leastFile"`
	Limit     int64 `json:"limit"`
	// Before and After are the records per second of all instances.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// event is an event of a run.
type event struct {
	Second int    `json:"second"`
	What   string `json:"what"`
	at     time.Time
}

// stable reports whether no instance was killed or stalled.
func (r *cascadeResult) stable() bool {
	return r.OOMKilled == 0 && r.Rebalance > 0 && r.Stall <= allowedStall
}

// cascadeScenario is the application of the cascade.
func cascadeScenario() scenario {
	return scenario{
		Name: "cascade", Title: "the cascade", Topology: "key-value", Stores: 3, Instances: 3, Threads: 2, Tasks: 12,
		Keys: 480_000, ValueBytes: 1000, Rate: 1000, Speed: 1,
		// A member that is busy with a restore keeps its tasks; a killed one is detected after 10 s.
		Configs: map[string]string{"consumer.session.timeout.ms": "10000"},
	}
}

// cascadePlan is the plan of an instance that must tolerate the failure of one of three.
func cascadePlan(s *scenario) (memplan.Plan, error) {
	w, err := s.workload()
	if err != nil {
		return memplan.Plan{}, err
	}
	w.JVM.MaxHeap = memplan.Known(cascadeHeap, memplan.Spec)
	w.RocksDB.SharedCache = memplan.Fact[memplan.Bytes]{}
	assigned := memplan.Assignment{}
	for n := range s.Instances {
		pod := memplan.Pod{Name: fmt.Sprint(n), Threads: s.Threads}
		for t := n; t < s.Tasks; t += s.Instances {
			pod.Current.Active = append(pod.Current.Active, memplan.Task{Subtopology: "0", Partition: int32(t)})
		}
		pod.Target = pod.Current
		assigned.Pods = append(assigned.Pods, pod)
	}
	plan := memplan.PlanFor(w, memplan.LoadsAfter(w, assigned, 1)[0], memplan.DefaultPolicy(), cascadeLimit)
	if !plan.Fits() {
		return plan, fmt.Errorf("the plan does not fit:\n%s", plan.Explain())
	}
	return plan, nil
}

// cascade runs the cascade in both modes. It fails unless instances with default memory are OOM-killed and bounded ones stay stable.
func (o *options) cascade(ctx context.Context, modes []string) error {
	if len(modes) == 0 {
		modes = []string{withDefaults, bounded}
	}
	var errs []error
	for _, mode := range modes {
		r, err := o.cascadeIn(ctx, mode)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		fmt.Printf("%s: %+v\n", mode, *r)
		if err := keep(filepath.Join(o.results, "cascade.jsonl"), r, func(c *cascadeResult) string { return c.Mode }); err != nil {
			return err
		}
		switch {
		case mode == withDefaults && r.OOMKilled == 0:
			errs = append(errs, errors.New("with default RocksDB memory no instance was killed"))
		case mode == bounded && !r.stable():
			errs = append(errs, errors.New("with agent and plan, an instance was killed or stalled"))
		}
	}
	return errors.Join(errs...)
}

// cascadeIn runs the cascade in one mode.
func (o *options) cascadeIn(ctx context.Context, mode string) (*cascadeResult, error) {
	s := cascadeScenario()
	e, end, err := o.experiment(&s)
	if err != nil {
		return nil, err
	}
	defer end()
	plan, err := cascadePlan(&s)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(e.setup.folder, "plan.txt"), []byte(plan.Explain()), 0o600); err != nil {
		return nil, err
	}
	c := &cascadeRun{experiment: e, stalls: newStalls(), dead: map[*instance]bool{}}
	c.result = cascadeResult{Mode: mode, Date: time.Now().UTC().Format(time.DateOnly), Instances: s.Instances, Limit: int64(cascadeLimit)}
	e.setup.limit, e.setup.heap, e.setup.each = int64(cascadeLimit), int64(plan.Heap), c.stalls.note
	if mode == withDefaults {
		e.setup.agent = ""
	}
	if err := e.prepare(ctx, &plan, logSamplesEvery); err != nil {
		return nil, err
	}
	return &c.result, c.run(ctx)
}

// cascadeRun is the state of a run.
type cascadeRun struct {
	*experiment
	result cascadeResult
	stalls *stalls
	// dead are the instances that ended unexpectedly.
	dead map[*instance]bool
}

// run loads data, kills one instance and observes the others. An OOM kill is a result, not an error.
func (c *cascadeRun) run(ctx context.Context) error {
	c.enter(phaseLoad)
	if err := c.startInstances(ctx); err != nil {
		return err
	}
	if err := c.running(ctx, c.tasks()); err != nil {
		return err
	}
	if err := c.generator.fill(ctx); err != nil {
		return err
	}
	loaded := func() bool { return len(c.dead) > 0 || c.processed() >= c.generator.sent.Load() }
	if err := c.poll(ctx, loadTime, loaded); err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	go c.generator.update(ctx, c.scenario.Rate, stop)
	c.enter(phaseSteady)
	from, before := time.Now(), c.processed()
	if err := c.poll(ctx, time.Minute, func() bool { return false }); err != nil {
		return err
	}
	c.result.Before = float64(c.processed()-before) / time.Since(from).Seconds()
	lost := time.Now()
	c.enter(phaseRestore)
	c.killOne()
	err := c.observe(ctx, lost)
	for i := range c.result.Events {
		c.result.Events[i].Second = int(c.result.Events[i].at.Sub(lost).Seconds())
	}
	return err
}

// enter begins a phase.
func (c *cascadeRun) enter(phase string) {
	c.watch.enter(phase)
	c.stalls.enter(phase, time.Now().UnixMilli())
}

// happened records an event.
func (c *cascadeRun) happened(format string, args ...any) {
	c.result.Events = append(c.result.Events, event{at: time.Now(), What: fmt.Sprintf(format, args...)})
}

// killOne kills one instance unless the kernel has already killed one.
func (c *cascadeRun) killOne() {
	if len(c.dead) > 0 {
		c.happened("none is killed: the kernel has already killed one")
		return
	}
	last := c.instances[len(c.instances)-1]
	c.happened("%s is killed with kill -9", last.Name)
	last.stop(syscall.SIGKILL)
}

// observe observes the survivors.
func (c *cascadeRun) observe(ctx context.Context, lost time.Time) error {
	settled, done := time.Time{}, int64(0)
	err := c.poll(ctx, cascadeTime, func() bool {
		if settled.IsZero() && c.active() == c.tasks() {
			settled, done = time.Now(), c.processed()
			c.result.Rebalance = max(1, int(settled.Sub(lost).Seconds()))
			c.happened("the remaining instances have all tasks")
			c.enter(phaseAfter)
		}
		return false
	})
	c.result.Watched = int(time.Since(lost).Seconds())
	if !settled.IsZero() {
		c.result.After = float64(c.processed()-done) / time.Since(settled).Seconds()
	}
	c.result.Stall = max(c.stalls.in(phaseRestore), c.stalls.in(phaseAfter))
	c.result.StallRebalance = c.stalls.in(inRebalance)
	after := peaks{}
	for _, phase := range []string{phaseRestore, phaseAfter} {
		if p, ok := c.watch.phases[phase]; ok {
			after.merge(p)
		}
	}
	c.result.Anon, c.result.LeastFile = after.Anon, after.LeastFile
	return err
}

// poll checks broker and instances every tenth of a second, until the time is over, no instance runs, or done returns true.
func (c *cascadeRun) poll(ctx context.Context, d time.Duration, done func() bool) error {
	timer, ticker := time.NewTimer(d), time.NewTicker(figuresEvery)
	defer timer.Stop()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-ticker.C:
		}
		if err := errors.Join(c.setup.broker.Process.Failure(), c.generator.failure()); err != nil {
			return err
		}
		for _, i := range c.instances {
			if i.Failure() != nil && !c.dead[i] {
				c.recordEnd(i)
			}
		}
		if done() {
			return nil
		}
		if !slices.ContainsFunc(c.instances, func(i *instance) bool { return !i.Ended() }) {
			c.happened("no instance is left")
			return nil
		}
	}
}

// recordEnd records the unexpected end of an instance.
func (c *cascadeRun) recordEnd(i *instance) {
	c.dead[i] = true
	if m, err := i.cgroup.read(); err == nil && m.OOMKills > 0 {
		c.result.OOMKilled++
		c.happened("%s is OOM-killed", i.Name)
		return
	}
	c.happened("%s has ended: %v", i.Name, i.Failure())
}
