// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// kubectl-streamweir is a kubectl plugin. It shows the memory that a Kafka Streams application requires, for an application in a cluster or
// for manifests in files, without a cluster. It decides with the code of the operator.
//
// Exit codes: 0 it fits, 1 it does not fit, 2 the answer cannot be determined. Of diff: 0 no differences, 1 differences, 2 an error.
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

	exitDiffers = exitDoesNotFit
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit code.
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
		if err != errDoesNotFit { //nolint:errorlint // a wrapped error has details that were not printed
			_, _ = fmt.Fprintln(errOut, err)
		}
		return exitDoesNotFit
	case errors.Is(err, errDiffers):
		return exitDiffers
	default:
		_, _ = fmt.Fprintln(errOut, "error:", err) // the exit code shows the error, too
		return exitNoAnswer
	}
}

// errDoesNotFit: the answer was printed, and the application does not fit.
var errDoesNotFit = errors.New("it does not fit")

// errDiffers: the differences were printed.
var errDiffers = errors.New("there are differences")

// verdict returns the error for an answer; nil if the application fits.
func verdict(answer *whatif.Answer) error {
	switch answer.Verdict {
	case whatif.VerdictFits:
		return nil
	case whatif.VerdictDoesNotFit:
		return errDoesNotFit
	default:
		return errors.New("the operator has not determined yet whether it fits; see the conditions above")
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-streamweir",
		Short: "Show the memory that a Kafka Streams application requires, line by line",
		Long: `Show the memory that the pods of a Kafka Streams application require, line by line, now and after pod failures.

The application is in a cluster, or in the manifests of -f, which need no cluster. Exit codes: 0 it fits, 1 it does not fit, 2 the answer
cannot be determined. Those of diff: 0 no differences, 1 differences, 2 an error.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl streamweir"},
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.AddCommand(explainCommand(), simulateCommand(), diffCommand(), renderCommand())
	return root
}
