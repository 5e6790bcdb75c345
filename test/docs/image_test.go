// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImageHasEveryPackage checks the Dockerfile and .dockerignore against the packages of the operator: both must include each of them.
func TestImageHasEveryPackage(t *testing.T) {
	copied := linesOf(t, "Dockerfile", "COPY ")
	permitted := linesOf(t, ".dockerignore", "!")
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = root
	packages, err := list.Output()
	if err != nil {
		t.Fatalf("listing the packages of the operator: %v", err)
	}
	const module = "streamweir.dev/streamweir/"
	for name := range strings.Lines(string(packages)) {
		folder, ours := strings.CutPrefix(strings.TrimSpace(name), module)
		if !ours || folder == "agent" { // agent.go is copied as a file
			continue
		}
		if !covers(copied, folder) {
			t.Errorf("the Dockerfile does not copy %s", folder)
		}
		if !covers(permitted, folder) {
			t.Errorf(".dockerignore excludes %s", folder)
		}
	}
}

// linesOf returns the first word after a prefix, of each line of a file that has it.
func linesOf(t *testing.T, file, prefix string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, prefix); found {
			words = append(words, strings.Fields(rest)[0])
		}
	}
	return words
}

// covers returns whether a folder is, or is below, one of the paths.
func covers(paths []string, folder string) bool {
	for _, path := range paths {
		if folder == path || strings.HasPrefix(folder, path+"/") {
			return true
		}
	}
	return false
}
