// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assignors runs the task assignors of Kafka on histories of groups. Their decisions are stored in memplan/testdata/assignors; the
// tests of memplan compare the load bounds with them. Run update.sh after a change of the Java sources (test/java) or of the Kafka version.
package assignors

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exitUnavailable is the exit code of update.sh if a tool is missing (EX_UNAVAILABLE of sysexits.h).
const exitUnavailable = 69

// TestGoldenFilesAreCurrent needs Java 17 and, for the first build, Maven. Without them it is skipped, or fails if the environment has
// CI=true.
func TestGoldenFilesAreCurrent(t *testing.T) {
	folder, golden := t.TempDir(), filepath.Join("..", "..", "..", "memplan", "testdata", "assignors")
	output, err := exec.CommandContext(t.Context(), "./update.sh", folder).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitUnavailable && os.Getenv("CI") != "true" {
		t.Skipf("Kafka's assignors cannot run here: %s", output) //nolint:forbidigo // in CI it fails
	}
	if err != nil {
		t.Fatalf("./update.sh: %v\n%s", err, output)
	}
	if d := cmp.Diff(read(t, golden), read(t, folder)); d != "" {
		t.Errorf("golden files (-want +got), run test/calibration/assignors/update.sh if the change is intended:\n%.4000s", d)
	}
}

// read reads all files of a folder.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}
