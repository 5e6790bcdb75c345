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

// exitUnavailable is the exit code of the build scripts when a tool is missing (EX_UNAVAILABLE of sysexits.h).
const exitUnavailable = 69

// jar is the agent, as the operator embeds it.
const jar = "../../agent/streamweir-agent.jar"

// build runs test/java/build.sh once in this process, and gives the folder it prints.
var build = sync.OnceValues(func() (string, error) { return script("../java/build.sh", "agent") })

// script runs a script and gives what it printed on standard output.
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

// scriptError is a failure of a script, with what it wrote on standard error.
type scriptError struct {
	path   string
	code   int
	output string
}

func (e *scriptError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.path, e.code, e.output)
}

// applications builds the applications if the cache lacks them, and gives their folder.
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

// copyJar puts the agent where no build replaces it while JVMs read it, and gives the path.
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
