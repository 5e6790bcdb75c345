// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/controllers/whatif"
)

const simulateExample = `  # Two pods fail at once
  kubectl streamweir simulate -f orders.yaml --pod-failures 2

  # Twice the partitions, on five pods of 2Gi
  kubectl streamweir simulate -f orders.yaml --partitions-times 2 --replicas 5 --limit 2Gi

  # Two stream threads, one standby and another version, for a running application
  kubectl streamweir simulate orders --threads 2 --standbys 1 --version 4.4.0 --bootstrap-servers kafka:9092

  # The first pod of a cold start, which runs every task for a while
  kubectl streamweir simulate -f orders.yaml --cold-start`

// changeFlags are the flags for the change to simulate.
type changeFlags struct {
	podFailures, replicas, threads, standbys int32
	partitions                               float64
	limit, version                           string
	coldStart                                bool
}

func simulateCommand() *cobra.Command {
	s := &source{}
	w := &changeFlags{}
	command := &cobra.Command{
		Use:     "simulate [NAME | KIND/NAME]",
		Short:   "Compare the required memory before and after a change",
		Long:    "Show the memory that the pods require, and whether it fits, before and after pod failures or a change. The exit code is for the state after it.",
		Example: simulateExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return s.simulate(command, args, w)
		},
	}
	s.addFlags(command)
	s.addOutput(command)
	flags := command.Flags()
	flags.Int32Var(&w.podFailures, "pod-failures", 0, "Pods that fail.")
	flags.Int32Var(&w.replicas, "replicas", 0, "Replicas of the workload, all newly started.")
	flags.Float64Var(&w.partitions, "partitions-times", 0, "Factor for the partitions of all topics, and thereby for the tasks.")
	flags.StringVar(&w.limit, "limit", "", "Memory limit of the container, such as 2Gi.")
	flags.Int32Var(&w.threads, "threads", 0, "Stream threads of each pod (num.stream.threads).")
	flags.Int32Var(&w.standbys, "standbys", 0, "Standbys of each task (num.standby.replicas).")
	flags.StringVar(&w.version, "version", "", "Version of kafka-streams, such as 4.4.0.")
	flags.BoolVar(&w.coldStart, "cold-start", false, "Plan the first pod of a cold start, which runs every task for a while.")
	return command
}

// simulation is the output of simulate for programs.
type simulation struct {
	Now  *whatif.Answer `json:"now"`
	Then *whatif.Answer `json:"then"`
}

// simulate answers for the state before and after the change.
func (s *source) simulate(command *cobra.Command, args []string, w *changeFlags) error {
	if err := s.checkOutput(); err != nil {
		return err
	}
	change, err := w.change(command)
	if err != nil {
		return err
	}
	question, err := s.question(command.Context(), command.InOrStdin(), args)
	if err != nil {
		return err
	}
	now, err := whatif.Explain(question)
	if err != nil {
		return err
	}
	question.Change = change
	then, err := whatif.Explain(question)
	if err != nil {
		return err
	}
	if err := s.print(command.OutOrStdout(), simulation{now, then}, func(p *page) { p.simulation(now, then) }); err != nil {
		return err
	}
	return verdict(then)
}

// change validates and converts the flags.
func (w *changeFlags) change(command *cobra.Command) (whatif.Change, error) {
	change := whatif.Change{Partitions: w.partitions, Version: w.version, ColdStart: w.coldStart}
	set := w.partitions != 0 || w.version != "" || w.coldStart
	for _, n := range []struct {
		flag  string
		value int32
		least int32
		to    **int32
	}{
		{"pod-failures", w.podFailures, 0, &change.PodFailures}, {"replicas", w.replicas, 1, &change.Replicas},
		{"threads", w.threads, 1, &change.Threads}, {"standbys", w.standbys, 0, &change.Standbys},
	} {
		if !command.Flags().Changed(n.flag) {
			continue
		}
		if n.value < n.least {
			return change, fmt.Errorf("--%s=%d: it must be at least %d", n.flag, n.value, n.least)
		}
		set = true
		*n.to = new(n.value)
	}
	if w.partitions < 0 || w.partitions > maxPartitions {
		return change, fmt.Errorf("--partitions-times=%g: it must be larger than 0, such as 2", w.partitions)
	}
	if w.limit != "" {
		limit, err := resource.ParseQuantity(w.limit)
		if err != nil {
			return change, fmt.Errorf("--limit=%s: it must be an amount of memory such as 2Gi or 1536Mi", w.limit)
		}
		set = true
		change.Limit = &limit
	}
	if !set {
		return change, errors.New("no change is given; set at least one flag, for instance --pod-failures 2 (see --help)")
	}
	return change, nil
}
