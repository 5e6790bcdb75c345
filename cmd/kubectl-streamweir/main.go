// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// kubectl-streamweir is a kubectl plugin that asks Streamweir's planner questions: about an application in a cluster, or about manifests
// in files, without a cluster. It answers as the operator does, with the same conversion.
//
// Exit codes: 0 it fits, 1 it does not fit, 2 the question cannot be answered.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"streamweir.dev/streamweir/controllers/whatif"
)

// The exit codes, for pipelines.
const (
	exitFits = iota
	exitDoesNotFit
	exitNoAnswer
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and gives the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFits
	case errors.Is(err, errDoesNotFit):
		if err != errDoesNotFit { //nolint:errorlint // a wrapped one has more to say than the answer that was printed
			_, _ = fmt.Fprintln(errOut, err)
		}
		return exitDoesNotFit
	default:
		_, _ = fmt.Fprintln(errOut, "error:", err) // the exit code says it too
		return exitNoAnswer
	}
}

// errDoesNotFit: the answer was given, and is no.
var errDoesNotFit = errors.New("it does not fit")

// verdict turns an answer into what the command returns.
func verdict(answer *whatif.Answer) error {
	switch answer.Verdict {
	case whatif.VerdictFits:
		return nil
	case whatif.VerdictDoesNotFit:
		return errDoesNotFit
	default:
		return errors.New("the operator does not know yet whether it fits: see the conditions above")
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-streamweir",
		Short: "Ask what memory a Kafka Streams application needs, line by line",
		Long: `Ask what memory the pods of a Kafka Streams application need, line by line, now and after the loss of pods.

The application is one in the cluster, or the manifests of -f, for which no cluster is needed. Exit codes: 0 it fits, 1 it does not fit,
2 the question cannot be answered.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl streamweir"},
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.AddCommand(explainCommand(), simulateCommand(), renderCommand())
	return root
}
