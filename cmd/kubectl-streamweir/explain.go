// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"streamweir.dev/streamweir/controllers/whatif"
)

const explainExample = `  # An application in the cluster, as the operator sees it
  kubectl streamweir explain orders -n shop

  # One without a StreamApp: its description and the sizes of its topics say which tasks there are
  kubectl streamweir explain statefulset/orders --topology describe.txt --partitions orders=12,customers=12

  # Manifests, without a cluster, as a gate in a pipeline: exit code 1 if it does not fit
  helm template . | kubectl streamweir explain -f - --topology describe.txt --partitions orders=12 --properties app.properties

  # The same, asking the brokers who runs what
  kubectl streamweir explain orders --bootstrap-servers kafka:9092 -o json`

func explainCommand() *cobra.Command {
	s := &source{}
	command := &cobra.Command{
		Use:   "explain [NAME | KIND/NAME]",
		Short: "Say what the pods need, line by line, and whether it fits",
		Long: `Say what the pods of an application need, line by line with the source of each number, and whether it fits after the losses asked for.

In a cluster, a StreamApp is explained from its status, which is what the operator knows. With --topology, --properties or brokers to ask,
and for manifests, the plan is made anew, by the operator's own rules. What had to be assumed is listed, with where to say it better.`,
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
			answer, err := s.explain(command, question)
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

// explain answers from the status where that is what there is, and otherwise asks the planner.
func (s *source) explain(command *cobra.Command, question whatif.Question) (*whatif.Answer, error) {
	if len(s.files) == 0 && !s.named() && len(question.App.Status.Conditions) > 0 {
		return whatif.AnswerOf(question.App), nil
	}
	return whatif.Explain(question)
}
