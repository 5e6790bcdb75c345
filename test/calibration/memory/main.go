// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// The memory calibration measures the memory of real Kafka Streams applications against the plans of the planner, whose constants are set
// by it. Each instance runs in a memory cgroup against a real broker, bounded by the agent and a plan.
//
//	calibrate run [SCENARIO ...]   first load, steady updates, failure of an instance, restore, steady updates
//	calibrate fragmentation        one instance under steady updates for hours
//	calibrate cascade [MODE ...]   three instances, one of which fails; "default RocksDB memory" and "with agent and plan"
//	calibrate throughput           with agent and plan against default RocksDB memory
//	calibrate start                the cost of the agent at the start
//	calibrate trend SAMPLES        compute the trend of a fragmentation run that was stopped early, from its samples
//	calibrate table                write the tables of docs/calibration.md from the results
//
// It needs Linux with memory cgroups (version 1 or 2), root, Java 17 and, for the first build, Maven.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// options are the flags.
type options struct {
	// agent is the jar, results the folder of the results, keep the folder for logs and samples, document the page with the tables.
	agent, results, keep, document string
	duration                       time.Duration
	// nativeMemory enables the JVM's native memory tracking.
	nativeMemory bool
}

func main() {
	var o options
	flag.StringVar(&o.agent, "agent", "agent/streamweir-agent.jar", "the agent's jar")
	flag.StringVar(&o.results, "results", "docs/calibration", "the folder of the results (lines of JSON)")
	flag.StringVar(&o.keep, "keep", "", "a folder for logs and samples; without it they are removed")
	flag.StringVar(&o.document, "document", "docs/calibration.md", "the document with the tables")
	flag.DurationVar(&o.duration, "duration", 2*time.Hour, "the duration of the fragmentation run")
	flag.BoolVar(&o.nativeMemory, "nmt", false, "enable native memory tracking, and store its summaries with the samples")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
}

// run runs the command in the arguments.
func (o *options) run(ctx context.Context, args []string) error {
	const commands = "run, fragmentation, trend, cascade, throughput, start or table"
	if len(args) == 0 {
		return errors.New("missing command: " + commands)
	}
	switch args[0] {
	case "run":
		return o.calibrate(ctx, args[1:])
	case "fragmentation":
		return o.fragmentation(ctx)
	case "trend":
		if len(args) != 2 {
			return errors.New("trend: the argument must be the file samples.jsonl of the run")
		}
		return o.keepTrend(args[1])
	case "cascade":
		return o.cascade(ctx, args[1:])
	case "throughput":
		return o.throughput(ctx)
	case "start":
		return o.starts(ctx)
	case "table":
		return o.writeTables()
	default:
		return fmt.Errorf("unknown command %q: use %s", args[0], commands)
	}
}

// folder creates the folder of an experiment and returns a function that removes it. If logs are kept, the function removes only the
// storage of the broker.
func (o *options) folder(name string) (string, func(), error) {
	if o.keep == "" {
		folder, err := os.MkdirTemp("", "streamweir-calibrate-")
		return folder, func() { _ = os.RemoveAll(folder) }, err
	}
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp(o.keep, name+"-")
	return folder, func() { _ = os.RemoveAll(filepath.Join(folder, "storage")) }, err
}

// experiment prepares a run of a scenario with the agent and its plan. The returned function ends it.
func (o *options) experiment(s *scenario) (*experiment, func(), error) {
	classes, err := localkafka.ClassPath()
	if err != nil {
		return nil, nil, err
	}
	agent := ""
	if o.agent != "" {
		if agent, err = filepath.Abs(o.agent); err != nil {
			return nil, nil, err
		}
	}
	folder, remove, err := o.folder(s.Name)
	if err != nil {
		return nil, nil, err
	}
	e := &experiment{scenario: s, setup: setup{classPath: classes, application: s.Name, folder: folder, agent: agent}}
	e.setup.configs = s.configs()
	maps.Copy(e.setup.configs, s.arguments(s.Name))
	return e, func() { e.close(); remove() }, nil
}
