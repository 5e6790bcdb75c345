// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/whatif"
)

const diffExample = `  # The changes of mode Enforce, before the StreamApp is edited
  kubectl streamweir diff orders -n shop --mode Enforce

  # The changes of this version of the operator in all namespaces, before an upgrade
  kubectl streamweir diff -A

  # The task assignment from the brokers, for an application that is not yet in mode Enforce
  kubectl streamweir diff orders --mode Enforce --bootstrap-servers kafka:9092`

// diffFlags are the flags of diff.
type diffFlags struct {
	allNamespaces bool
	mode          string
}

func diffCommand() *cobra.Command {
	s := &source{}
	w := &diffFlags{}
	command := &cobra.Command{
		Use:   "diff [NAME | KIND/NAME]",
		Short: "Show the changes that the operator would make",
		Long: `Compare the stored plan, the PodInjection and the limits of the pods with the decision of this version of the operator, in the present mode
or in that of --mode. Nothing is written. Without a name, all StreamApps of the namespace are compared.

The comparison is for the first pass of the operator. A larger plan is published in a later pass, after the limits are raised. The reports of
the agents are not read: the last known tasks in the stored plan replace them. Exit codes: 0 no differences, 1 differences, 2 an error.`,
		Example: diffExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return s.diff(command, args, w)
		},
	}
	s.addFlags(command)
	s.addOutput(command)
	flags := command.Flags()
	flags.BoolVarP(&w.allNamespaces, "all-namespaces", "A", false, "Compare the StreamApps of all namespaces.")
	flags.StringVar(&w.mode, "mode", "", "Mode of the decision: Observe, Hold or Enforce. Without it, that of the StreamApp.")
	command.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	command.MarkFlagsMutuallyExclusive("all-namespaces", "filename")
	modes := []string{string(v1alpha1.ModeObserve), string(v1alpha1.ModeHold), string(v1alpha1.ModeEnforce)}
	_ = command.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// diff prints the differences of one or more applications.
func (s *source) diff(command *cobra.Command, args []string, w *diffFlags) error {
	if err := s.checkOutput(); err != nil {
		return err
	}
	if w.allNamespaces && len(args) > 0 {
		return errors.New("--all-namespaces compares all StreamApps: omit the name, or name the namespace with -n")
	}
	questions, err := s.questions(command.Context(), command.InOrStdin(), args, w.allNamespaces)
	if err != nil {
		return err
	}
	differences, failed := s.compare(command.Context(), questions, v1alpha1.Mode(w.mode))
	if len(differences) > 0 || failed == nil {
		if err := s.print(command.OutOrStdout(), differences, func(p *page) { p.differences(differences) }); err != nil {
			return err
		}
	}
	changed := func(d *whatif.Difference) bool { return len(d.Changes) > 0 }
	if failed == nil && slices.ContainsFunc(differences, changed) {
		return errDiffers
	}
	return failed
}

// compare returns the differences of all applications that can be compared, and the errors of the others.
func (s *source) compare(ctx context.Context, questions []whatif.Question, mode v1alpha1.Mode) ([]*whatif.Difference, error) {
	differences := []*whatif.Difference{}
	var failed []error
	for i := range questions {
		difference, err := s.difference(ctx, &questions[i], mode)
		if err != nil {
			app := questions[i].App
			failed = append(failed, fmt.Errorf("%s/%s: %w", app.Namespace, app.Name, err))
			continue
		}
		differences = append(differences, difference)
	}
	return differences, errors.Join(failed...)
}

// difference reads the facts of the flags and compares one application.
func (s *source) difference(ctx context.Context, question *whatif.Question, mode v1alpha1.Mode) (*whatif.Difference, error) {
	if err := s.facts(ctx, question); err != nil {
		return nil, err
	}
	return whatif.Diff(*question, mode)
}

// questions returns the question about the named application, or about each StreamApp of the namespace or the cluster, without the facts of the
// flags.
func (s *source) questions(ctx context.Context, in io.Reader, args []string, allNamespaces bool) ([]whatif.Question, error) {
	if len(args) > 0 || len(s.files) > 0 {
		question, err := s.objects(ctx, in, args)
		return []whatif.Question{question}, err
	}
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	namespace := c.namespace
	if allNamespaces {
		namespace = ""
	}
	apps, err := c.streamAppsIn(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var questions []whatif.Question
	for _, app := range apps {
		question := whatif.Question{App: app, Now: time.Now()}
		in := &cluster{client: c.client, namespace: app.Namespace}
		if question.Objects, err = in.objects(ctx, app); err != nil {
			return nil, err
		}
		questions = append(questions, question)
	}
	return questions, nil
}

// differences writes the differences of applications.
func (p *page) differences(all []*whatif.Difference) {
	if len(all) == 0 {
		p.printf("No StreamApps were found.\n\n")
	}
	for _, d := range all {
		p.difference(d)
		p.printf("\n")
	}
	p.printf("Nothing was written.\n")
}

// difference writes the differences of one application.
func (p *page) difference(d *whatif.Difference) {
	p.printf("%s %s/%s (StreamApp %s), %s: ", d.WorkloadKind, d.Namespace, d.Workload, d.StreamApp, modeText(d))
	switch len(d.Changes) {
	case 0:
		p.printf("no differences.\n")
	default:
		p.printf("%s.\n\n", count(len(d.Changes), "difference"))
		rows := [][]string{{"OBJECT", "FIELD", "NOW", "THEN"}}
		for _, c := range d.Changes {
			rows = append(rows, []string{c.Object, c.Field, cmp.Or(c.Now, "-"), cmp.Or(c.Then, "-")})
		}
		p.table(rows)
	}
	if d.PodFailuresTolerated != nil && d.PodFailuresToleratedAfter != nil {
		p.printf("\nPod failures tolerated: %s with the running pods, %s with pods created after the change.\n",
			failuresText(*d.PodFailuresTolerated), failuresText(*d.PodFailuresToleratedAfter))
	}
	if d.Frozen != "" {
		p.printf("\nThe operator would leave the objects as they are: %s\n", d.Frozen)
	}
	if d.Capped != "" {
		p.printf("\nThe limit of a new pod is below the required one: %s\n", d.Capped)
	}
	p.list("conditions", d.Conditions)
	p.list("notes", d.Notes)
}

// modeText describes the mode of a comparison.
func modeText(d *whatif.Difference) string {
	if d.Mode == d.NewMode {
		return "mode " + string(d.Mode)
	}
	return fmt.Sprintf("mode %s instead of %s", d.NewMode, d.Mode)
}

// failuresText formats a number of pod failures; -1 if the pods exceed their limits without one.
func failuresText(tolerated int) string {
	if tolerated < 0 {
		return "none (the limits are too small without a failure)"
	}
	return fmt.Sprint(tolerated)
}
