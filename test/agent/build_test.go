// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

// exitUnavailable is the exit code of a build script without its tools (EX_UNAVAILABLE of sysexits.h).
const exitUnavailable = 69

// jar is the agent that the operator embeds.
const jar = "../../agent/streamweir-agent.jar"

// build runs test/java/build.sh once in this process and returns the folder that it prints.
var build = sync.OnceValues(func() (string, error) { return script("../java/build.sh", "agent") })

// script runs a script and returns its standard output.
func script(path string, args ...string) (string, error) {
	var stderr strings.Builder
	command := exec.CommandContext(context.Background(), path, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", &scriptError{path: path, code: exit.ExitCode(), output: strings.TrimSpace(stderr.String())}
	}
	return strings.TrimSpace(string(out)), err
}

// scriptError is a failure of a script, with its standard error.
type scriptError struct {
	path   string
	code   int
	output string
}

func (e *scriptError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.path, e.code, e.output)
}

// applications returns the folder of the applications. It builds them if they are not in the cache.
func applications(tb testing.TB) string {
	tb.Helper()
	folder, err := build()
	if failure, ok := errors.AsType[*scriptError](err); ok && failure.code == exitUnavailable {
		kafkatest.Unavailable(tb, failure.output)
	}
	if err != nil {
		tb.Fatalf("build the applications: %v", err)
	}
	return folder
}

// copyJar copies the agent, so that no build replaces it while JVMs read it, and returns the path.
func copyJar(tb testing.TB) string {
	tb.Helper()
	content, err := os.ReadFile(jar)
	if err != nil {
		tb.Fatalf("the agent: %v; agent/build.sh builds it", err)
	}
	path := filepath.Join(tb.TempDir(), "streamweir-agent.jar")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
