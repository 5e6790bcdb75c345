// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// logSamplesEvery is the interval at which runs of minutes log a sample of each instance.
const logSamplesEvery = time.Second

// calibrate runs scenarios one after the other, and stores and prints their results. An error of one scenario does not stop the others.
func (o *options) calibrate(ctx context.Context, names []string) error {
	all := scenarios()
	if len(names) > 0 {
		all = nil
		for _, name := range names {
			s, err := find(name)
			if err != nil {
				return err
			}
			all = append(all, s)
		}
	}
	var errs []error
	for i := range all {
		if ctx.Err() != nil {
			break
		}
		plan, err := planned(&all[i])
		if err != nil {
			return err
		}
		m, err := o.measure(ctx, &all[i], &plan)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", all[i].Name, err))
			fmt.Fprintln(os.Stderr, errs[len(errs)-1])
			continue
		}
		r := compare(&all[i], &plan, m)
		fmt.Print(r.String())
		if err := keep(filepath.Join(o.results, "scenarios.jsonl"), m, func(m *measurement) string { return m.Scenario }); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// measure runs one scenario through its phases.
func (o *options) measure(ctx context.Context, s *scenario, plan *memplan.Plan) (*measurement, error) {
	e, end, err := o.experiment(s)
	if err != nil {
		return nil, err
	}
	defer end()
	e.setup.limit, e.setup.heap = int64(plan.Limit), int64(plan.Heap)
	if err := os.WriteFile(filepath.Join(e.setup.folder, "plan.txt"), []byte(plan.Explain()), 0o600); err != nil {
		return nil, err
	}
	if o.nativeMemory {
		e.setup.flags = append(e.setup.flags, "-XX:NativeMemoryTracking=summary")
	}
	if err := e.prepare(ctx, plan, logSamplesEvery); err != nil {
		return nil, err
	}
	return o.phases(ctx, e)
}

// phases runs the phases.
func (o *options) phases(ctx context.Context, e *experiment) (*measurement, error) {
	s := e.scenario
	ends := map[string]time.Time{}
	from := time.Now()
	step := func(phase string, do func() error) error {
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
		ends[phase] = time.Now()
		return o.nativeMemoryOf(ctx, e, phase)
	}
	e.watch.enter(phaseLoad)
	if err := e.startInstances(ctx); err != nil {
		return nil, err
	}
	if err := e.bounded(ctx); err != nil {
		return nil, err
	}
	if err := step(phaseLoad, func() error { return e.load(ctx) }); err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	defer close(stop)
	go e.generator.update(ctx, s.Rate, stop)
	steady := func(phase string) func() error {
		return func() error {
			e.watch.enter(phase)
			return e.pause(ctx, s.Steady)
		}
	}
	if err := step(phaseSteady, steady(phaseSteady)); err != nil {
		return nil, err
	}
	if s.Instances > 1 {
		if err := step(phaseRestore, func() error { return e.lose(ctx) }); err != nil {
			return nil, err
		}
		if err := step(phaseAfter, steady(phaseAfter)); err != nil {
			return nil, err
		}
	}
	live, err := e.liveHeap(ctx)
	if err != nil {
		return nil, err
	}
	var results []phaseResult
	for _, phase := range e.watch.order {
		results = append(results, phaseResult{Name: phase, Seconds: ends[phase].Sub(from).Round(time.Second).Seconds(), peaks: *e.watch.phases[phase]})
		from = ends[phase]
	}
	return &measurement{
		Scenario: s.Name, Date: time.Now().UTC().Format(time.DateOnly), Limit: e.setup.limit, Heap: e.setup.heap, HeapLive: live,
		OOMKills: e.oomKills(), Phases: results,
	}, nil
}

// bounded waits until the agent of each instance reports, and fails if one does not bound the memory of RocksDB.
func (e *experiment) bounded(ctx context.Context) error {
	if e.setup.agent == "" {
		return nil
	}
	return e.until(ctx, time.Minute, "the agents report", func() error {
		for _, i := range e.instances {
			if latest, err := i.report(ctx); err != nil {
				return err
			} else if latest.Bounded == report.BoundedOff {
				return localkafka.Final(fmt.Errorf("%s is not bounded: see %s", i.Name, i.Log))
			}
		}
		return nil
	})
}

// oomKills is the number of OOM kills in the cgroups of the instances.
func (e *experiment) oomKills() int64 {
	sum := int64(0)
	for _, i := range e.instances {
		if m, err := i.cgroup.read(); err == nil {
			sum += m.OOMKills
		}
	}
	return sum
}

// nativeMemoryOf stores the JVM's own account of its native memory at the end of a phase if -nmt is set: it costs time and memory, so it
// is only for the search for causes.
func (o *options) nativeMemoryOf(ctx context.Context, e *experiment, phase string) error {
	if !o.nativeMemory {
		return nil
	}
	for _, i := range e.instances {
		if i.Ended() {
			continue
		}
		out, err := exec.CommandContext(ctx, "jcmd", fmt.Sprint(i.PID), "VM.native_memory", "summary", "scale=KB").CombinedOutput()
		if err != nil {
			return fmt.Errorf("jcmd VM.native_memory: %w: %s", err, out)
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", i.PID))
		if err != nil {
			return err
		}
		name := filepath.Join(e.setup.folder, i.Name+"."+strings.ReplaceAll(phase, " ", "-"))
		if err := errors.Join(os.WriteFile(name+".nmt", out, 0o600), os.WriteFile(name+".smaps", maps, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// String formats the result as text.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", r.Scenario, r.Title, r.verdict())
	fmt.Fprintf(&b, "  limit %s, heap %s; after the failure %d tasks, %d RocksDB instances\n", mib(r.Limit), mib(r.Heap), r.Tasks, r.Stores)
	fmt.Fprintf(&b, "  %-28s %9s %9s %9s\n", "native, in MiB", "bound", "expected", "measured")
	for _, l := range r.Lines {
		fmt.Fprintf(&b, "  %-28s %9s %9s %9s\n", l.Name, mib(l.Bound), mib(l.Expected), orNothing(l.Measured))
	}
	fmt.Fprintf(&b, "  %-28s %9s %9s %9s  (%+.1f %%)\n", "sum", mib(r.Bound), mib(r.Expected), mib(r.Peak), r.off())
	fmt.Fprintf(&b, "  heap: live set %s of %s (lines %s); kernel bound %s\n", mib(r.HeapLive), mib(r.Heap), mib(r.HeapLines), mib(r.KernelBound))
	for _, p := range r.Phases {
		fmt.Fprintf(&b, "  %-22s %4.0f s: native %s, page cache %s to %s, kernel %s, cache %s (pinned %s), direct %s\n",
			p.Name, p.Seconds, mib(p.Anon-r.Heap), mib(p.LeastFile), mib(p.File), mib(p.Kernel), mib(p.Cache), mib(p.Pinned), mib(p.Direct))
	}
	return b.String()
}

// mib formats an amount in MiB.
func mib(b int64) string { return fmt.Sprintf("%.0f", float64(b)/float64(memplan.MiB)) }

// orNothing formats an amount in MiB, or "" for an unknown one.
func orNothing(b int64) string {
	if b == 0 {
		return ""
	}
	return mib(b)
}
