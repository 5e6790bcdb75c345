// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"streamweir.dev/streamweir/controllers/whatif"
)

const explainExample = `  # An application in the cluster, from the status that the operator wrote
  kubectl streamweir explain orders -n shop

  # A workload without a StreamApp: the tasks follow from its topology and the partitions of its topics
  kubectl streamweir explain statefulset/orders --topology describe.txt --partitions orders=12,customers=12

  # Manifests, without a cluster, as a gate in a pipeline: exit code 1 if the application does not fit
  helm template . | kubectl streamweir explain -f - --topology describe.txt --partitions orders=12 --properties app.properties

  # A new plan, with the task assignment from the brokers
  kubectl streamweir explain orders --bootstrap-servers kafka:9092 -o json`

func explainCommand() *cobra.Command {
	s := &source{}
	command := &cobra.Command{
		Use:   "explain [NAME | KIND/NAME]",
		Short: "Show the memory that the pods require, and whether it fits",
		Long: `Show the memory that the pods of an application require, line by line with the source of each number, and whether it fits after the pod
failures to tolerate.

A StreamApp in a cluster is explained from its status. With --topology, --properties or brokers, and for manifests, a new plan is made with the
rules of the operator. It lists the assumed facts and the settings that override them.`,
		Example: explainExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := s.checkOutput(); err != nil {
				return err
			}
			question, err := s.question(command.Context(), command.InOrStdin(), args)
			if err != nil {
				return err
			}
			answer, err := s.explain(question)
			if err != nil {
				return err
			}
			if err := s.print(command.OutOrStdout(), answer, func(w *page) { w.answer(answer) }); err != nil {
				return err
			}
			return verdict(answer)
		},
	}
	s.addFlags(command)
	s.addOutput(command)
	return command
}

// explain returns the answer in the status, or plans anew if the flags name other sources.
func (s *source) explain(question whatif.Question) (*whatif.Answer, error) {
	if len(s.files) == 0 && !s.hasOtherSources() && len(question.App.Status.Conditions) > 0 {
		return whatif.AnswerOf(question.App), nil
	}
	return whatif.Explain(question)
}
