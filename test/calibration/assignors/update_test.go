// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assignors runs the task assignors of Kafka over histories of groups. What they decide is kept in memplan/testdata/assignors,
// where the load bounds of memplan are checked against it. A change of the Java sources (test/java) or of the Kafka version needs update.sh.
package assignors

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exitUnavailable is the exit code of update.sh when a tool is missing (EX_UNAVAILABLE of sysexits.h).
const exitUnavailable = 69

// TestTheGoldenFilesAreWhatTheAssignorsDecide needs Java 17 and, once, Maven. Without them it is skipped, or fails if the environment has
// CI=true.
func TestTheGoldenFilesAreWhatTheAssignorsDecide(t *testing.T) {
	folder, golden := t.TempDir(), filepath.Join("..", "..", "..", "memplan", "testdata", "assignors")
	output, err := exec.CommandContext(t.Context(), "./update.sh", folder).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitUnavailable && os.Getenv("CI") != "true" {
		t.Skipf("Kafka's assignors cannot run here: %s", output) //nolint:forbidigo // in CI it fails
	}
	if err != nil {
		t.Fatalf("./update.sh: %v\n%s", err, output)
	}
	if d := cmp.Diff(read(t, golden), read(t, folder)); d != "" {
		t.Errorf("golden files (-want +got), run test/calibration/assignors/update.sh if the change is meant:\n%.4000s", d)
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
