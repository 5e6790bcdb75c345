// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Calibrate is the instrument by which the planner's constants are set. It runs real Kafka Streams applications against a real broker,
// each instance in a memory cgroup and bounded by the agent with a plan of the planner's own, and prints what was predicted against what
// was measured.
//
//	calibrate run [SCENARIO ...]   first load, steady updates, loss of an instance, restore, steady updates
//	calibrate fragmentation        one instance under steady updates for hours
//	calibrate cascade [WAY ...]    three instances, of which one is lost, as shipped and with agent and plan
//	calibrate throughput           with agent and plan against as shipped
//	calibrate start                what the agent costs at the start
//	calibrate trend SAMPLES        keep the trend of a run for fragmentation that was stopped early, by the samples that it kept
//	calibrate table                write the tables of docs/calibration.md from the results
//
// It needs Linux with memory cgroups (version 1 or 2), root, Java 17 and, once, Maven.
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
	// agent is the jar, results the folder of the results, keep the folder of logs and samples.
	agent, results, keep, document string
	duration                       time.Duration
	// nativeMemory has the JVM track its native memory.
	nativeMemory bool
}

func main() {
	var o options
	flag.StringVar(&o.agent, "agent", "agent/streamweir-agent.jar", "the agent's jar")
	flag.StringVar(&o.results, "results", "docs/calibration", "the folder of the results, lines of JSON")
	flag.StringVar(&o.keep, "keep", "", "a folder for logs and samples; they are removed if it is empty")
	flag.StringVar(&o.document, "document", "docs/calibration.md", "the document with the tables")
	flag.DurationVar(&o.duration, "duration", 2*time.Hour, "how long the run for fragmentation lasts")
	flag.BoolVar(&o.nativeMemory, "nmt", false, "have the JVMs track their native memory, and keep it with the samples")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
}

// run does what the arguments say.
func (o *options) run(ctx context.Context, args []string) error {
	const what = "run, fragmentation, trend, cascade, throughput, start or table"
	if len(args) == 0 {
		return errors.New("say what to do: " + what)
	}
	switch args[0] {
	case "run":
		return o.calibrate(ctx, args[1:])
	case "fragmentation":
		return o.fragmentation(ctx)
	case "trend":
		if len(args) != 2 {
			return errors.New("trend: give the file samples.jsonl of the run")
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
		return fmt.Errorf("%q: it must be %s", args[0], what)
	}
}

// folder is where an experiment keeps its files, and what removes it; of what is kept, the broker's storage is removed.
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

// experiment prepares one of a scenario with the agent and its plan.
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
