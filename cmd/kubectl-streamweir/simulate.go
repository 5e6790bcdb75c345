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

const simulateExample = `  # What if two pods were lost at once?
  kubectl streamweir simulate -f orders.yaml --lost 2

  # What if the topics had twice the partitions, on five pods of 2Gi?
  kubectl streamweir simulate -f orders.yaml --partitions-times 2 --replicas 5 --limit 2Gi

  # What if the application went to two stream threads, a standby and another version? It is asked of a running one
  kubectl streamweir simulate orders --threads 2 --standbys 1 --version 4.4.0 --bootstrap-servers kafka:9092

  # What does the first pod of a cold start need, while it runs everything?
  kubectl streamweir simulate -f orders.yaml --cold-start`

// whatIf is what the flags of simulate say.
type whatIf struct {
	lost, replicas, threads, standbys int32
	partitions                        float64
	limit, version                    string
	coldStart                         bool
}

func simulateCommand() *cobra.Command {
	s, w := &source{}, &whatIf{}
	command := &cobra.Command{
		Use:     "simulate [NAME | KIND/NAME]",
		Short:   "Say what would be needed if something were different",
		Long:    "Say what the pods would need, and whether it would fit, if pods were lost or numbers were different. The exit code is that of the new state.",
		Example: simulateExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return s.simulate(command, args, w)
		},
	}
	s.addFlags(command)
	s.addOutput(command)
	flags := command.Flags()
	flags.Int32Var(&w.lost, "lost", 0, "Pods that are lost.")
	flags.Int32Var(&w.replicas, "replicas", 0, "Replicas of the workload, all started anew.")
	flags.Float64Var(&w.partitions, "partitions-times", 0, "Factor for the partitions of all topics, and so for the tasks.")
	flags.StringVar(&w.limit, "limit", "", "Memory limit of the container, such as 2Gi.")
	flags.Int32Var(&w.threads, "threads", 0, "Stream threads of each pod (num.stream.threads).")
	flags.Int32Var(&w.standbys, "standbys", 0, "Standbys of each task (num.standby.replicas).")
	flags.StringVar(&w.version, "version", "", "Version of kafka-streams, such as 4.4.0.")
	flags.BoolVar(&w.coldStart, "cold-start", false, "The first pod of a group that starts from nothing: it runs every task for a while.")
	return command
}

// simulation is what simulate prints for programs.
type simulation struct {
	Now  *whatif.Answer `json:"now"`
	Then *whatif.Answer `json:"then"`
}

// simulate asks twice.
func (s *source) simulate(command *cobra.Command, args []string, w *whatIf) error {
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

// change checks the flags that were set.
func (w *whatIf) change(command *cobra.Command) (whatif.Change, error) {
	change := whatif.Change{Partitions: w.partitions, Version: w.version, ColdStart: w.coldStart}
	set := w.partitions != 0 || w.version != "" || w.coldStart
	for _, n := range []struct {
		flag  string
		value int32
		least int32
		to    **int32
	}{
		{"lost", w.lost, 0, &change.PodFailures}, {"replicas", w.replicas, 1, &change.Replicas},
		{"threads", w.threads, 1, &change.Threads}, {"standbys", w.standbys, 0, &change.Standbys},
	} {
		if !command.Flags().Changed(n.flag) {
			continue
		}
		if n.value < n.least {
			return change, fmt.Errorf("--%s=%d: it must be at least %d", n.flag, n.value, n.least)
		}
		set, *n.to = true, new(n.value)
	}
	if w.partitions < 0 || w.partitions > maxPartitions {
		return change, fmt.Errorf("--partitions-times=%g: it must be larger than 0, such as 2", w.partitions)
	}
	if w.limit != "" {
		limit, err := resource.ParseQuantity(w.limit)
		if err != nil {
			return change, fmt.Errorf("--limit=%s: it must be an amount of memory such as 2Gi or 1536Mi", w.limit)
		}
		set, change.Limit = true, &limit
	}
	if !set {
		return change, errors.New("say what is to be different, for instance --lost 2: see --help")
	}
	return change, nil
}
