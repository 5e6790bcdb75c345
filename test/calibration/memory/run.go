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
	"sync"
	"syscall"
	"time"

	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// The phases of a run, in their order.
const (
	phaseLoad    = "first load"
	phaseSteady  = "steady updates"
	phaseRestore = "failure and restore"
	phaseAfter   = "steady after the failure"
)

// experiment is a broker with the instances of one application.
type experiment struct {
	scenario  *scenario
	setup     setup
	watch     *watch
	generator *generator
	instances []*instance
	watchers  sync.WaitGroup
	sampleLog *os.File
}

// figuresEvery is the interval at which an instance prints its figures.
const figuresEvery = 100 * time.Millisecond

// loadTime is the timeout of a first load or a restore.
const loadTime = 10 * time.Minute

// prepare writes the plan, starts the broker and creates the topics.
func (e *experiment) prepare(ctx context.Context, plan *memplan.Plan, logEvery time.Duration) error {
	log, err := os.Create(filepath.Join(e.setup.folder, "samples.jsonl"))
	if err != nil {
		return err
	}
	e.sampleLog, e.watch = log, newWatch(log, logEvery)
	e.setup.planFolder = filepath.Join(e.setup.folder, "plan")
	if err := os.Mkdir(e.setup.planFolder, 0o755); err != nil {
		return err
	}
	if err := writePlan(e.setup.planFolder, plan); err != nil {
		return err
	}
	if e.setup.broker, err = startBroker(ctx, e.setup.classPath, e.setup.folder); err != nil {
		return err
	}
	topics := []string{e.setup.application + ".left"}
	if e.scenario.Joined {
		topics = append(topics, e.setup.application+".right")
	}
	e.generator = newGenerator(e.setup.broker.Client, e.scenario, topics...)
	if e.scenario.Output {
		topics = append(topics, e.setup.application+".output")
	}
	return e.setup.broker.CreateTopics(ctx, int32(e.scenario.Tasks), topics...)
}

// startInstances starts all instances and the sampling of their memory.
func (e *experiment) startInstances(ctx context.Context) error {
	for n := range e.scenario.Instances {
		i, err := e.setup.startInstance(ctx, fmt.Sprintf("%s-%d", e.setup.application, n))
		if err != nil {
			return err
		}
		e.instances = append(e.instances, i)
		e.watchers.Go(func() { e.watch.follow(ctx, i) })
	}
	return nil
}

// close ends everything.
func (e *experiment) close() {
	for _, i := range e.instances {
		i.stop(syscall.SIGKILL)
	}
	e.watchers.Wait()
	if e.setup.broker != nil {
		_ = e.setup.broker.Stop()
	}
	if e.sampleLog != nil {
		_ = e.sampleLog.Close()
	}
}

// failure is an error if an instance or the broker has ended unexpectedly, or a write failed.
func (e *experiment) failure() error {
	errs := []error{e.setup.broker.Process.Failure(), e.generator.failure()}
	for _, i := range e.instances {
		errs = append(errs, i.Failure())
	}
	return errors.Join(errs...)
}

// load writes all keys once and waits until they are processed.
func (e *experiment) load(ctx context.Context) error {
	e.watch.enter(phaseLoad)
	if err := e.running(ctx, e.tasks()); err != nil {
		return err
	}
	if err := e.generator.fill(ctx); err != nil {
		return err
	}
	return e.until(ctx, loadTime, "the first load is processed", func() error {
		sent, done := e.generator.sent.Load(), e.processed()
		if e.scenario.Topology == "global" {
			sent /= 2 // the other half goes into the global table and is not counted
		}
		if done < sent {
			return fmt.Errorf("%d of %d records", done, sent)
		}
		return nil
	})
}

// tasks is the number of active tasks of the application.
func (e *experiment) tasks() int {
	w := memplan.Workload{}
	w.Subtopologies, _ = e.scenario.subtopologies()
	return w.Tasks()
}

// processed is the number of records that the instances have processed.
func (e *experiment) processed() int64 {
	sum := int64(0)
	for _, i := range e.instances {
		sum += i.latest.Load().Processed
	}
	return sum
}

// running waits until the remaining instances are RUNNING and have that many active tasks in total.
func (e *experiment) running(ctx context.Context, tasks int) error {
	return e.until(ctx, loadTime, "all tasks run", func() error {
		if active := e.active(); active != tasks {
			return fmt.Errorf("%d of %d tasks", active, tasks)
		}
		return nil
	})
}

// active is the number of active tasks of the remaining instances that are RUNNING.
func (e *experiment) active() int {
	active := 0
	for _, i := range e.instances {
		if f := i.latest.Load(); !i.Ended() && f.State == "RUNNING" {
			active += f.Active
		}
	}
	return active
}

// until repeats a check until it succeeds. It fails at once if a process has ended unexpectedly.
func (e *experiment) until(ctx context.Context, most time.Duration, what string, try func() error) error {
	return localkafka.Eventually(ctx, most, what, func(context.Context) error {
		if err := e.failure(); err != nil {
			return localkafka.Final(err)
		}
		return try()
	})
}

// pause waits while the load goes on.
func (e *experiment) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return e.failure()
		case <-ticker.C:
			if err := e.failure(); err != nil {
				return err
			}
		}
	}
}

// lose kills the last instance and waits until the others run all tasks.
func (e *experiment) lose(ctx context.Context) error {
	e.watch.enter(phaseRestore)
	e.instances[len(e.instances)-1].stop(syscall.SIGKILL)
	return e.running(ctx, e.tasks())
}

// liveHeap is the largest live set of the instances: the used heap after a full collection.
func (e *experiment) liveHeap(ctx context.Context) (int64, error) {
	largest := int64(0)
	for _, i := range e.instances {
		if i.Ended() {
			continue
		}
		if out, err := exec.CommandContext(ctx, "jcmd", fmt.Sprint(i.PID), "GC.run").CombinedOutput(); err != nil {
			return 0, fmt.Errorf("jcmd GC.run: %w: %s", err, out)
		}
		if err := e.pause(ctx, 2*figuresEvery); err != nil {
			return 0, err
		}
		largest = max(largest, i.latest.Load().HeapUsed)
	}
	return largest, nil
}
